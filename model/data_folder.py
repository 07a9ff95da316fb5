"""The data folder: where models, prepared graphs and the gallery are kept."""

from dataclasses import dataclass
from pathlib import Path

DEFAULT_DATA = Path("~/.sameface")


@dataclass(frozen=True, slots=True)
class DataFolder:
    """The owner's data folder and the places inside it."""

    root: Path = DEFAULT_DATA

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
    def gallery(self) -> Path:
        """The database of enrolled people: the one file that must not be lost."""
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
