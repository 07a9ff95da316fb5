"""Partial FC is the whole head where everything is sampled, and learns only what was drawn where not."""

import pytest

pytest.importorskip("torch")

import torch

from sameface.training.distributed import Processes
from sameface.training.errors import RecipeRefused
from sameface.training.losses.by_name import HEADS, build_head
from sameface.training.losses.cross_entropy import classification_loss
from sameface.training.losses.partial_fc import PartialHead
from tests.training.runs import ALONE

CLASSES, DIMENSION = 30, 8


def batch_of(seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    torch.manual_seed(seed)
    return torch.randn(16, DIMENSION, requires_grad=True), torch.randint(CLASSES, (16,))


@pytest.mark.parametrize("name", HEADS)
def test_a_head_of_which_everything_is_sampled_is_the_whole_head(name: str) -> None:
    embeddings, labels = batch_of()
    whole = build_head(name, DIMENSION, CLASSES)
    partial = PartialHead(build_head(name, DIMENSION, CLASSES), ALONE)
    partial.head.load_state_dict(whole.state_dict())
    expected = classification_loss(whole(embeddings, labels), labels)
    found = partial(embeddings, labels)
    assert torch.equal(found, expected)
    for weight, other in zip(partial.parameters(), whole.parameters(), strict=True):
        gradients = (
            torch.autograd.grad(loss, of, retain_graph=True)
            for loss, of in ((found, weight), (expected, other))
        )
        assert torch.equal(*(gradient for (gradient,) in gradients))


@pytest.mark.parametrize("name", HEADS)
def test_of_a_sample_only_the_drawn_classes_learn_and_targets_are_always_drawn(name: str) -> None:
    embeddings, labels = batch_of()
    partial = PartialHead(build_head(name, DIMENSION, CLASSES), ALONE, sample=0.7)
    partial(embeddings, labels).backward()
    moved = partial.head.weight.grad.abs().sum(1) > 0
    assert moved.sum() == round(0.7 * CLASSES)
    assert moved[labels].all()


def test_a_sample_smaller_than_the_batch_has_just_its_classes() -> None:
    embeddings, labels = batch_of()
    partial = PartialHead(build_head("cosface", DIMENSION, CLASSES), ALONE, sample=0.01)
    partial(embeddings, labels).backward()
    assert set((partial.head.weight.grad.abs().sum(1) > 0).nonzero().flatten().tolist()) == set(
        labels.tolist()
    )


@pytest.mark.parametrize("count", [2, 3, 7])
def test_classes_are_dealt_out_without_a_gap(count: int) -> None:
    torch.manual_seed(0)
    head = build_head("softmax", DIMENSION, CLASSES)
    whole = head.weight.detach().clone()
    parts = []
    for rank in range(count):
        torch.manual_seed(0)
        share = Processes(rank, count, torch.device("cpu"))
        parts.append(PartialHead(build_head("softmax", DIMENSION, CLASSES), share).head.weight.detach())
    assert torch.equal(torch.cat(parts), whole)


@pytest.mark.parametrize("sample", [0.0, -1.0, 1.5])
def test_a_sample_is_a_share(sample: float) -> None:
    with pytest.raises(RecipeRefused, match=r"loss\.sample"):
        PartialHead(build_head("cosface", DIMENSION, CLASSES), ALONE, sample=sample)
