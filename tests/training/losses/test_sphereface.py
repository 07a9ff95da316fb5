"""SphereFace: its annealing, and what it is at a margin of one."""

import pytest

pytest.importorskip("torch")

import torch

from sameface.training.losses.by_name import build_head
from tests.training.losses.heads import CLASSES, DIMENSION, batch_of, head_of


def test_annealing_follows_the_schedule() -> None:
    head = build_head("sphereface", 4, 3, base=1000, gamma=0.12, power=1, lambda_min=5)
    expected = [
        (0, 1000.0),
        (1, 1000 / 1.12),
        (10, 1000 / 2.2),
        (1650, 1000 / 199),
        (1659, 5.0),
        (10**6, 5.0),
    ]
    for step, value in expected:
        head.step.fill_(step)
        assert float(head.anneal()) == pytest.approx(value, rel=1e-3 if step == 1659 else 1e-6)
    steep = build_head("sphereface", 4, 3, base=10, gamma=1.0, power=2.0, lambda_min=0)
    steep.step.fill_(4)
    assert float(steep.anneal()) == pytest.approx(10 / 25)


def test_annealing_counts_the_passes_of_training_and_survives_a_checkpoint() -> None:
    head, (embeddings, labels) = head_of("sphereface"), batch_of()
    head(embeddings, labels)
    assert int(head.step) == 400
    head.train()(embeddings, labels)
    again = build_head("sphereface", DIMENSION, CLASSES)
    again.load_state_dict(head.state_dict())
    assert int(again.step) == 401


def test_sphereface_of_margin_one_is_modified_softmax() -> None:
    embeddings, labels = batch_of()
    sphereface, modified = head_of("sphereface", margin=1), head_of("modified_softmax")
    torch.testing.assert_close(
        sphereface(embeddings, labels), modified(embeddings, labels), rtol=1e-14, atol=1e-14
    )
