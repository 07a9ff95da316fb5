"""Labelled faces to a calibration: the curve, its tail, and the rates that the data supports."""

import math
from collections.abc import Sequence
from datetime import UTC, datetime

from sameface.model.bundles.bundle import Bundle
from sameface.model.decision.calibration import Calibration, Curve, ErrorRates, Evidence
from sameface.model.decision.calibration_files import complete_name
from sameface.model.decision.similarity import STEPS
from sameface.model.measurement.errors import LabelsRefused
from sameface.model.measurement.face_counts import measure_fusions
from sameface.model.measurement.groups import Group, measure_groups
from sameface.model.measurement.intervals import measure_rates
from sameface.model.measurement.labelled_photos import LabelledFaces
from sameface.model.measurement.photo_sketch import draw_sketch
from sameface.model.measurement.scores import LabelledEmbeddings, Scores, score_all_pairs

RULE_OF_30 = 30  # a rate is supported if the data has this many false matches at it
KNOTS_PER_DECADE = 20
TAIL = 10  # the tail is fitted to this many times the false matches of the lowest supported rate


def calibrate(
    bundle: Bundle,
    name: str,
    faces: LabelledFaces,
    *,
    data: str,
    target_fmr: float,
    groups: Sequence[Group] = (),
    by_worst_group: bool = False,
) -> Calibration:
    """The calibration of a bundle, measured on all pairs of `faces`.

    Groups are reported at the threshold for `target_fmr`, or for the lowest supported rate if that is higher.
    """
    if by_worst_group and not groups:
        raise LabelsRefused("To calibrate by the worst group, give the groups, too.")
    genuine, impostor = score_all_pairs(faces.embedded)
    if not genuine.pairs:
        raise LabelsRefused("There are no genuine pairs: some people need two photos or more.")
    curve = fit_curve([group.impostor for group in groups] if by_worst_group else [impostor])
    working = curve.similarity_at(max(target_fmr, curve.lowest_fmr))
    return Calibration(
        name=complete_name(bundle, name),
        identity=bundle.identity,
        created_at=datetime.now(UTC).isoformat(timespec="seconds"),
        evidence=Evidence(
            data=data,
            people=faces.embedded.identities,
            faces=len(faces.files),
            failed=len(faces.failed),
            genuine_pairs=genuine.pairs,
            impostor_pairs=impostor.pairs,
            by_worst_group=by_worst_group,
        ),
        curve=curve,
        fusions=measure_fusions(faces.embedded),
        decades=measure_decades(faces.embedded, curve),
        groups=measure_groups(groups, working),
        sketch=draw_sketch(faces.digests.values()),
    )


def fit_curve(impostors: Sequence[Scores]) -> Curve:
    """The FMR curve of impostor scores; with several groups, at every rate that of the worst group."""
    scarcest = min(group.pairs for group in impostors)
    if scarcest <= RULE_OF_30 * TAIL:
        raise LabelsRefused(
            f"There are {scarcest:,} impostor pairs; it takes more than {RULE_OF_30 * TAIL}, of more people."
        )
    lowest = RULE_OF_30 / scarcest
    steps = math.ceil(-math.log10(lowest) * KNOTS_PER_DECADE)
    levels = [*(10 ** (-step / KNOTS_PER_DECADE) for step in range(steps)), lowest]
    # Where many pairs are equally similar, several rates share a threshold: the lowest of them holds there.
    knots = {max(group.find_threshold(level) for group in impostors): level for level in levels}
    tail = max(group.mean_excess(group.find_threshold(lowest * TAIL)) for group in impostors)
    return Curve(tuple(knots), tuple(knots.values()), max(tail, 1 / STEPS))


def measure_decades(faces: LabelledEmbeddings, curve: Curve) -> tuple[ErrorRates, ...]:
    """The error rates, with their intervals, at FMR 1e-1, 1e-2 ... as far as the data supports it."""
    supported = math.floor(-math.log10(curve.lowest_fmr) + 1e-9)
    thresholds = [curve.similarity_at(10.0**-decade) for decade in range(1, supported + 1)]
    return tuple(measure_rates(faces, thresholds)) if thresholds else ()


def need_more(lowest_fmr: float, people: int) -> tuple[float, int, int]:
    """The next decade of FMR, and the numbers of impostor pairs and of people that are missing to support it.

    If the worst group sets the thresholds, pairs are counted in the smallest group, people in all groups.
    """
    decade = 10.0 ** (math.ceil(math.log10(lowest_fmr) - 1e-9) - 1)
    pairs = math.ceil(RULE_OF_30 / decade) - round(RULE_OF_30 / lowest_fmr)
    return decade, pairs, math.ceil(people * math.sqrt(lowest_fmr / decade)) - people
