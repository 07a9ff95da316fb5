"""`sameface.open()`: everything that the server does with faces, in this process and without HTTP."""

import asyncio
import os
import threading
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, Literal, Self, TypeVar

from sameface.collection import Collection
from sameface.model.data_folder import DEFAULT_DATA, DataFolder
from sameface.model.decision.thresholds import TARGET_FMR, TARGET_FPIR, Rule
from sameface.model.gallery.gallery import Gallery, open_gallery
from sameface.model.pipeline import Detection, PhotoEmbeddings, Pipeline, PipelineOptions, open_pipeline
from sameface.model.store import records
from sameface.model.verify import Decision, VerifyRequest, verify
from sameface.photos import AnyPhoto, OneFace, WhichFaces, to_photo

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
        return self.run(verify(self.pipeline, self.gallery, request))

    def detect(self, photo: AnyPhoto, *, faces: WhichFaces = "all") -> Detection:
        """The faces in a photo: boxes, landmarks and quality."""
        return self.run(self.pipeline.detect(to_photo(photo), faces))

    def embed(self, photo: AnyPhoto, *, faces: WhichFaces = "all") -> PhotoEmbeddings:
        """The faces in a photo with their unit embeddings."""
        return self.run(self.pipeline.embed(to_photo(photo), faces))

    def collection(self, name: str, *, store_crops: bool = False) -> Collection:
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

    def run(self, operation: Coroutine[Any, Any, Result]) -> Result:
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
