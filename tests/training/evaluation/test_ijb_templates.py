"""A template is the mean of its media, and genuine pairs tell who is who."""

import numpy as np
import pytest

from sameface.training.evaluation.ijb_templates import Templates, join_people


def test_a_video_counts_no_more_than_a_photo() -> None:
    right, up = np.array([1, 0], np.float32), np.array([0, 1], np.float32)
    templates = Templates(
        ["a", "b", "c", "d"],
        owners=np.array([1, 1, 1, 2]),
        media=np.array([7, 7, 8, 9]),
        probes=np.array([1]),
        references=np.array([2]),
        same=np.array([True]),
    )
    embedded = {"a": right, "b": right, "c": up, "d": up}
    assert templates.fuse(embedded)[1] == pytest.approx(np.array([1, 1]) / np.sqrt(2))
    assert templates.compare(embedded).similarities == pytest.approx(np.sqrt(0.5))


def test_pairs_join_people_whatever_their_order() -> None:
    people = join_people(6, np.array([0, 3, 1]), np.array([1, 4, 2]))
    assert people[0] == people[1] == people[2]
    assert people[3] == people[4]
    assert len(set(people.tolist())) == 3
