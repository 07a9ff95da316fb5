"""The audit is read and reviewed by both with the same answers."""

import time
from datetime import UTC, datetime, timedelta

import pytest

from tests.faces.library import Faces, Library
from tests.pictures import photo_of


def test_changes_are_listed_newest_first_and_by_what_they_are_about(faces: Faces) -> None:
    staff = faces.collection(f"staff-{time.time_ns()}")
    staff.enroll("ada", [photo_of(1)], name="Ada")
    staff.forget("ada")
    found = list(faces.audit(collection=staff.name))
    assert [(entry.action, entry.person_id) for entry in found] == [
        ("forget_person", "ada"),
        ("enroll_person", "ada"),
        ("create_collection", None),
    ]
    assert (found[0].reviews, found[0].review_status) == ([], None)
    assert found[0].time > found[2].time
    assert len(list(faces.audit(collection=staff.name, person_id="ada", until=found[0].time))) == 1
    assert list(faces.audit(collection=staff.name, since=datetime.now(UTC) + timedelta(hours=1))) == []
    assert found[0].to_dict()["time"].endswith("Z")


def test_what_is_no_decision_is_not_reviewed(library: Library, faces: Faces) -> None:
    staff = faces.collection(f"staff-{time.time_ns()}")
    staff.enroll("ada", [photo_of(1)])
    [enrolled, _] = faces.audit(collection=staff.name)
    with pytest.raises(library.SamefaceError, match="nothing to review") as refusal:
        faces.review(enrolled.entry_id, reviewer="officer-1", confirmed=True)
    assert refusal.value.code == "invalid_request"
