"""Raw photos become crops, once each, and what does not is reported."""

import csv
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from PIL.JpegImagePlugin import get_sampling

from sameface.model.files import exclusive_lock
from sameface.model.pipeline import Pipeline, PipelineOptions
from sameface.training.data.face_set import open_faces
from sameface.training.data.prepare import FaceCutter, encode_jpeg, open_cutter, prepare_faces
from sameface.training.errors import DatasetRefused
from tests.conftest import wait_for
from tests.pictures import draw_photo, draw_speck, encode, photo_of


class WatchedCutter(FaceCutter):
    """A real one that counts what it is given."""

    looks = 0

    def cut(self, photo: bytes):
        self.looks += 1
        return super().cut(photo)


@pytest.fixture
def cutter(options: PipelineOptions) -> WatchedCutter:
    return WatchedCutter(open_cutter(options).finder, "prominent")


@pytest.fixture
def raw(tmp_path: Path) -> Path:
    """Two people with two good photos each, and one photo for every reason to drop it."""
    contents = {
        "ada/1.png": photo_of(1),
        "ada/2.JPG": encode(draw_photo(1, noise=2), "JPEG"),
        "ada/room.png": photo_of(),
        "ada/text.jpg": b"not an image",
        "ada/notes.txt": b"not even named like one",
        "bob/1.webp": encode(draw_photo(2), "WEBP", lossless=True),
        "bob/2.bmp": encode(draw_photo(2, 3, noise=1), "BMP"),
        "bob/cut short.png": photo_of(2)[:200],
        "bob/speck.png": encode(draw_speck()),
        "loose.png": photo_of(4),
    }
    write_all(tmp_path / "raw", contents)
    return tmp_path / "raw"


def write_all(folder: Path, contents: dict[str, bytes]) -> None:
    for name, content in contents.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)


def read_all(folder: Path) -> dict[str, tuple[bytes, int]]:
    """Every crop's content and time."""
    crops = folder.glob("*/*")
    return {str(crop.relative_to(folder)): (crop.read_bytes(), crop.stat().st_mtime_ns) for crop in crops}


def read_reasons(out: Path) -> dict[str, str]:
    with (out / "dropped.csv").open(newline="", encoding="utf-8") as file:
        return {row["photo"]: row["reason"] for row in csv.DictReader(file)}


REASONS = {
    "ada/room.png": "no_face_found",
    "ada/text.jpg": "unsupported_image",
    "bob/cut short.png": "unreadable_image",
    "bob/speck.png": "face_too_small",
}


def test_every_crop_is_the_one_that_the_pipeline_aligns(
    raw: Path, tmp_path: Path, cutter: FaceCutter, pipeline: Pipeline
) -> None:
    summary = prepare_faces(raw, tmp_path / "out", cutter)
    assert (summary.identities, summary.photos, summary.crops_made) == (2, 8, 4)
    photos = {"ada/1.jpg": "ada/1.png", "ada/2.jpg": "ada/2.JPG", "bob/1.jpg": "bob/1.webp"}
    photos["bob/2.jpg"] = "bob/2.bmp"
    crops = read_all(tmp_path / "out")
    assert crops.keys() == photos.keys()
    for crop, photo in photos.items():
        [face] = pipeline.find_faces((raw / photo).read_bytes(), "prominent").faces
        assert crops[crop][0] == encode_jpeg(face.crop)
        with Image.open(tmp_path / "out" / crop) as image:
            assert image.size == (112, 112)
            assert get_sampling(image) == 0  # colours at full size
            assert np.abs(np.asarray(image).astype(int) - face.crop).mean() < 3
    assert len(open_faces(tmp_path / "out")) == 4


def test_what_was_dropped_is_reported_with_its_reason(raw: Path, tmp_path: Path, cutter: FaceCutter) -> None:
    summary = prepare_faces(raw, tmp_path / "out", cutter)
    assert read_reasons(tmp_path / "out") == REASONS
    assert summary.dropped == dict.fromkeys(REASONS.values(), 1)


def test_a_second_run_does_nothing_again_and_reports_the_whole(
    raw: Path, tmp_path: Path, cutter: WatchedCutter
) -> None:
    first, crops = prepare_faces(raw, tmp_path / "out", cutter), read_all(tmp_path / "out")
    cutter.looks = 0
    second = prepare_faces(raw, tmp_path / "out", cutter)
    assert (cutter.looks, second.crops_made, second.already_there) == (0, 0, 4)
    assert second.dropped == first.dropped
    assert read_all(tmp_path / "out") == crops
    assert read_reasons(tmp_path / "out") == REASONS


def test_a_dropped_photo_is_looked_at_again_once_it_has_changed(
    raw: Path, tmp_path: Path, cutter: WatchedCutter
) -> None:
    prepare_faces(raw, tmp_path / "out", cutter)
    (raw / "ada" / "room.png").write_bytes(photo_of(1, noise=5))
    (raw / "bob" / "speck.png").unlink()
    cutter.looks = 0
    summary = prepare_faces(raw, tmp_path / "out", cutter)
    assert (cutter.looks, summary.crops_made, summary.photos) == (1, 1, 7)
    assert read_reasons(tmp_path / "out").keys() == {"ada/text.jpg", "bob/cut short.png"}


def test_dropped_photos_are_looked_at_again_on_request(
    raw: Path, tmp_path: Path, cutter: WatchedCutter
) -> None:
    prepare_faces(raw, tmp_path / "out", cutter)
    cutter.looks = 0
    prepare_faces(raw, tmp_path / "out", cutter, retry=True)
    assert cutter.looks == len(REASONS)
    assert read_reasons(tmp_path / "out") == REASONS


def test_a_damaged_report_costs_a_second_look_and_nothing_else(
    raw: Path, tmp_path: Path, cutter: WatchedCutter
) -> None:
    prepare_faces(raw, tmp_path / "out", cutter)
    (tmp_path / "out" / "dropped.csv").write_bytes(b'a,b\n\xff\xfe"\x00,,,\n')
    prepare_faces(raw, tmp_path / "out", cutter)
    assert read_reasons(tmp_path / "out") == REASONS


def test_photos_with_the_same_stem_do_not_overwrite_each_other(tmp_path: Path, cutter: FaceCutter) -> None:
    names = ("a.bmp", "a.png", "a.png.bmp", "b.png")
    write_all(tmp_path / "raw", {f"ada/{name}": photo_of(1, noise=i) for i, name in enumerate(names)})
    assert prepare_faces(tmp_path / "raw", tmp_path / "out", cutter).crops_made == 4
    assert {Path(crop).name for crop in read_all(tmp_path / "out")} == {
        "a.bmp.jpg",
        "a.png.jpg",
        "a.png.bmp.jpg",
        "b.jpg",
    }


def test_a_name_that_is_not_utf8_is_reported_and_recognised(tmp_path: Path, cutter: WatchedCutter) -> None:
    write_all(tmp_path / "raw", {"ada/1.png": photo_of(1), os.fsdecode(b"ada/caf\xe9.png"): photo_of()})
    for _ in range(2):
        assert prepare_faces(tmp_path / "raw", tmp_path / "out", cutter).dropped == {"no_face_found": 1}
    assert cutter.looks == 2


def test_an_interrupted_run_keeps_what_it_knows_and_the_next_goes_on(
    raw: Path, tmp_path: Path, cutter: WatchedCutter
) -> None:
    def interrupt(_: str, done: int, __: int | None) -> None:
        if done == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        prepare_faces(raw, tmp_path / "out", cutter, progress=interrupt)
    assert read_reasons(tmp_path / "out") == {"ada/room.png": "no_face_found"}
    assert not list((tmp_path / "out").rglob("*.part"))
    summary = prepare_faces(raw, tmp_path / "out", cutter)
    assert summary.already_there >= 2
    assert summary.crops_made + summary.already_there == 4
    assert read_reasons(tmp_path / "out") == REASONS


@pytest.mark.parametrize("by", [signal.SIGINT, signal.SIGKILL])
def test_a_stopped_process_leaves_only_whole_crops(data: Path, tmp_path: Path, by: signal.Signals) -> None:
    raw, out = tmp_path / "raw", tmp_path / "out"
    write_all(raw, dict.fromkeys([f"ada/{number}.png" for number in range(400)], photo_of(1)))
    words = [sys.executable, "-m", "sameface", "prepare", raw, out, "--data", data]
    words += ["--detector", data / "models" / "detector", "--json"]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    wait_for(lambda: len(list(out.glob("*/*.jpg"))) > 5)
    process.send_signal(by)
    process.communicate()
    assert process.returncode != 0
    made = list(out.glob("*/*.jpg"))
    assert 5 < len(made) < 400
    for crop in made:
        with Image.open(crop) as image:
            image.load()
    (out / "ada" / "399.jpg.1.part").write_bytes(b"of a process that was killed")
    summary = json.loads(subprocess.run(words, capture_output=True, check=True).stdout)
    assert (summary["already_there"], summary["crops_made"]) == (len(made), 400 - len(made))
    assert not list(out.rglob("*.part"))


def test_two_runs_at_once_into_one_folder_are_refused(raw: Path, tmp_path: Path, cutter: FaceCutter) -> None:
    with (
        exclusive_lock(tmp_path / "out" / ".preparing"),
        pytest.raises(DatasetRefused, match="Another process"),
    ):
        prepare_faces(raw, tmp_path / "out", cutter)


def test_a_crop_that_cannot_be_written_ends_the_run(raw: Path, tmp_path: Path, cutter: FaceCutter) -> None:
    write_all(tmp_path, {"out/bob": b"in the way of a folder"})
    with pytest.raises(DatasetRefused, match=r"bob/1\.jpg cannot be written"):
        prepare_faces(raw, tmp_path / "out", cutter)
    assert (tmp_path / "out" / "ada" / "1.jpg").exists()


def test_the_command_needs_no_recogniser_and_says_what_it_did(run, raw: Path, tmp_path: Path) -> None:
    nowhere = {"SAMEFACE_RECOGNIZER": str(tmp_path / "nowhere")}
    made = run("prepare", raw, tmp_path / "out", **nowhere)
    assert made.returncode == 0, made.stderr
    assert "4 crops of 8 photos of 2 identities" in made.stdout
    assert all(reason in made.stdout for reason in REASONS.values())
    again = json.loads(run("prepare", raw, tmp_path / "out", "--json", **nowhere).stdout)
    assert again == {
        "identities": 2,
        "photos": 8,
        "crops_made": 0,
        "already_there": 4,
        "dropped": dict.fromkeys(REASONS.values(), 1),
        "report": str(tmp_path / "out" / "dropped.csv"),
    }


def test_only_one_face_may_be_asked_for(run, raw: Path, tmp_path: Path) -> None:
    summary = json.loads(run("prepare", raw, tmp_path / "out", "--faces", "only", "--json").stdout)
    assert (summary["crops_made"], summary["dropped"]["several_faces_found"]) == (3, 1)


@pytest.mark.parametrize(
    ("source", "target", "said"),
    [
        ("nowhere", "out", "There is no folder"),
        ("file", "out", "There is no folder"),
        ("empty", "out", "has no folders of photos"),
        ("flat", "out", "but no folders of them"),
        ("raw", "raw/crops", "in one another"),
        ("raw", "raw", "in one another"),
        ("raw", ".", "in one another"),
        ("raw", "file", "cannot be written"),
        ("raw", "file/out", "cannot be written"),
    ],
)
def test_bad_folders_are_refused(
    raw: Path, tmp_path: Path, cutter: FaceCutter, source: str, target: str, said: str
) -> None:
    assert raw == tmp_path / "raw"
    write_all(tmp_path, {"flat/1.png": photo_of(1), "file": b"no folder"})
    (tmp_path / "empty" / "ada").mkdir(parents=True)
    with pytest.raises(DatasetRefused, match=said):
        prepare_faces(tmp_path / source, tmp_path / target, cutter)
    assert not (tmp_path / "out").exists()


def test_a_refusal_is_one_sentence(run, tmp_path: Path) -> None:
    result = run("prepare", tmp_path / "nowhere", tmp_path / "out")
    assert result.returncode == 2
    assert result.stderr == f"dataset_refused: There is no folder {tmp_path / 'nowhere'}.\n"


def test_a_missing_detector_says_what_to_run(run, raw: Path, tmp_path: Path) -> None:
    result = run("prepare", raw, tmp_path / "out", "--detector", tmp_path / "nowhere")
    assert (result.returncode, result.stderr.partition(":")[0]) == (2, "bundle_refused")
    assert "sameface pull" in result.stderr


def test_preparing_needs_no_torch() -> None:
    script = "import sys; sys.modules['torch'] = None; import sameface.training.commands.data"
    subprocess.run([sys.executable, "-c", script], check=True)
