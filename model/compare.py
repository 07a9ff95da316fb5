"""Two embeddings to a similarity, and a similarity to a decision."""

from dataclasses import dataclass

import numpy as np

from model.bundle import Contract
from model.errors import ModelMismatch, NotCalibrated
from model.faces import Embedding


@dataclass(frozen=True, slots=True)
class Threshold:
    """The similarity from which two faces count as one person's, and the evidence behind it."""

    value: float
    target_fmr: float | None = None
    calibration: str | None = None
    extrapolated: bool = False


def measure_similarity(probe: Embedding, reference: Embedding) -> float:
    """The cosine, higher is closer, in the digits that are shown and decided on."""
    if probe.identity != reference.identity:
        raise ModelMismatch("Embeddings of two models cannot be compared.")
    return round(float(np.clip(probe.values @ reference.values, -1, 1)), 6)


def choose_threshold(contract: Contract, threshold: float | None, target_fmr: float | None) -> Threshold:
    """The caller's own threshold, else the published one; a rate needs a calibration."""
    if threshold is not None:
        return Threshold(threshold)
    if target_fmr is not None:
        raise NotCalibrated(f"{contract.name} has no calibration: send a threshold instead of a target rate.")
    if contract.published_threshold is None:
        raise NotCalibrated(f"{contract.name} has neither a calibration nor a published threshold: send one.")
    return Threshold(contract.published_threshold)
