"""People whose embeddings are drawn at random, so that the true error rates are known."""

from functools import cache

import numpy as np

from sameface.model.measurement.scores import LabelledEmbeddings

DIMENSION = 32


def draw_people(
    people: int, faces: int = 2, *, seed: int = 0, likeness: float = 0.7, dimension: int = DIMENSION
) -> LabelledEmbeddings:
    """Faces of people who lie anywhere on the sphere: impostors are as similar as random directions are."""
    random = np.random.default_rng(seed)
    centres = np.repeat(to_unit(random.normal(size=(people, dimension))), faces, axis=0)
    own = to_unit(random.normal(size=centres.shape))
    embeddings = to_unit(np.sqrt(likeness) * centres + np.sqrt(1 - likeness) * own)
    return LabelledEmbeddings(embeddings.astype(np.float32), np.repeat(np.arange(people), faces))


def to_unit(values: np.ndarray) -> np.ndarray:
    return values / np.linalg.norm(values, axis=1, keepdims=True)


def true_fmr(threshold: float, dimension: int = DIMENSION) -> float:
    """The chance that two random directions are at least so similar: their density is (1 - s^2)^((d-3)/2)."""
    grid, beyond = integrate(dimension)
    return float(np.interp(threshold, grid, beyond))


@cache
def integrate(dimension: int) -> tuple[np.ndarray, np.ndarray]:
    grid = np.linspace(-1, 1, 100_001)
    density = (1 - grid**2) ** ((dimension - 3) / 2)
    beyond = np.cumsum(density[::-1])[::-1]
    return grid, beyond / beyond[0]
