"""Heads and pair losses by the names that recipes use."""

from typing import Any

from sameface.training.by_name import Choice
from sameface.training.losses.adaface import AdaFaceHead
from sameface.training.losses.arcface import ArcFaceHead
from sameface.training.losses.contrastive import ContrastiveLoss
from sameface.training.losses.cosface import CosFaceHead
from sameface.training.losses.lsoftmax import LSoftmaxHead
from sameface.training.losses.margin_head import MarginHead
from sameface.training.losses.pair_loss import PairLoss
from sameface.training.losses.softmax import ModifiedSoftmaxHead, SoftmaxHead
from sameface.training.losses.sphereface import SphereFaceHead
from sameface.training.losses.sphereface_r import SphereFaceRHead
from sameface.training.losses.triplet import TripletLoss

HEADS: dict[str, type[MarginHead]] = {
    "softmax": SoftmaxHead,
    "modified_softmax": ModifiedSoftmaxHead,
    "l_softmax": LSoftmaxHead,
    "sphereface": SphereFaceHead,
    "sphereface_r": SphereFaceRHead,
    "cosface": CosFaceHead,
    "arcface": ArcFaceHead,
    "adaface": AdaFaceHead,
}
PAIR_LOSSES: dict[str, type[PairLoss]] = {"contrastive": ContrastiveLoss, "triplet": TripletLoss}

HEAD = Choice("loss.head", "loss.head_options", HEADS)
PAIR_LOSS = Choice("loss.pair", "loss.pair_options", PAIR_LOSSES)


def build_head(name: str, dimension: int, classes: int, /, **options: Any) -> MarginHead:
    """Build the head called `name`; an unknown name or option is an error that lists the known ones."""
    return HEAD.build(name, (dimension, classes), options)


def build_pair_loss(name: str, /, **options: Any) -> PairLoss:
    """Build the pair loss called `name`; an unknown name or option is an error that lists the known ones."""
    return PAIR_LOSS.build(name, (), options)
