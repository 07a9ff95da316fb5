"""AdaFace: the moving averages that judge the norm of an embedding."""

import pytest

pytest.importorskip("torch")

import torch

from sameface.training.losses.by_name import build_head


def test_adaface_averages_the_norms_while_it_trains() -> None:
    head = build_head("adaface", 2, 3, update_rate=0.1).train()
    labels = torch.tensor([0, 1])
    head(torch.tensor([[3.0, 4.0], [0.0, 1.0]]), labels)  # norms 5 and 1
    assert float(head.norm_mean) == pytest.approx(0.9 * 20 + 0.1 * 3)
    assert float(head.norm_deviation) == pytest.approx(0.9 * 100 + 0.1 * 2)
    head.eval()(torch.tensor([[30.0, 40.0], [0.0, 1.0]]), labels)
    assert float(head.norm_mean) == pytest.approx(0.9 * 20 + 0.1 * 3)
    assert head.train()(torch.ones(1, 2), labels[:1]).isfinite().all()
