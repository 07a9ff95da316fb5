"""SphereFace-R: the margin is on the side of the other classes."""

import pytest

pytest.importorskip("torch")

import torch

from tests.training.losses.heads import CLASSES, batch_of, head_of


def test_sphereface_r_favours_the_other_classes() -> None:
    embeddings, labels = batch_of()
    plain, margin = (head_of("sphereface_r", margin=value)(embeddings, labels) for value in (1.0, 1.4))
    others = torch.nn.functional.one_hot(labels, CLASSES) == 0
    assert (margin[others] > plain[others]).all()
    torch.testing.assert_close(margin[~others], plain[~others])
