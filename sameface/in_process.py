"""`sameface.open()`: everything that the server does with faces, in this process and without HTTP."""

import asyncio
import os
import threading
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self, TypeAlias, TypeVar

import numpy as np
from PIL import Image

from sameface.model.data_folder import DEFAULT_DATA, DataFolder
from sameface.model.decision.thresholds import TARGET_FMR, TARGET_FPIR, Rule
from sameface.model.enroll import Enrollment, EnrollRequest, enroll
from sameface.model.errors import UnsupportedImage
from sameface.model.faces import Embedding, Photo
from sameface.model.gallery.gallery import Gallery, open_gallery
from sameface.model.identify import Identification, IdentifyRequest, identify
from sameface.model.photo.embed import accept_embedding
from sameface.model.photo.image import hash_photo, read_photo
from sameface.model.pipeline import Detection, PhotoEmbeddings, Pipeline, PipelineOptions, open_pipeline
from sameface.model.store import records
from sameface.model.verify import Decision, EnrolledPerson, VerifyRequest, verify

if TYPE_CHECKING:
    from numpy.typing import NDArray

PEOPLE_AT_ONCE = 1000

AnyPhoto: TypeAlias = "str | os.PathLike[str] | bytes | Image.Image | NDArray[np.uint8]"
AnyEmbedding: TypeAlias = "Sequence[float] | NDArray[np.floating]"
OneFace: TypeAlias = Literal["prominent", "largest", "only"]
WhichFaces: TypeAlias = Literal["prominent", "largest", "only", "all"]
Result = TypeVar("Result")


def open_faces(
    data: str | os.PathLike[str] = DEFAULT_DATA,
    *,
    recognizer: str | os.PathLike[str] | None = None,
    detector: str | os.PathLike[str] | None = None,
    device: Literal["auto", "cpu", "gpu"] = "auto",
    threads: int | None = None,
    calibration: str | None = None,
    target_fmr: float = TARGET_FMR,
    target_fpir: float = TARGET_FPIR,
) -> "Faces":
    """Open a data folder; the networks are loaded by the first call that needs them.

    `recognizer` and `detector` are bundles, by name in the data folder or by folder; `calibration`,
    `target_fmr` and `target_fpir` are the defaults of decisions, as in the settings of the server.
    """
    folder = DataFolder(Path(data))
    options = PipelineOptions.in_folder(
        folder,
        folder.find_bundle(recognizer),
        folder.find_bundle(detector),
        device=device,
        calibration=calibration,
        target_fmr=target_fmr,
        target_fpir=target_fpir,
        **({"threads": threads} if threads else {}),
    )
    return Faces(folder, options)


class Faces:
    """Verify, detect, embed and collections of people; safe to use from any number of threads."""

    def __init__(self, folder: DataFolder, options: PipelineOptions) -> None:
        self.folder = folder
        self.options = options
        self._parts: dict[str, Any] = {}
        self._opening = threading.RLock()
        self._closed = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Finish what runs, and close networks and gallery."""
        with self._opening:
            self._closed = True
            for part in reversed(self._parts.values()):
                part.close()
            self._parts.clear()

    def verify(
        self,
        probe: AnyPhoto,
        reference: AnyPhoto,
        *,
        target_fmr: float | None = None,
        threshold: float | None = None,
        extrapolate: bool = False,
        faces: OneFace = "prominent",
        min_quality: float = 0.0,
    ) -> Decision:
        """Whether two photos show the same person."""
        request = VerifyRequest(
            probe=to_photo(probe),
            reference=to_photo(reference),
            rule=Rule(threshold, target_fmr, extrapolate),
            faces=faces,
            min_quality=min_quality,
        )
        return self._run(verify(self.pipeline, self.gallery, request))

    def detect(self, photo: AnyPhoto, *, faces: WhichFaces = "all") -> Detection:
        """The faces in a photo: boxes, landmarks and quality."""
        return self._run(self.pipeline.detect(to_photo(photo), faces))

    def embed(self, photo: AnyPhoto, *, faces: WhichFaces = "all") -> PhotoEmbeddings:
        """The faces in a photo with their unit embeddings."""
        return self._run(self.pipeline.embed(to_photo(photo), faces))

    def collection(self, name: str, *, store_crops: bool = False) -> "Collection":
        """The collection of this name; the first enrolment makes it, and then `store_crops` counts."""
        return Collection(self, name, store_crops=store_crops)

    def collections(self) -> list[records.Collection]:
        """All collections by name, with their numbers of people and faces."""
        return self.people.list_collections()

    @property
    def pipeline(self) -> Pipeline:
        """The networks, loaded by the first caller."""
        pipeline: Pipeline = self._once("pipeline", lambda: open_pipeline(self.options))
        return pipeline

    @property
    def gallery(self) -> Gallery:
        """The gallery of the recogniser."""
        gallery: Gallery = self._once("gallery", lambda: open_gallery(self.folder.gallery, self.pipeline))
        return gallery

    @property
    def people(self) -> Gallery:
        """The gallery without a recogniser: enough to list, change and forget people of any recogniser."""
        people: Gallery = self._once("people", lambda: Gallery(self.folder.gallery))
        return people

    def _once(self, name: str, open_part: Callable[[], Any]) -> Any:
        """A part of this object, opened by the first caller and closed with the object."""
        with self._opening:
            if self._closed:
                raise ValueError("these faces are closed")
            if name not in self._parts:
                self._parts[name] = open_part()
            return self._parts[name]

    def _run(self, operation: Coroutine[Any, Any, Result]) -> Result:
        """The result of an operation, which runs on an event loop in a thread of its own."""
        loop: LoopThread = self._once("loop", LoopThread)
        future = asyncio.run_coroutine_threadsafe(operation, loop.loop)
        try:
            return future.result()
        except BaseException:  # an interrupted caller no longer waits
            future.cancel()
            raise


class LoopThread:
    """An event loop that runs in a thread, so that callers may have one of their own, as notebooks do."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever, name="sameface-loop", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop the loop and wait for its thread."""
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()
        self.loop.close()


class Collection:
    """People that are searched together."""

    def __init__(self, faces: Faces, name: str, *, store_crops: bool = False) -> None:
        self.name = name
        self._faces = faces
        self._store_crops = store_crops

    def enroll(
        self,
        person_id: str | None,
        photos: Sequence[AnyPhoto] = (),
        *,
        name: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        embeddings: Sequence[AnyEmbedding] = (),
        faces: OneFace = "prominent",
        min_quality: float = 0.0,
    ) -> Enrollment:
        """Enrol a person by photos or embeddings; a known id is `already_exists`, None makes an id."""
        self._faces.gallery.get_or_create_collection(self.name, store_crops=self._store_crops)
        return self._enroll(
            person_id,
            photos,
            embeddings,
            name=name,
            metadata=dict(metadata or {}),
            faces=faces,
            min_quality=min_quality,
        )

    def enroll_or_add(self, person_id: str, photos: Sequence[AnyPhoto]) -> Enrollment:
        """Enrol a person by photos, or give a known one more faces: as a batch over HTTP does."""
        self._faces.gallery.get_or_create_collection(self.name, store_crops=self._store_crops)
        return self._enroll(person_id, photos, (), may_exist=True)

    def add_faces(
        self,
        person_id: str,
        photos: Sequence[AnyPhoto] = (),
        *,
        embeddings: Sequence[AnyEmbedding] = (),
        faces: OneFace = "prominent",
        min_quality: float = 0.0,
    ) -> Enrollment:
        """Give an enrolled person more faces; an unknown id is `person_not_found`."""
        return self._enroll(
            person_id, photos, embeddings, must_exist=True, faces=faces, min_quality=min_quality
        )

    def identify(
        self,
        probe: "AnyPhoto | AnyEmbedding",
        *,
        limit: int = 5,
        faces: WhichFaces = "all",
        fusion: Literal["max", "mean"] = "max",
        target_fpir: float | None = None,
        threshold: float | None = None,
        extrapolate: bool = True,
    ) -> Identification:
        """Everybody in a photo, or the person of an embedding, among the people of the collection."""
        request = IdentifyRequest(
            collection=self.name,
            probe=self._to_probe(probe),
            limit=limit,
            faces=faces,
            fusion=fusion,
            rule=Rule(threshold, target_fpir, extrapolate),
        )
        return self._faces._run(identify(self._faces.pipeline, self._faces.gallery, request))

    def verify(
        self,
        person_id: str,
        probe: AnyPhoto,
        *,
        target_fmr: float | None = None,
        threshold: float | None = None,
        extrapolate: bool = False,
        faces: OneFace = "prominent",
        min_quality: float = 0.0,
    ) -> Decision:
        """Whether a photo shows an enrolled person."""
        request = VerifyRequest(
            probe=to_photo(probe),
            reference=EnrolledPerson(self.name, person_id),
            rule=Rule(threshold, target_fmr, extrapolate),
            faces=faces,
            min_quality=min_quality,
        )
        return self._faces._run(verify(self._faces.pipeline, self._faces.gallery, request))

    def describe(self) -> records.Collection:
        """The collection's recogniser and its numbers of people and faces, as they are now."""
        return self._people.get_collection(self.name)

    def people(self) -> Iterator[records.Person]:
        """Everybody, by id."""
        collection, after = self.describe(), ""
        while page := self._people.list_people(collection, PEOPLE_AT_ONCE, after):
            yield from page
            after = page[-1].person_id

    def person(self, person_id: str) -> records.Person:
        """A person with the ids of all faces."""
        return self._people.get_person(self.describe(), person_id)

    def update(self, person_id: str, **values: Any) -> records.Person:
        """Set a person's `name`, `metadata` or both; returns the person."""
        return self._people.update_person(self.describe(), person_id, values)

    def forget(self, person_id: str) -> None:
        """Delete a person: gone from every answer once this returns."""
        self._people.forget_person(self.describe(), person_id)

    def forget_face(self, person_id: str, face_id: str) -> None:
        """Delete one face of a person."""
        self._people.forget_face(self.describe(), person_id, face_id)

    def delete(self) -> None:
        """Delete the collection with everybody in it."""
        self._people.delete_collection(self.name)

    def find_photos(self, photos: Sequence[AnyPhoto]) -> list[list[str]]:
        """For each photo the ids of the people who were enrolled with this very photo."""
        hashes = [hash_photo(to_photo(photo)) for photo in photos]
        found = self._people.find_photos(self.describe(), hashes)
        return [found.get(each, []) for each in hashes]

    @property
    def _people(self) -> Gallery:
        return self._faces.people

    def _enroll(
        self,
        person_id: str | None,
        photos: Sequence[AnyPhoto],
        embeddings: Sequence[AnyEmbedding],
        **others: Any,
    ) -> Enrollment:
        if person_id is not None:
            records.refuse_invalid_id(person_id, "person")
        recogniser = self._faces.pipeline.embedder.bundle
        request = EnrollRequest(
            collection=self.name,
            person_id=person_id,
            photos=[to_photo(photo) for photo in photos],
            embeddings=[accept_embedding(recogniser, np.asarray(each), None) for each in embeddings],
            **others,
        )
        return self._faces._run(enroll(self._faces.pipeline, self._faces.gallery, request))

    def _to_probe(self, probe: "AnyPhoto | AnyEmbedding") -> Photo | Embedding:
        """A photo, or for a row of numbers the embedding."""
        row = isinstance(probe, np.ndarray) and probe.ndim == 1
        if row or isinstance(probe, list | tuple):
            return accept_embedding(self._faces.pipeline.embedder.bundle, np.asarray(probe), None)
        return to_photo(probe)  # type: ignore[arg-type]


def to_photo(photo: AnyPhoto) -> Photo:
    """The content of a file for a path; bytes and PIL images as they are; arrays as RGB or grey pixels."""
    if isinstance(photo, bytes | Image.Image):
        return photo
    if isinstance(photo, np.ndarray):
        grey, colour = photo.ndim == 2, photo.ndim == 3 and photo.shape[2] == 3
        if photo.dtype != np.uint8 or not (grey or colour) or not photo.size:
            raise UnsupportedImage(
                "Pixels are an array of uint8 with the shape (height, width, 3) in RGB, or (height, width);"
                f" this one is {photo.dtype} of {photo.shape}."
            )
        return Image.fromarray(photo)
    return read_photo(Path(photo).expanduser())
