"""Moves a collection to another recogniser by embedding its stored crops, while it is in use."""

import dataclasses
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from pathlib import Path

from sameface.model.bundles.bundle import MANIFEST, Bundle, load_bundle
from sameface.model.bundles.contract import Contract
from sameface.model.data_folder import DataFolder
from sameface.model.errors import BundleRefused, CollectionNotFound, SamefaceError
from sameface.model.faces import Pixels
from sameface.model.gallery.index.faiss.collection_indexes import open_indexes
from sameface.model.observer import Progress, ignore_progress
from sameface.model.photo.align import align_face
from sameface.model.photo.embed import Embedder, open_embedder
from sameface.model.photo.image import ImageLimits, decode_pixels, encode_png
from sameface.model.runtime.device import available_cores, select_device
from sameface.model.store.drafts import (
    count_without_crop,
    drafting,
    drop_draft,
    drop_drafts,
    mirror,
    open_draft,
    read_draft,
    read_missing,
    replace_with_draft,
)
from sameface.model.store.people.newcomers import add_people
from sameface.model.store.records import Binding, Collection, NewPerson
from sameface.model.store.store import Store
from sameface.model.upkeep.errors import ReembedRefused

FACES_AT_ONCE = 200  # embedded, then written in one transaction
LAST_FACES = 50  # most that are embedded inside the last transaction, while other writers wait


class Reembedder:
    """Crops of one recogniser to embeddings of another, on all cores."""

    def __init__(self, made_for: Contract, embedder: Embedder) -> None:
        self.made_for = made_for
        self.embedder = embedder
        self._executor = ThreadPoolExecutor(available_cores(), thread_name_prefix="sameface-reembed")

    def close(self) -> None:
        """Wait for the batches that run, and end the threads."""
        self._executor.shutdown()

    def embed(self, newcomers: Sequence[NewPerson]) -> list[NewPerson]:
        """The newcomers, who have one face each, with the new recogniser's embedding and crop."""
        size = self.embedder.sessions.batch_size
        batches = [newcomers[start : start + size] for start in range(0, len(newcomers), size)]
        return [person for batch in self._executor.map(self._embed_batch, batches) for person in batch]

    def _embed_batch(self, newcomers: Sequence[NewPerson]) -> list[NewPerson]:
        crops = [self._fit_crop(newcomer) for newcomer in newcomers]
        embeddings = self.embedder.embed([pixels for pixels, _ in crops])
        return [
            dataclasses.replace(
                newcomer,
                faces=[dataclasses.replace(newcomer.faces[0], embedding=embedding.values, crop=content)],
            )
            for newcomer, embedding, (_, content) in zip(newcomers, embeddings, crops, strict=True)
        ]

    def _fit_crop(self, newcomer: NewPerson) -> tuple[Pixels, bytes]:
        """The crop on the new recogniser's template: its pixels to embed, and the PNG to store."""
        [face] = newcomer.faces
        content, old, new = face.crop or b"", self.made_for, self.embedder.bundle.contract
        try:
            image = decode_pixels(content, ImageLimits())
        except SamefaceError:
            image = None
        if image is None or image.shape[1::-1] != old.input_size:
            raise ReembedRefused(
                f"The face {face.face_id!r} of {newcomer.person_id!r} has no crop of {old.name}: forget this "
                "person, run this again, and enrol the person anew."
            )
        if (old.template, old.input_size) == (new.template, new.input_size):
            return image, content
        pixels = align_face(image, old.template, new.template, new.input_size)
        return pixels, encode_png(pixels)


def move_collection(
    store: Store,
    name: str,
    bundle: Bundle,
    folder: DataFolder,
    device: str = "auto",
    progress: Progress = ignore_progress,
) -> Collection:
    """Move the collection `name` to the recogniser `bundle`; unchanged if it belongs to it already."""
    old = store.collections.get(name)
    if old.identity == bundle.identity:
        with drafting(store):
            drop_drafts(store, name)
        return old
    refuse_without_crops(store, old)
    made_for = find_bundle(folder.models, old).contract
    opening = open_embedder(bundle, select_device(device), folder.cache, available_cores())
    with closing(opening) as embedder, closing(Reembedder(made_for, embedder)) as reembedder:
        return reembed(store, old, reembedder, progress)


def refuse_without_crops(store: Store, collection: Collection) -> None:
    """Raise if a face has no crop, before anything is embedded."""
    with store.frozen() as connection:
        people, faces = count_without_crop(connection, collection)
    if faces:
        raise ReembedRefused(
            f"{faces} faces of {people} people in {collection.name!r} have no crop to embed again. Enrol the "
            "photos into a new collection (`sameface enroll FOLDER --collection NEW --recognizer DIR`), or "
            "forget these people."
        )


def find_bundle(models: Path, collection: Collection) -> Bundle:
    """The bundle in `models` of the recogniser that the collection's crops were made for."""
    for manifest in models.glob(f"*/{MANIFEST}"):
        with suppress(BundleRefused):  # a broken bundle is not the one looked for
            bundle = load_bundle(manifest.parent, "recogniser")
            if bundle.identity == collection.identity:
                return bundle
    raise BundleRefused(
        f"{collection.bundle}, for which {collection.name!r} keeps crops, is not in {models}: pull it again."
    )


def reembed(
    store: Store, old: Collection, reembedder: Reembedder, progress: Progress = ignore_progress
) -> Collection:
    """Embed the faces of `old` into a draft that then replaces it; the next run continues a stopped one."""
    bundle = reembedder.embedder.bundle
    purpose = f"reembedding {bundle.identity[:12]}"
    binding = Binding(  # without a calibration, which is bound to the old recogniser
        bundle=bundle.contract.name,
        identity=bundle.identity,
        dimension=bundle.contract.dimension or 0,
        store_crops=old.store_crops,
        reviewers=old.reviewers,
    )
    with drafting(store):
        drop_drafts(store, old.name, kept=purpose)
        draft = open_draft(store, old.name, purpose, binding)
        try:
            copy_faces(store, old, draft, reembedder, progress)
            while not finish(store, old, draft, reembedder):
                copy_faces(store, old, draft, reembedder, progress)
        except CollectionNotFound:  # `old` was deleted meanwhile
            drop_draft(store, draft)
            raise
        drop_drafts(store, old.name)
    with closing(open_indexes(store)) as indexes:
        indexes.forget_deleted()
    return store.collections.get(old.name)


def copy_faces(
    store: Store, old: Collection, draft: Collection, reembedder: Reembedder, progress: Progress
) -> None:
    """Embed the faces that the draft lacks, in the order in which they were enrolled."""
    done, after = read_draft(store, draft).faces, 0
    while True:
        with store.frozen() as connection:
            after, newcomers = read_missing(connection, old, draft, FACES_AT_ONCE, after)
        if not newcomers:
            return
        store.people.enroll(draft, reembedder.embed(newcomers))
        done += len(newcomers)
        progress("reembedding", done, max(done, old.faces))


def finish(store: Store, old: Collection, draft: Collection, reembedder: Reembedder) -> bool:
    """Catch up with the writes to `old` and replace it by the draft, in one transaction.

    Returns False, with nothing replaced, if more than `LAST_FACES` faces are still to be embedded.
    """
    with store.writing(patient=True) as connection:
        mirror(connection, old, draft)
        _, last = read_missing(connection, old, draft, LAST_FACES + 1)
        if len(last) > LAST_FACES:
            return False
        add_people(connection, draft, reembedder.embed(last))
        replace_with_draft(connection, old, draft)
    return True
