"""Groups of people are compared at one threshold, and the worst of them may set it."""

from pathlib import Path

import pytest

from sameface.model.measurement.errors import LabelsRefused
from sameface.model.measurement.fit_calibration import calibrate
from sameface.model.measurement.groups import compare_groups, measure_groups, read_groups
from sameface.model.measurement.labelled_photos import LabelledFaces
from sameface.model.measurement.scores import LabelledEmbeddings
from tests.model.calibrated import draw_faces
from tests.networks import build_recogniser


@pytest.fixture
def faces() -> LabelledFaces:
    """Of two hundred people the last eighty look alike: they lean towards a common direction."""
    drawn = draw_faces(200)
    embeddings = drawn.embedded.embeddings.copy()
    alike = drawn.embedded.people >= 120
    embeddings[alike, 0] += 0.5
    embeddings[alike] /= (embeddings[alike] ** 2).sum(1, keepdims=True) ** 0.5
    return LabelledFaces(drawn.names, drawn.files, LabelledEmbeddings(embeddings, drawn.embedded.people), [])


def write_groups(folder: Path, text: str | None = None) -> Path:
    rows = "identity,group\n" + "".join(f"p{n},{'alike' if n >= 120 else 'diverse'}\n" for n in range(200))
    (folder / "groups.csv").write_text(rows if text is None else text)
    return folder / "groups.csv"


def test_every_group_is_compared_within_itself(faces: LabelledFaces, tmp_path: Path) -> None:
    alike, diverse = read_groups(write_groups(tmp_path), faces)
    assert (alike.name, alike.people, alike.impostor.pairs) == ("alike", 80, 160 * 158 / 2)
    assert (diverse.name, diverse.people, diverse.genuine.pairs) == ("diverse", 120, 120)


def test_the_worst_group_is_told_from_the_best(faces: LabelledFaces, tmp_path: Path) -> None:
    measured = measure_groups(read_groups(write_groups(tmp_path), faces), 0.4)
    fmr, fnmr = compare_groups(measured)
    assert fmr == pytest.approx(measured[0].rates.fmr.value / measured[1].rates.fmr.value)
    assert fmr > 2
    assert fnmr is None or fnmr >= 1


def test_a_threshold_by_the_worst_group_keeps_the_rate_in_every_group(
    faces: LabelledFaces, tmp_path: Path
) -> None:
    groups = read_groups(write_groups(tmp_path), faces)
    bundle = build_recogniser(tmp_path)
    options = {"data": "drawn", "target_fmr": 0.01, "groups": groups}
    of_all, of_worst = (
        calibrate(bundle, "g", faces, **options, by_worst_group=worst) for worst in (False, True)
    )
    assert max(group.rates.fmr.value for group in of_all.groups) > 0.012
    assert max(group.rates.fmr.value for group in of_worst.groups) <= 0.01
    assert of_worst.lowest_fmr == 30 / min(group.impostor.pairs for group in groups)


def test_the_worst_group_cannot_decide_where_there_are_none(faces: LabelledFaces, tmp_path: Path) -> None:
    with pytest.raises(LabelsRefused, match="give the groups"):
        calibrate(build_recogniser(tmp_path), "g", faces, data="drawn", target_fmr=0.01, by_worst_group=True)


def test_a_header_and_a_mark_of_byte_order_are_optional(faces: LabelledFaces, tmp_path: Path) -> None:
    with_both = write_groups(tmp_path).read_text()
    plain = write_groups(tmp_path, "\ufeff" + with_both.removeprefix("identity,group\n"))
    assert [group.people for group in read_groups(plain, faces)] == [80, 120]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("p0,a\n", "does not say the group of: p1, p10"),
        ("".join(f"p{n},a\n" for n in range(201)), "names people who are not in the folder: p200"),
        ("p0,a\np0,b\n", "names an identity twice"),
        ("p0;a\n", "two columns"),
        ("p0,\n", "two columns"),
        ("", "two columns"),
        (
            "".join(f"p{n},{'one' if n == 0 else 'others'}\n" for n in range(200)),
            "'one' has no genuine or no",
        ),
    ],
)
def test_a_list_that_does_not_match(faces: LabelledFaces, tmp_path: Path, text: str, sentence: str) -> None:
    with pytest.raises(LabelsRefused, match=sentence):
        read_groups(write_groups(tmp_path, text), faces)


def test_a_list_that_is_not_there(faces: LabelledFaces, tmp_path: Path) -> None:
    with pytest.raises(LabelsRefused, match="cannot be read"):
        read_groups(tmp_path / "gone.csv", faces)
