"""Two embeddings to a similarity."""

import numpy as np

from sameface.model.errors import ModelMismatch
from sameface.model.faces import Embedding
from sameface.model.measurement.scores import DIGITS


def measure_similarity(probe: Embedding, reference: Embedding) -> float:
    """The cosine, higher is closer, in the digits that are shown and decided on."""
    if probe.identity != reference.identity:
        raise ModelMismatch("Embeddings of two models cannot be compared.")
    return round(float(np.clip(probe.values @ reference.values, -1, 1)), DIGITS)
