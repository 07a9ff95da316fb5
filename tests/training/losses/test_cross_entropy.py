"""Cross entropy and focal weighting, against plain loops over the formula."""

import math
from typing import Any

import pytest

pytest.importorskip("torch")

import torch

from sameface.training.losses.cross_entropy import classification_loss
from tests.training.losses.heads import BATCH, CLASSES


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_focal_weighting_is_that_of_the_formula(dtype: Any) -> None:
    torch.manual_seed(1)
    logits, labels = 3 * torch.randn(BATCH, CLASSES, dtype=dtype), torch.arange(BATCH)
    exact = torch.nn.functional.cross_entropy(logits, labels)
    assert torch.equal(classification_loss(logits, labels), exact)
    assert torch.equal(classification_loss(logits, labels, focal_gamma=0), exact)
    for gamma in (0.5, 2.0):
        losses = []
        for row, label in zip(logits.tolist(), labels.tolist(), strict=True):
            p = math.exp(row[label]) / sum(map(math.exp, row))
            losses.append(-((1 - p) ** gamma) * math.log(p))
        expected = sum(losses) / BATCH
        assert float(classification_loss(logits, labels, gamma)) == pytest.approx(expected, rel=1e-5)
