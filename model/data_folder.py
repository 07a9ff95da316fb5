"""The data folder: where models, prepared graphs and the gallery are kept."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from sameface.model.errors import CannotServe

DEFAULT_DATA = Path("~/.sameface")


@dataclass(frozen=True, slots=True)
class SharedGallery:
    """A gallery in PostgreSQL, and the folder for the indexes that this machine makes of it."""

    url: str = field(repr=False)  # it may hold a password
    folder: Path


@dataclass(frozen=True, slots=True)
class MilvusAddress:
    """Where the search engine Milvus is: an address, or a file of Milvus Lite."""

    uri: str = field(repr=False)  # it may hold a password
    token: str | None = field(default=None, repr=False)


def choose_milvus(index: str, uri: str | None, token: str | None) -> MilvusAddress | None:
    """The address of Milvus if the `index` is milvus, None for FAISS; raises if there is no address."""
    if index != "milvus":
        return None
    if not uri:
        raise CannotServe(
            "The index `milvus` needs the address of Milvus: SAMEFACE_MILVUS_URI, --milvus-uri."
        )
    return MilvusAddress(uri, token)


# The file of SQLite's database, with the indexes beside it, or a gallery in PostgreSQL.
GalleryPlace: TypeAlias = Path | SharedGallery


def folder_of(place: GalleryPlace) -> Path:
    """The data folder that a gallery belongs to."""
    return place.parent if isinstance(place, Path) else place.folder.parent


@dataclass(frozen=True, slots=True)
class DataFolder:
    """The owner's data folder and the places inside it."""

    root: Path = DEFAULT_DATA
    database: str | None = field(default=None, repr=False)  # the URL of a gallery in PostgreSQL
    milvus: MilvusAddress | None = None  # what searches are made with; None: FAISS

    @property
    def models(self) -> Path:
        """Bundles, one folder each."""
        return self.root.expanduser() / "models"

    @property
    def cache(self) -> Path:
        """Graphs prepared for this machine: may be deleted at any time."""
        return self.root.expanduser() / "cache"

    @property
    def demo(self) -> Path:
        """The portraits of `sameface demo`."""
        return self.root.expanduser() / "demo"

    @property
    def gallery(self) -> GalleryPlace:
        """The database of enrolled people: in PostgreSQL, or `gallery_file`."""
        if self.database:
            return SharedGallery(self.database, self.root.expanduser() / "shared")
        return self.gallery_file

    @property
    def gallery_file(self) -> Path:
        """The file of SQLite's database: the one file that must not be lost."""
        return self.root.expanduser() / "gallery.db"

    @property
    def limits(self) -> Path:
        """Counters of what callers with limits have asked for: may be deleted while no server runs."""
        return self.root.expanduser() / "limits"

    @property
    def recognizer(self) -> Path:
        """The default recogniser's bundle."""
        return self.models / "sface-2021dec"

    @property
    def detector(self) -> Path:
        """The default detector's bundle."""
        return self.models / "yunet-2023mar"
