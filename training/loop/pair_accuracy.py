"""The accuracy of a network in training on a list of pairs."""

from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from sameface.model.faces import Floats
from sameface.model.measurement.lfw_pairs import PairAccuracy, measure_accuracy, read_pairs
from sameface.training.data.crop import to_input
from sameface.training.data.face_set import decode_crop
from sameface.training.errors import DatasetRefused

BATCH = 64


class PairTest:
    """The crops of a list of pairs, decoded once; a pair that lacks a crop counts as wrong."""

    def __init__(self, pairs: Path, images: Path) -> None:
        self.pairs = read_pairs(pairs.expanduser(), images.expanduser())
        named = {path for pair in self.pairs for path in (pair.probe, pair.reference)}
        found = sorted(path for path in named if path.is_file())
        if not found:
            raise DatasetRefused(
                f"{images} has no crop of the pairs in {pairs}: `sameface prepare` makes crops,"
                " `sameface pairs` a list of pairs of them."
            )
        crops = np.stack([decode_crop(path.read_bytes()) for path in found])
        self.crops = torch.from_numpy(crops.transpose(0, 3, 1, 2).copy())  # uint8 (crops, 3, 112, 112)
        place = {path: index for index, path in enumerate(found)}
        self.sides = [
            np.array([place.get(path, -1) for path in paths])
            for paths in zip(*((pair.probe, pair.reference) for pair in self.pairs), strict=True)
        ]

    @torch.inference_mode()
    def measure(self, backbone: nn.Module, device: torch.device) -> PairAccuracy:
        """The accuracy of `backbone`, whose training mode is restored afterwards."""
        training = backbone.training
        backbone.eval()
        embeddings = torch.cat(
            [
                functional.normalize(backbone(to_input(crops.to(device)))).cpu()
                for crops in self.crops.split(BATCH)
            ]
        ).numpy()
        backbone.train(training)
        return measure_accuracy(self.compare(embeddings), self.pairs)

    def compare(self, embeddings: Floats) -> Floats:
        """The similarity of each pair, NaN where a crop is missing."""
        probe, reference = self.sides
        similarities: Floats = np.einsum("ij,ij->i", embeddings[probe], embeddings[reference])
        similarities[(probe < 0) | (reference < 0)] = np.nan
        return similarities
