"""Files: written whole or not at all."""

from collections.abc import Callable
from pathlib import Path

import pytest

from sameface.model.files import write_atomically


def test_a_file_is_replaced_whole(tmp_path: Path) -> None:
    path = tmp_path / "file"
    write_atomically(path, b"old and long")
    write_atomically(path, b"new")
    assert path.read_bytes() == b"new"
    assert list(tmp_path.iterdir()) == [path]


def write_what_is_no_bytes(folder: Path) -> None:
    write_atomically(folder / "kept", "text")


def write_over_a_folder(folder: Path) -> None:
    write_atomically(folder / "taken", b"content")


@pytest.mark.parametrize(
    ("write", "error"), [(write_what_is_no_bytes, TypeError), (write_over_a_folder, OSError)]
)
def test_a_failed_write_leaves_nothing_behind_and_the_old_file_whole(
    tmp_path: Path, write: Callable[[Path], None], error: type[Exception]
) -> None:
    (tmp_path / "kept").write_bytes(b"old")
    (tmp_path / "taken").mkdir()
    with pytest.raises(error):
        write(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"kept", "taken"}
    assert (tmp_path / "kept").read_bytes() == b"old"
