"""An index in memory, with the state of its snapshot."""

from dataclasses import dataclass

from sameface.model.gallery.index.faiss.face_index import FaceIndex
from sameface.model.store.records import Collection

SAVE_CHANGES = 1_000  # fewer changes are replayed faster than a snapshot is loaded
SAVE_SHARE = 0.1  # of the faces that may change before a new snapshot is written


@dataclass(slots=True, eq=False)
class LoadedIndex:
    """An index in memory, and the state of its snapshot."""

    collection: Collection
    index: FaceIndex
    saved: int  # the change number of its snapshot, 0 if there is none
    failed: int | None = None  # the change number at which `_tend` last failed; None if it worked
    tended: bool = False  # `_tend` runs, or is queued
    called: bool = False  # it is to catch up soon

    @property
    def needed_after(self) -> int:
        """The last change no longer needed: the snapshot's, where a restart begins, or the index's, if there
        is no snapshot or another process has written a newer one."""
        return min(self.saved or self.index.sequence, self.index.sequence)

    @property
    def unsaved(self) -> int:
        """The number of changes since the snapshot."""
        return self.index.sequence - self.saved

    @property
    def worth_saving(self) -> bool:
        """Whether a restart would miss a snapshot, or an old one may hold a face that was deleted."""
        return self.unsaved >= (1 if self.saved else SAVE_CHANGES)

    @property
    def needs_tending(self) -> bool:
        """Whether to rebuild or save the index; after a failure, only once as much has changed again."""
        due = max(SAVE_CHANGES, SAVE_SHARE * self.index.columns.count)
        if self.failed is not None and self.index.sequence - self.failed < due:
            return False
        return self.unsaved >= due or self.index.needs_rebuilding
