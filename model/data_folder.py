"""Where things are kept: one folder for all that a server or a command leaves behind."""

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
        """Who is enrolled: the one file that must not be lost."""
        return self.root.expanduser() / "gallery.db"

    @property
    def recognizer(self) -> Path:
        """The default recogniser's bundle."""
        return self.models / "sface-2021dec"

    @property
    def detector(self) -> Path:
        """The default detector's bundle."""
        return self.models / "yunet-2023mar"
