"""`sameface calibrate`, called in this process to watch what it reads."""

from pathlib import Path

from sameface.model.bundles import bundle as bundles
from sameface.model.commands.calibrate import calibrate
from tests.networks import build_recogniser
from tests.pictures import photo_of


def draw_people(folder: Path, people: int) -> None:
    """Two photos of each person, a folder for each."""
    for person in range(people):
        (folder / f"p{person:02}").mkdir(parents=True)
        for noise in range(2):
            (folder / f"p{person:02}" / f"{noise}.png").write_bytes(photo_of(person, noise=noise + 1))


def test_a_recogniser_is_read_and_hashed_once(data: Path, tmp_path: Path, monkeypatch) -> None:
    draw_people(tmp_path / "people", 16)
    (tmp_path / "bundle").mkdir()
    build_recogniser(tmp_path / "bundle")
    hashed: list[Path] = []
    hash_file = bundles.hash_file
    monkeypatch.setattr(bundles, "hash_file", lambda path: hashed.append(path) or hash_file(path))
    calibrate(
        tmp_path / "bundle",
        tmp_path / "people",
        data=tmp_path,
        detector=data / "models" / "detector",
        device="cpu",
        as_json=True,
    )
    assert [path.parent.name for path in hashed].count("bundle") == 1
    assert (tmp_path / "bundle" / "calibrations" / "own.json").exists()
