"""The folder of a bundle that is being made: it appears whole, or not at all."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sameface.model.bundles.bundle import MANIFEST
from sameface.model.errors import BundleRefused


def variant_folder(folder: Path, kind: str) -> Path:
    """The folder of a variant, beside that of the float32 bundle."""
    return folder.with_name(f"{folder.name}-{kind}")


def refuse_taken(folder: Path, *, replacing: bool) -> None:
    """Refuse a folder that is neither new nor empty, unless it holds a bundle and `replacing` is set."""
    if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
        return
    if not (folder / MANIFEST).exists():
        raise BundleRefused(f"{folder} is there already, and holds no bundle: name another with --out.")
    if not replacing:
        raise BundleRefused(f"{folder} holds a bundle already: name another with --out, or say --replace.")


@contextmanager
def staged(folder: Path) -> Iterator[tuple[Path, Path]]:
    """Yield a new folder, which replaces `folder` if the block succeeds, and a temporary cache folder."""
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{folder.name}.", dir=folder.parent) as yard:
            fresh, old = Path(yard) / "bundle", Path(yard) / "old"
            fresh.mkdir()
            yield fresh, Path(yard) / "cache"
            if folder.exists():
                folder.rename(old)
            try:
                fresh.rename(folder)
            except BaseException:  # also an interrupt: the old bundle would be deleted with the yard
                if old.exists():
                    old.rename(folder)
                raise
    except OSError as error:
        raise BundleRefused(f"{folder} cannot be written: {error.strerror or error}.") from error
