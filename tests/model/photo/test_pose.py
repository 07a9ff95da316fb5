"""How a head is held, whose pose is known."""

import pytest

from sameface.model.bundles.published import ARCFACE_TEMPLATE
from sameface.model.photo.pose import estimate_pose
from tests.model.photo.test_quality import photograph


@pytest.mark.parametrize(
    ("yaw", "roll", "pitch"), [(0, 0, 0), (20, 0, 0), (-30, 0, 0), (0, 25, 0), (0, -40, 0)]
)
def test_yaw_and_roll_are_found(yaw: float, roll: float, pitch: float) -> None:
    pose = estimate_pose(photograph(yaw, roll, pitch))
    assert pose.yaw == pytest.approx(yaw, abs=3)
    assert pose.roll == pytest.approx(roll, abs=3)
    assert abs(pose.pitch) < 6


def test_a_lowered_head_has_a_positive_pitch_and_a_raised_one_a_negative() -> None:
    lowered, raised = (estimate_pose(photograph(0, pitch=pitch)).pitch for pitch in (-20, 20))
    assert lowered == pytest.approx(20, abs=7)
    assert raised == pytest.approx(-20, abs=7)


def test_the_template_looks_straight_ahead() -> None:
    pose = estimate_pose(ARCFACE_TEMPLATE)
    assert max(abs(pose.pitch), abs(pose.roll), abs(pose.yaw)) < 2


def test_landmarks_in_one_point_have_a_pose_all_the_same() -> None:
    assert estimate_pose([(5.0, 5.0)] * 5).yaw == 90
