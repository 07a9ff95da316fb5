"""A bundle of eight bits: a model of its own, measured beside the exact one, or refused with the reason."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

from sameface.model.bundles.bundle import Bundle, load_bundle
from sameface.model.decision.calibration import Rate
from sameface.model.decision.calibration_files import Calibrations
from sameface.model.errors import BundleRefused, NoFaceFound
from sameface.model.measurement.paired_rates import PairedRates
from sameface.model.observer import ignore_progress
from sameface.model.photo.embed import Embedder
from sameface.training.commands.quantize import app
from sameface.training.data.synthetic.people import write_identities
from sameface.training.errors import DatasetRefused
from sameface.training.export.quantize import Comparison, refuse_loss
from sameface.training.export.quantize_photos import read_photos
from tests.networks import build_detector
from tests.training.export.int8_networks import build_uneven


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("people")
    write_identities(folder, 60, 4)
    return folder


def run(*arguments: object) -> str:
    result = CliRunner().invoke(app, ["quantize", *map(str, arguments)], catch_exceptions=False)
    assert result.exit_code == 0
    return result.output


def test_it_is_a_model_of_its_own_with_calibration_and_card(people: Path, tmp_path: Path) -> None:
    exact = build_uneven(tmp_path / "exact")
    said = run(exact.folder, "--photos", people, "--aligned", "--out", tmp_path / "small", "--data", tmp_path)
    assert "uneven-int8 is in" in said.replace("\n", "")
    small = load_bundle(tmp_path / "small")
    assert small.contract.name == "uneven-int8"
    assert small.identity != exact.identity
    parity = small.contract.parity or {}
    assert (parity["variant"], parity["layers"], parity["faces"], parity["people"]) == ("int8", 3, 120, 30)
    assert 0.995 <= parity["mean_cosine"] < 1
    [calibration] = Calibrations(small).list()
    assert calibration.name == "uneven-int8/photos" == f"uneven-int8/{small.contract.calibration}"
    assert (calibration.identity, calibration.evidence.people) == (small.identity, 30)
    card = (small.folder / "README.md").read_text()
    assert "uneven in eight bits" in card
    assert f"{parity['mean_cosine']:.4f} on average" in card
    with pytest.raises(BundleRefused, match="holds a bundle already"):
        run(exact.folder, "--photos", people, "--aligned", "--out", tmp_path / "small", "--data", tmp_path)


def test_photos_without_labels_make_no_calibration(people: Path, tmp_path: Path) -> None:
    exact = build_uneven(tmp_path / "exact")
    flat = tmp_path / "flat"
    flat.mkdir()
    for path in sorted(people.rglob("*.png"))[:80]:
        (flat / path.name).write_bytes(path.read_bytes())
    run(exact.folder, "--photos", flat, "--aligned", "--out", tmp_path / "small", "--data", tmp_path)
    small = load_bundle(tmp_path / "small")
    assert (small.contract.calibration, small.contract.published_threshold) == (None, 0.4)
    warnings = " ".join((small.contract.parity or {})["warnings"])
    assert "not in folders by person" in warnings
    assert "40 faces that set ranges are few: 200 photos or more" in warnings


def test_one_person_is_warned_about_with_the_number_needed(tmp_path: Path) -> None:
    exact = build_uneven(tmp_path / "exact")
    write_identities(tmp_path / "people", 1, 70)
    run(
        exact.folder,
        "--photos",
        tmp_path / "people",
        "--aligned",
        "--out",
        tmp_path / "s",
        "--data",
        tmp_path,
    )
    small = load_bundle(tmp_path / "s")
    assert small.contract.calibration is None
    assert "one person: give those of 26 or more" in " ".join((small.contract.parity or {})["warnings"])


def test_too_few_photos_or_faces_are_refused_with_the_number_needed(tmp_path: Path) -> None:
    exact = build_uneven(tmp_path / "exact")
    write_identities(tmp_path / "five", 1, 5)
    options = ("--aligned", "--out", tmp_path / "small", "--data", tmp_path)
    with pytest.raises(DatasetRefused, match="has 5 faces in 5 photos; it takes 60"):
        run(exact.folder, "--photos", tmp_path / "five", *options)
    with pytest.raises(DatasetRefused, match="is no folder"):
        run(exact.folder, "--photos", tmp_path / "none", *options)
    assert not (tmp_path / "small").exists()


def test_photos_without_faces_are_refused(tmp_path: Path) -> None:
    exact = build_uneven(tmp_path / "exact")
    rooms, detector = tmp_path / "rooms", tmp_path / "detector"
    rooms.mkdir()
    detector.mkdir()
    for number in range(70):
        Image.new("RGB", (64, 64), (number, 0, 0)).save(rooms / f"{number}.png")
    with pytest.raises(DatasetRefused, match="has 0 faces in 70 photos; it takes 60"):
        run(
            exact.folder, "--photos", rooms, "--out", tmp_path / "small", "--data", tmp_path,
            "--detector", build_detector(detector).folder,
        )  # fmt: skip


HOMES = 7


def write_homes(folder: Path, rooms: int) -> Path:
    """Six folders of ten portraits and one of sixty rooms, which is the folder of number `rooms`."""
    for home in range(HOMES):
        (folder / str(home)).mkdir(parents=True)
        for number in range(60 if home == rooms else 10):
            (folder / str(home) / f"{number:02}.png").write_bytes(b"room" if home == rooms else b"face")
    return folder


def cut_face(content: bytes) -> np.ndarray:
    if content == b"room":
        raise NoFaceFound("no face")
    return np.zeros((8, 8, 3), np.uint8)


@pytest.mark.parametrize(
    ("drawn", "said"), [(HOMES - 1, "leaves 0 faces to set ranges by and 60 others"), (0, None)]
)
def test_faces_that_are_all_in_one_part_are_refused(tmp_path: Path, drawn: int, said: str | None) -> None:
    """The trial is drawn by folders: the last one that is drawn has no room in it."""
    rooms = int(np.random.default_rng(0).permutation(HOMES)[drawn])
    folder = write_homes(tmp_path, rooms)
    if said:
        with pytest.raises(DatasetRefused, match=said):
            read_photos(folder, cut_face, 2000, ignore_progress)
        return
    read = read_photos(folder, cut_face, 2000, ignore_progress)
    assert (len(read.ranging), len(read.trial)) == (10, 50)
    assert "10 faces that set ranges are few" in " ".join(read.warnings)


def test_the_embedders_that_are_compared_are_closed(
    people: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed, close = [], Embedder.close
    monkeypatch.setattr(Embedder, "close", lambda self: (closed.append(self.identity), close(self)))
    exact = build_uneven(tmp_path / "exact")
    run(exact.folder, "--photos", people, "--aligned", "--out", tmp_path / "small", "--data", tmp_path)
    assert len(closed) == len(set(closed)) == 2


def test_a_detector_is_refused(people: Path, tmp_path: Path) -> None:
    (tmp_path / "detector").mkdir()
    detector = build_detector(tmp_path / "detector")
    with pytest.raises(BundleRefused, match="holds a detector; a recogniser is needed"):
        run(detector.folder, "--photos", people, "--aligned", "--data", tmp_path)


def compared(mean_cosine: float, *rates: PairedRates) -> Comparison:
    return Comparison(
        faces=100, people=10, layers=3, exact_layers=0, mean_cosine=mean_cosine, worst_cosine=0.9,
        rates=rates, crops_per_second=2, exact_crops_per_second=1, engine="", exact_engine="", warnings=(),
    )  # fmt: skip


def missed(first: float, second: float, low: float) -> PairedRates:
    rates = Rate(first, 0, 1), Rate(second, 0, 1)
    return PairedRates(1e-3, *rates, Rate(second - first, low, second - first + 0.01))


def test_a_loss_beyond_chance_is_refused() -> None:
    refuse_loss(compared(0.996, missed(0.02, 0.0215, 0.001)), 0.995)  # within a tenth
    refuse_loss(compared(0.996, missed(0.02, 0.03, 0.001)), 0.995)  # chance explains it
    with pytest.raises(BundleRefused, match=r"FNMR grows from 2\.00% to 3\.00%"):
        refuse_loss(compared(0.996, missed(0.02, 0.03, 0.005)), 0.995)
    with pytest.raises(BundleRefused, match=r"mean cosine .* 0\.9900 .* 0\.995 is asked for"):
        refuse_loss(compared(0.99), 0.995)


def test_quantising_needs_no_torch() -> None:
    import subprocess
    import sys

    asked = "import sys, sameface.training.commands.quantize; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", asked], check=True, timeout=60)


def test_an_eight_bit_bundle_is_served_like_any_other(people: Path, tmp_path: Path) -> None:
    from sameface.model.photo.embed import open_embedder

    exact = build_uneven(tmp_path / "exact")
    run(exact.folder, "--photos", people, "--aligned", "--out", tmp_path / "small", "--data", tmp_path)
    small: Bundle = load_bundle(tmp_path / "small")
    crop = np.asarray(Image.open(next(people.rglob("*.png"))))
    embeddings = [open_embedder(each, "cpu", tmp_path / "cache").embed([crop])[0] for each in (exact, small)]
    assert embeddings[0].identity != embeddings[1].identity
    assert float(embeddings[0].values @ embeddings[1].values) > 0.98
