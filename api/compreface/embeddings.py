"""Embeddings that clients have kept, checked and compared."""

from collections.abc import Sequence
from typing import Any

from sameface.api.compreface.answers import describe_similarity
from sameface.api.compreface.errors import BadEmbedding
from sameface.model.bundles.bundle import Bundle
from sameface.model.errors import InvalidEmbedding
from sameface.model.faces import Embedding
from sameface.model.photo.embed import accept_embedding
from sameface.model.verify import Comparison


def accept_all(recogniser: Bundle, sent: Sequence[list[float]]) -> list[Embedding]:
    """The embeddings that a client sent; raises if one cannot be of the recogniser."""
    try:
        return [accept_embedding(recogniser, values, None) for values in sent]
    except InvalidEmbedding as error:
        raise BadEmbedding(error.detail) from None


def describe_ranks(sent: Sequence[list[float]], compared: Comparison) -> dict[str, Any]:
    """The embeddings that a client sent with their similarities, most similar first."""
    ranked = sorted(zip(compared.similarities, sent, strict=True), key=lambda pair: -pair[0])
    return {
        "result": [
            {"embedding": values, "similarity": describe_similarity(compared.threshold, similarity)}
            for similarity, values in ranked
        ]
    }
