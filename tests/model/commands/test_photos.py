"""The command line, run as a user runs it."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from sameface.model.bundles.bundle import load_bundle
from tests.model.calibrated import calibrate_bundle
from tests.networks import DIMENSION, build_recogniser
from tests.pictures import photo_of


@pytest.fixture
def photos(tmp_path: Path) -> dict[str, Path]:
    contents = {"ada": photo_of(1), "ada again": photo_of(1, noise=3), "bob": photo_of(2), "room": photo_of()}
    for name, content in contents.items():
        (tmp_path / f"{name}.png").write_bytes(content)
    return {name: tmp_path / f"{name}.png" for name in contents}


def test_verify_exits_with_0_for_the_same_person_and_1_for_another(run, photos) -> None:
    same, different = (
        run("verify", photos["ada"], photos["ada again"]),
        run("verify", photos["ada"], photos["bob"]),
    )
    assert (same.returncode, different.returncode) == (0, 1)
    assert "the same person" in same.stdout
    assert "different people" in different.stdout


def test_verify_exits_with_2_and_one_sentence_on_an_error(run, photos) -> None:
    for photo, code in ((photos["room"], "no_face_found"), (Path("nowhere.png"), "unreadable_image")):
        result = run("verify", photos["ada"], photo)
        assert result.returncode == 2
        assert result.stderr.startswith(code)
        assert "Traceback" not in result.stderr


def test_verify_as_json_has_the_names_of_the_http_api(run, photos) -> None:
    answer = json.loads(run("verify", photos["ada"], photos["bob"], "--json").stdout)
    assert answer["same_person"] is False
    assert answer["probe"]["face"]["box"] == {"left": 48, "top": 96, "width": 48, "height": 48}
    assert answer.keys() >= {"similarity", "threshold", "calibration", "estimated_fmr", "timings_ms"}
    assert answer["probe"]["face"].keys() == {"box", "landmarks", "score", "quality"}


def test_an_error_as_json_is_json_too(run, photos) -> None:
    result = run("verify", photos["ada"], photos["room"], "--json")
    assert (result.returncode, json.loads(result.stdout)["code"]) == (2, "no_face_found")


def test_what_nobody_foresaw_is_an_error_and_not_another_person(run, photos, tmp_path) -> None:
    (tmp_path / "file").write_text("in the way of the cache")
    result = run("verify", photos["ada"], photos["ada"], SAMEFACE_DATA=str(tmp_path / "file"))
    assert result.returncode == 2
    assert "Traceback" not in result.stderr


def test_detect_draws_what_it_found(run, photos, tmp_path) -> None:
    drawn = tmp_path / "drawn.png"
    answer = json.loads(run("detect", photos["ada"], "--draw", drawn, "--json").stdout)
    assert answer["faces_found"] == 1
    with Image.open(drawn) as image:
        assert image.getpixel((48, 120)) == (0, 220, 90)
    assert "No face" in run("detect", photos["room"]).stdout
    for unwritable in (tmp_path / "drawn.xyz", tmp_path / "nowhere" / "drawn.png"):
        assert run("detect", photos["ada"], "--draw", unwritable).returncode == 2


def test_embed_prints_a_unit_embedding(run, photos) -> None:
    numbers = np.array(run("embed", photos["ada"]).stdout.split(), float)
    in_json = json.loads(run("embed", photos["ada"], "--json").stdout)["faces"][0]["embedding"]
    assert numbers.shape == (DIMENSION,)
    np.testing.assert_allclose(numbers, in_json, atol=1e-6)
    assert np.linalg.norm(numbers) == pytest.approx(1, abs=1e-4)


def test_models_are_listed(run) -> None:
    assert "tiny-recogniser" in run("models").stdout
    assert {model["kind"] for model in json.loads(run("models", "--json").stdout)["items"]} == {
        "recogniser",
        "detector",
    }


def test_a_broken_bundle_is_listed_with_its_fault(run, tmp_path) -> None:
    folder = tmp_path / "models" / "broken"
    folder.mkdir(parents=True)
    (folder / "bundle.json").write_text("{")
    [listed] = json.loads(run("models", "--json", SAMEFACE_DATA=str(tmp_path)).stdout)["items"]
    assert listed["name"] == "broken"
    assert "JSON" in listed["fault"]


def write_contract(source: Path, folder: Path, **changes: object) -> tuple[object, ...]:
    """The contract of a bundle with changes, and the words that make a bundle of it."""
    fields = json.loads((source / "bundle.json").read_text())
    contract = {key: value for key, value in fields.items() if key not in ("file", "sha256")} | changes
    (folder / "contract.json").write_text(json.dumps(contract))
    return ("pull", "--from", source / "tiny.onnx", "--contract", folder / "contract.json")


def test_a_recogniser_of_ones_own_becomes_a_bundle_that_verifies(run, data, photos, tmp_path) -> None:
    words = write_contract(data / "models" / "recogniser", tmp_path, name="mine")
    pulled = run(*words, SAMEFACE_DATA=str(tmp_path))
    assert pulled.returncode == 0, pulled.stderr
    bundle = load_bundle(tmp_path / "models" / "mine", "recogniser")
    assert run("verify", photos["ada"], photos["ada again"], "--recognizer", bundle.folder).returncode == 0


def test_a_recogniser_that_breaks_its_contract_leaves_nothing_behind(run, data, tmp_path) -> None:
    words = write_contract(data / "models" / "recogniser", tmp_path, dimension=512)
    pulled = run(*words, SAMEFACE_DATA=str(tmp_path))
    assert (pulled.returncode, pulled.stderr.partition(":")[0]) == (2, "bundle_refused")
    assert not (tmp_path / "models").exists()


@pytest.mark.parametrize("name", ["..", ".", "sface-2021dec"])
def test_a_recogniser_may_not_take_a_name_that_is_no_name_or_taken(run, data, tmp_path, name: str) -> None:
    words = write_contract(data / "models" / "recogniser", tmp_path, name=name)
    assert run(*words, SAMEFACE_DATA=str(tmp_path)).returncode == 2
    assert sorted(path.name for path in tmp_path.iterdir()) == ["contract.json"]


@pytest.mark.parametrize(
    "words", [("pull", "arcface"), ("pull", "--from", "x.onnx"), ("pull", "sface", "--contract", "x")]
)
def test_pull_says_what_is_missing(run, words: tuple[str, ...]) -> None:
    result = run(*words)
    assert result.returncode == 2
    assert "Traceback" not in result.stderr


def test_the_help_names_every_command_and_serving_loads_neither_torch_nor_milvus(run) -> None:
    result = run("--help")
    for name in ("serve", "pull", "models", "verify", "detect", "embed", "demo", "keys"):
        assert name in result.stdout
    loaded = (
        "import sameface.api.commands.serve, sameface.model.commands.photos, sys\n"
        "print({'torch', 'pymilvus', 'grpc'} & sys.modules.keys())"
    )
    assert (
        subprocess.run([sys.executable, "-c", loaded], capture_output=True, text=True, check=True).stdout
        == "set()\n"
    )


@pytest.mark.parametrize("words", [("verify",), ("serve",), ("gallery", "check"), ("calibrate",)])
def test_the_help_shows_no_type_for_a_flag_without_a_value(run, words: tuple[str, ...]) -> None:
    shown = run(*words, "--help").stdout
    assert "--json" in shown
    assert "<bool>" not in shown


def test_without_torch_training_says_what_to_install(tmp_path: Path) -> None:
    without = "import sys; sys.modules['torch'] = None; from sameface.cli import main; main()"
    for command in (["train", "recipe.toml"], ["bundle", "export", str(tmp_path / "last.pt")]):
        done = subprocess.run(
            [sys.executable, "-c", without, *command], capture_output=True, text=True, check=False
        )
        assert (done.returncode, ".[train]" in done.stderr) == (2, True), done.stderr


def test_any_other_module_that_is_missing_leaves_no_traceback() -> None:
    without = "import sys; sys.modules['onnx'] = None; from sameface.cli import main; main()"
    command = [sys.executable, "-c", without, "verify", "one.jpg", "other.jpg"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "internal" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_calibrated_verdict_says_what_a_similarity_means(run, photos, tmp_path) -> None:
    calibrate_bundle(build_recogniser(tmp_path))

    def verify(*flags: str) -> str:
        return run("verify", photos["ada"], photos["ada again"], *flags, SAMEFACE_RECOGNIZER=str(tmp_path))

    assert (
        "for FMR 1e-2; so similar are fewer than 1 in 2,653 strangers"
        in verify("--target-fmr", "0.01").stdout
    )
    refused = verify("--target-fmr", "1e-6")
    assert (refused.returncode, refused.stderr.split(":")[0]) == (2, "fmr_not_supported")
    assert "strangers, extrapolated" in verify("--target-fmr", "1e-6", "--extrapolate").stdout
    assert verify("--target-fmr", "0").stderr.startswith("invalid_request")
