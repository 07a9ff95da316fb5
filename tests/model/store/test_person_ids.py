"""Names to ids."""

import pytest

from sameface.model.store.people.person_ids import choose_id, make_person_id
from sameface.model.store.records import is_id


@pytest.mark.parametrize(
    ("name", "person_id"),
    [
        ("ada", "ada"),
        ("p_01.x~-", "p_01.x~-"),
        ("Tony Blair", "Tony-Blair"),
        ("José", "Jose"),
        ("Søren Ærø", "Soren-AEro"),
        ("O'Brien, Pat (old)", "O-Brien-Pat-old"),
    ],
)
def test_a_name_becomes_an_id_that_can_still_be_read(name: str, person_id: str) -> None:
    assert make_person_id(name) == person_id


@pytest.mark.parametrize(
    "name", ["张伟", "Анна", "Анна 2", "🙂", "..", ".", " ", "x" * 250, "ä" * 250, "\udcff"]
)
def test_every_name_becomes_an_id(name: str) -> None:
    assert is_id(make_person_id(name))
    assert make_person_id(name) == make_person_id(name)


def test_names_in_another_alphabet_stay_apart() -> None:
    assert len({make_person_id(name) for name in ("张伟", "王芳", "Анна", "Иван")}) == 4


def test_no_two_folders_share_an_id() -> None:
    known: dict[str, str] = {}
    for name in ("Jose", "José", "Jòse"):
        known[choose_id(name, known, lambda _: None)] = name
    assert known == {"Jose": "Jose", "Jose-2": "José", "Jose-3": "Jòse"}


@pytest.mark.parametrize(
    ("folder", "enrolled", "chosen"),
    [
        ("José", {"Jose": "José"}, "Jose"),  # enrolled before
        ("José", {"Jose": "Jose"}, "Jose-2"),  # another person
        ("José", {"Jose": "Jose", "Jose-2": "José"}, "Jose-2"),
        ("ada", {"ada": "Ada Lovelace"}, "ada"),  # renamed since
        ("Tony-Blair", {"Tony-Blair": "Tony Blair"}, "Tony-Blair-2"),  # made from another folder
    ],
)
def test_a_folder_finds_its_own_person_again(folder: str, enrolled: dict[str, str], chosen: str) -> None:
    assert choose_id(folder, (), enrolled.get) == chosen
