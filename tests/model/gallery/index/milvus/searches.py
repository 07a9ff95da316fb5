"""Searches in the collection `staff`."""

import time

import numpy as np

from sameface.model.errors import IndexUnavailable
from sameface.model.gallery.gallery import Gallery

SURE = 0.99  # the similarity of a probe that was enrolled


def find_names(gallery: Gallery, *probes: np.ndarray) -> list[str | None]:
    """Whose face each probe is; None if it is nobody's."""
    found = gallery.search(gallery.get_collection("staff"), np.array(probes), 3).by_probe()
    return [each[0].person_id if each and each[0].similarity > SURE else None for each in found]


def find_patiently(gallery: Gallery, *probes: np.ndarray, patience: float = 30) -> list[str | None]:
    """The same once Milvus can be searched; raises if that takes longer than `patience` seconds."""
    until = time.monotonic() + patience
    while True:
        try:
            return find_names(gallery, *probes)
        except IndexUnavailable:
            if time.monotonic() > until:
                raise
            time.sleep(0.05)
