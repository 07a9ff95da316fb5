"""How large a gallery is, and how far its indexes are behind."""

from dataclasses import dataclass

from sameface.model.gallery.gallery import Gallery


@dataclass(frozen=True, slots=True)
class GallerySize:
    """The size of the gallery, as /metrics shows it."""

    collections: int
    people: int
    faces: int
    lag: int  # changes that the index furthest behind has yet to follow


def measure_size(gallery: Gallery) -> GallerySize:
    """The numbers of collections, people and faces, and how far the indexes are behind the store."""
    collections = gallery.list_collections()
    return GallerySize(
        len(collections),
        sum(collection.people for collection in collections),
        sum(collection.faces for collection in collections),
        max((gallery.indexes.lag_of(each) for each in collections if gallery.searches), default=0),
    )
