"""Pairs looked at during training are counted as they are after it."""

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch")

import torch

from sameface.model.measurement.lfw_pairs import measure_accuracy
from sameface.training.backbones.by_name import build_backbone
from sameface.training.data.crop import to_input
from sameface.training.data.face_set import decode_crop
from sameface.training.data.synthetic.people import write_pairs
from sameface.training.errors import DatasetRefused
from sameface.training.loop.pair_accuracy import PairTest
from tests.training.conftest import IMAGES, PEOPLE

CPU = torch.device("cpu")


def thin_backbone() -> torch.nn.Module:
    torch.manual_seed(0)
    return build_backbone("residual", 16, widths=(8, 8), depths=(1, 1))


def test_the_accuracy_is_that_of_the_similarities_one_by_one(drawn_faces: Path, drawn_pairs: Path) -> None:
    test, backbone = PairTest(drawn_pairs, drawn_faces), thin_backbone().eval()

    def embed(path: Path) -> np.ndarray:
        crop = torch.from_numpy(decode_crop(path.read_bytes()).copy()).permute(2, 0, 1)
        with torch.inference_mode():
            embedding = backbone(to_input(crop[None]))[0].numpy()
        return embedding / np.linalg.norm(embedding)

    similarities = [embed(pair.probe) @ embed(pair.reference) for pair in test.pairs]
    measured = test.measure(backbone, CPU)
    assert measured.wrong == measure_accuracy(similarities, test.pairs).wrong
    assert measured.threshold == pytest.approx(measure_accuracy(similarities, test.pairs).threshold, abs=1e-4)


def test_a_look_leaves_the_network_as_it_was(drawn_faces: Path, drawn_pairs: Path) -> None:
    test, backbone = PairTest(drawn_pairs, drawn_faces), thin_backbone().train()
    before = {name: value.clone() for name, value in backbone.state_dict().items()}
    test.measure(backbone, CPU)
    assert backbone.training
    assert all(torch.equal(value, before[name]) for name, value in backbone.state_dict().items())


def test_a_pair_without_its_crop_is_wrong(tmp_path: Path, drawn_faces: Path) -> None:
    write_pairs(tmp_path / "pairs.txt", PEOPLE + 1, IMAGES, folds=1)  # the last one has no crops
    test = PairTest(tmp_path / "pairs.txt", drawn_faces)
    assert test.measure(thin_backbone(), CPU).missing == 3


def test_a_folder_without_any_of_the_crops_is_refused(tmp_path: Path, drawn_pairs: Path) -> None:
    with pytest.raises(DatasetRefused, match="sameface prepare"):
        PairTest(drawn_pairs, tmp_path)
