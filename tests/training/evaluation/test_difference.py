"""Two bundles on the same photos differ by what a paired bootstrap says, and not by the luck of the draw."""

from dataclasses import replace

import numpy as np
import pytest

from sameface.model.measurement.intervals import measure_mean_rate
from sameface.model.measurement.labelled_photos import LabelledFaces
from sameface.model.measurement.scores import LabelledEmbeddings, ListedPairs
from sameface.training.evaluation.data_sets import ListedFaces
from sameface.training.evaluation.difference import compare_bundles
from sameface.training.evaluation.evaluate import find_equal, score
from tests.model.calibrated import draw_faces

NAMES = ("old", "new")


def blur(faces: LabelledFaces, noise: float) -> LabelledFaces:
    """The same faces as a worse bundle embeds them."""
    embeddings = faces.embedded.embeddings
    blurred = embeddings + np.random.default_rng(5).normal(0, noise, embeddings.shape).astype(np.float32)
    blurred /= np.linalg.norm(blurred, axis=1, keepdims=True)
    return replace(faces, embedded=LabelledEmbeddings(blurred, faces.embedded.people))


def listed(similarities: np.ndarray, same: np.ndarray) -> ListedFaces:
    each = np.arange(len(same))
    pairs = ListedPairs(similarities.astype(np.float32), same, each, each, each % 4)
    return ListedFaces(pairs, 2 * len(same), [], "pairs", {})


def test_a_worse_bundle_is_worse_by_the_difference_of_the_rates() -> None:
    one = draw_faces(80, 3, likeness=0.3)
    other = blur(one, 0.1)
    found = compare_bundles(NAMES, (one, other))
    eers = [
        measure_mean_rate(each.embedded, find_equal(*score(each.embedded))).value for each in (one, other)
    ]
    assert found.eer.value == pytest.approx(eers[1] - eers[0])
    assert found.eer.low < found.eer.value < found.eer.high
    assert found.verdict == "worse"
    assert found.sentence.startswith("old errs less than new here: its equal error rate is lower by")
    assert [row.target_fmr for row in found.decades] == [0.1, 0.01]  # as far as the pairs support it
    assert found.wrong is None
    back = compare_bundles(NAMES, (other, one))
    assert (back.verdict, back.eer.value) == ("better", -found.eer.value)
    assert (back.eer.low, back.eer.high) == pytest.approx((-found.eer.high, -found.eer.low))


def test_both_bundles_are_measured_on_the_same_draws() -> None:
    """Their own intervals overlap, and that of the difference is narrower than either."""
    one = draw_faces(80, 3, likeness=0.3)
    other = blur(one, 0.03)
    found = compare_bundles(NAMES, (one, other))
    alone = [measure_mean_rate(each.embedded, find_equal(*score(each.embedded))) for each in (one, other)]
    assert alone[1].low < alone[0].high
    assert found.eer.high - found.eer.low < min(rate.high - rate.low for rate in alone)


def test_a_bundle_does_not_differ_from_itself() -> None:
    faces = draw_faces(40, 2, likeness=0.3)
    found = compare_bundles(NAMES, (faces, faces))
    assert (found.verdict, found.eer.value, found.eer.low, found.eer.high) == ("cannot_say", 0, 0, 0)
    assert "cannot say whether old or new errs less" in found.sentence


def test_without_any_error_the_rule_of_three_bounds_the_difference() -> None:
    same = np.arange(100) % 2 == 0
    perfect = listed(np.where(same, 0.9, 0.1), same)
    found = compare_bundles(NAMES, (perfect, perfect))
    assert (found.eer.low, found.eer.high) == (-3 / 50, 3 / 50)
    assert (found.wrong.low, found.wrong.high) == (-3 / 100, 3 / 100)


def test_only_photos_that_both_embedded_are_compared() -> None:
    one = draw_faces(40, 3, likeness=0.3)
    kept = np.arange(len(one.files)) % 5 > 0
    other = LabelledFaces(
        one.names,
        [file for file, keep in zip(one.files, kept, strict=True) if keep],
        LabelledEmbeddings(one.embedded.embeddings[kept], one.embedded.people[kept]),
        [],
    )
    assert compare_bundles(NAMES, (one, other)).eer.value == 0
    same = np.arange(100) % 2 == 0
    similarities = np.where(same, 0.9, 0.1) + np.random.default_rng(0).normal(0, 0.3, 100)
    gaps = np.where(np.arange(100) % 7 == 0, np.nan, similarities)
    found = compare_bundles(NAMES, (listed(similarities, same), listed(gaps, same)))
    assert (found.eer.value, found.wrong.value) == (0, 0)
