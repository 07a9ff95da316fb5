"""Labelled faces to a calibration."""

from collections.abc import Sequence
from datetime import UTC, datetime

from sameface.model.bundles.bundle import Bundle
from sameface.model.decision.calibration import Calibration, Evidence, fit_curve, measure_decades
from sameface.model.decision.calibration_files import complete_name
from sameface.model.errors import LabelsRefused
from sameface.model.measurement.face_counts import measure_fusions
from sameface.model.measurement.groups import Group, measure_groups
from sameface.model.measurement.labelled_photos import LabelledFaces
from sameface.model.measurement.scores import score_all_pairs


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
    """The error rates of a bundle on these faces, everybody compared with everybody.

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
    )
