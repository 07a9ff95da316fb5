"""The networks, the gallery and an event loop behind `sameface.open()`, each opened by the first caller."""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from sameface.model.data_folder import DataFolder
from sameface.model.gallery.gallery import Gallery, open_gallery
from sameface.model.gallery.index.search_engine import expect_kind
from sameface.model.gallery.roster import Roster
from sameface.model.pipeline import Pipeline, PipelineOptions, open_pipeline
from sameface.model.store.records import Collection

Result = TypeVar("Result")


class Engine:
    """The pipeline, the gallery and the event loop of `sameface.open()`, safe to use from any thread."""

    def __init__(self, folder: DataFolder, options: PipelineOptions) -> None:
        self.folder = folder
        self.options = options
        self._parts: dict[str, Any] = {}
        self._opening = threading.RLock()
        self._closed = False

    def close(self) -> None:
        """Close the networks, the gallery and the event loop, in the reverse order of opening."""
        with self._opening:
            self._closed = True
            for part in reversed(self._parts.values()):
                part.close()
            self._parts.clear()

    @property
    def pipeline(self) -> Pipeline:
        """The networks, loaded by the first caller."""
        pipeline: Pipeline = self._once("pipeline", lambda: open_pipeline(self.options))
        return pipeline

    @property
    def gallery(self) -> Gallery:
        """The gallery of the pipeline's recogniser, opened by the first caller."""
        gallery: Gallery = self._once("gallery", lambda: open_gallery(self.folder, self.pipeline))
        return gallery

    @property
    def people(self) -> Roster:
        """The people of all collections, whichever recogniser they belong to; needs no networks."""
        people: Roster = self._once("people", lambda: Roster(self.folder.gallery))
        return people

    def index_kind(self, collection: Collection) -> str:
        """How the collection is searched, or will be once the networks are loaded, which this does not do."""
        gallery: Gallery | None = self._parts.get("gallery")
        return gallery.index_kind(collection) if gallery else expect_kind(collection, self.folder.milvus)

    def _once(self, name: str, open_part: Callable[[], Any]) -> Any:
        """The part of this name, opened by the first caller and closed with the engine."""
        with self._opening:
            if self._closed:
                raise ValueError("these faces are closed")
            if name not in self._parts:
                self._parts[name] = open_part()
            return self._parts[name]

    def run(self, operation: Coroutine[Any, Any, Result]) -> Result:
        """Run `operation` on the event loop's thread, and return its result."""
        loop: LoopThread = self._once("loop", LoopThread)
        future = asyncio.run_coroutine_threadsafe(operation, loop.loop)
        try:
            return future.result()
        except BaseException:  # an interrupted caller no longer waits
            future.cancel()
            raise


class LoopThread:
    """An event loop in its own thread, so that the caller may already run one, as a notebook does."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever, name="sameface-loop", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop the loop and wait for its thread."""
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()
        self.loop.close()
