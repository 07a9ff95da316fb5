"""Checks whether the store and the search engine can be used; the store at most once a second."""

import asyncio
import time

from sameface.model.errors import SamefaceError
from sameface.model.gallery.gallery import Gallery

CHECK_SECONDS = 1.0  # between two looks
PATIENCE_SECONDS = 2.0  # for an answer of a disk that hangs


class StoreCheck:
    """The last check of the store, whose result is shared by all calls within a second."""

    def __init__(self) -> None:
        self._look: asyncio.Future[None] | None = None
        self._looked = -CHECK_SECONDS

    async def find_fault(self, gallery: Gallery) -> str | None:
        """Why the store cannot be read, or None if it can."""
        waiting = self._look is not None and not self._look.done()
        if self._look is None or not (waiting or time.monotonic() - self._looked < CHECK_SECONDS):
            self._looked = time.monotonic()
            self._look = asyncio.ensure_future(gallery.readers.run(gallery.store.refuse_unreadable))
        try:
            await asyncio.wait_for(asyncio.shield(self._look), PATIENCE_SECONDS)
        except TimeoutError:
            return f"it does not answer within {PATIENCE_SECONDS:g} seconds"
        except SamefaceError as error:
            return error.detail
        return None

    async def find_index_fault(self, gallery: Gallery) -> str | None:
        """Why Milvus cannot be searched, or None if it can; FAISS always can."""
        if gallery.milvus is None:
            return None
        looking = gallery.readers.run(gallery.indexes.find_fault)
        try:
            return await asyncio.wait_for(looking, PATIENCE_SECONDS)
        except TimeoutError:
            return f"It does not answer within {PATIENCE_SECONDS:g} seconds."
