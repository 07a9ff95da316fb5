"""Two embeddings to a similarity, and the digits in which every similarity is shown and decided on."""

import numpy as np

from sameface.model.errors import ModelMismatch
from sameface.model.faces import Embedding

DIGITS = 6
STEPS = 1_000_000  # from similarity 0 to 1, each a unit of the last digit


def measure_similarity(probe: Embedding, reference: Embedding) -> float:
    """The cosine of two unit embeddings, higher is closer, rounded to `DIGITS`."""
    if probe.identity != reference.identity:
        raise ModelMismatch("Embeddings of two models cannot be compared.")
    return round(float(np.clip(probe.values @ reference.values, -1, 1)), DIGITS)
