"""A batch of people that tests share, and the pair losses by plain loops over the formulas."""

import math
from typing import Any

import numpy as np
import torch


def batch_of(dtype: Any = torch.float64, people: int = 5, images: int = 3) -> tuple[Any, Any]:
    torch.manual_seed(2)
    labels = torch.arange(people).repeat_interleave(images)
    people_apart = torch.randn(people, 8, dtype=torch.float64)[labels]
    return (people_apart + 0.9 * torch.randn(len(labels), 8, dtype=torch.float64)).to(dtype), labels


def plain_distances(embeddings: Any) -> np.ndarray:
    """Squared, between unit embeddings."""
    rows = embeddings.detach().double().tolist()
    unit = [[value / math.hypot(*row) for value in row] for row in rows]
    return np.array([[sum((a - b) ** 2 for a, b in zip(x, y, strict=True)) for y in unit] for x in unit])


def plain_negative(
    squared: np.ndarray, labels: list[int], anchor: int, positive: int, margin: float
) -> int | None:
    near = squared[anchor, positive]
    others = [index for index, label in enumerate(labels) if label != labels[anchor]]
    semi_hard = [index for index in others if near < squared[anchor, index] < near + margin]
    return min(semi_hard or others, key=lambda index: squared[anchor, index], default=None)


def plain_loss(name: str, embeddings: Any, labels: Any, margin: float) -> float:
    squared, people = plain_distances(embeddings), labels.tolist()
    pairs = [(i, j) for i in range(len(people)) for j in range(len(people)) if i != j]
    genuine = [pair for pair in pairs if people[pair[0]] == people[pair[1]]]
    if name == "triplet":
        negatives = [plain_negative(squared, people, *pair, margin) for pair in genuine]
        return float(
            np.mean(
                [
                    max(0, squared[anchor, positive] - squared[anchor, negative] + margin)
                    for (anchor, positive), negative in zip(genuine, negatives, strict=True)
                ]
            )
        )
    impostor = [pair for pair in pairs if people[pair[0]] != people[pair[1]]]
    return float(
        np.mean([squared[pair] / 2 for pair in genuine])
        + np.mean([max(0, margin - math.sqrt(squared[pair])) ** 2 / 2 for pair in impostor])
    )
