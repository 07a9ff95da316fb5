"""Batches of P people with K images each."""

from collections import Counter

import pytest

pytest.importorskip("torch")

from torch.utils.data import DataLoader

from sameface.training.data.identity_sampler import IdentitySampler
from sameface.training.errors import RecipeRefused

SIZES = [1, 2, 3, 4, 5, 9, 1, 7, 6, 12]  # images of person 0, 1, ...
LABELS = [person for person, size in enumerate(SIZES) for _ in range(size)][::-1]


def sampler_of(seed: int = 0, people: int = 3, images: int = 4) -> IdentitySampler:
    return IdentitySampler(LABELS, people=people, images=images, seed=seed)


def test_every_batch_has_p_people_with_k_images_each() -> None:
    sampler = sampler_of()
    batches = list(sampler)
    assert len(batches) == len(sampler) == sum(size for size in SIZES if size > 1) // 12
    for batch in batches:
        assert sorted(Counter(LABELS[index] for index in batch).values()) == [4, 4, 4]


def test_images_are_repeated_only_where_there_are_too_few() -> None:
    for batch in sampler_of():
        for person in {LABELS[index] for index in batch}:
            times = Counter(index for index in batch if LABELS[index] == person)
            assert len(times) == min(4, SIZES[person])
            assert max(times.values()) - min(times.values()) <= 1


def test_somebody_with_one_image_is_left_out() -> None:
    sampler, seen = sampler_of(), set()
    for epoch in range(50):
        sampler.set_epoch(epoch)
        seen |= {LABELS[index] for batch in sampler for index in batch}
    assert seen == {person for person, size in enumerate(SIZES) if size > 1}


def test_people_come_round_equally_often() -> None:
    sampler = IdentitySampler([*range(6)] * 20, people=3, images=2)
    times = Counter(index % 6 for batch in sampler for index in batch)
    assert set(times.values()) == {20}


def test_batches_follow_from_seed_and_epoch() -> None:
    first, again, other = sampler_of(), sampler_of(), sampler_of(seed=1)
    assert list(first) == list(again) == list(first)
    assert list(first) != list(other)
    start = list(first)
    first.set_epoch(1)
    assert list(first) != start
    first.set_epoch(0)
    assert list(first) == start


def test_a_loader_takes_it() -> None:
    loader = DataLoader(LABELS, batch_sampler=sampler_of())
    assert all(len(batch) == 12 and len(batch.unique()) == 3 for batch in loader)


def test_too_few_people_are_refused() -> None:
    with pytest.raises(RecipeRefused, match="asks for 9 people, and 8 have two images"):
        sampler_of(people=9)
    with pytest.raises(RecipeRefused, match="two people with two images"):
        sampler_of(images=1)
