"""L-Softmax: SphereFace but for the length of its class weights."""

import pytest

pytest.importorskip("torch")

import torch

from tests.training.losses.heads import batch_of, head_of


def test_l_softmax_of_unit_weights_is_sphereface() -> None:
    embeddings, labels = batch_of()
    l_softmax, sphereface = head_of("l_softmax"), head_of("sphereface")
    with torch.no_grad():
        l_softmax.weight.copy_(torch.nn.functional.normalize(sphereface.weight))
    torch.testing.assert_close(l_softmax(embeddings, labels), sphereface(embeddings, labels))
