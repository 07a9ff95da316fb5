"""Is this the same face?

    import sameface

    with sameface.open() as faces:
        print(faces.verify("one.jpg", "another.jpg").same_person)

Every name is imported on its first use: importing the package loads neither networks nor their engines.
"""

import os
from importlib import import_module
from typing import TYPE_CHECKING, Any

# ONNX Runtime tells Microsoft what it runs, from the moment it is loaded, unless this is set before.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")

if TYPE_CHECKING:
    from sameface.batches import BatchEnrolled, BatchFailed, BatchIdentified, EnrollEntry
    from sameface.collection import Collection
    from sameface.in_process import Faces
    from sameface.in_process import open_faces as open  # noqa: A004
    from sameface.listings import AuditEntry, CollectionDescription, Person, Review, StoredFace
    from sameface.model.enroll import EnrolledFace, Enrollment, Rejection
    from sameface.model.enroll_warnings import EnrollWarning
    from sameface.model.errors import SamefaceError
    from sameface.model.faces import Box, Face, FaceWithEmbedding, Quality
    from sameface.model.gallery.candidates import Candidate
    from sameface.model.gallery.identified import IdentifiedFace
    from sameface.model.identify import Identification
    from sameface.model.pipeline import Detection, PhotoEmbeddings
    from sameface.model.verify import ComparedPerson, ComparedPhoto, Decision

    __version__: str

__all__ = [
    "AuditEntry",
    "BatchEnrolled",
    "BatchFailed",
    "BatchIdentified",
    "Box",
    "Candidate",
    "Collection",
    "CollectionDescription",
    "ComparedPerson",
    "ComparedPhoto",
    "Decision",
    "Detection",
    "EnrollEntry",
    "EnrollWarning",
    "EnrolledFace",
    "Enrollment",
    "Face",
    "FaceWithEmbedding",
    "Faces",
    "Identification",
    "IdentifiedFace",
    "Person",
    "PhotoEmbeddings",
    "Quality",
    "Rejection",
    "Review",
    "SamefaceError",
    "StoredFace",
    "__version__",
    "open",
]

HOMES = {
    "sameface.batches": ("BatchEnrolled", "BatchFailed", "BatchIdentified", "EnrollEntry"),
    "sameface.collection": ("Collection",),
    "sameface.in_process": ("Faces",),
    "sameface.listings": ("AuditEntry", "CollectionDescription", "Person", "Review", "StoredFace"),
    "sameface.model.enroll": ("EnrolledFace", "Enrollment", "Rejection"),
    "sameface.model.enroll_warnings": ("EnrollWarning",),
    "sameface.model.errors": ("SamefaceError",),
    "sameface.model.faces": ("Box", "Face", "FaceWithEmbedding", "Quality"),
    "sameface.model.gallery.candidates": ("Candidate",),
    "sameface.model.gallery.identified": ("IdentifiedFace",),
    "sameface.model.identify": ("Identification",),
    "sameface.model.pipeline": ("Detection", "PhotoEmbeddings"),
    "sameface.model.verify": ("ComparedPerson", "ComparedPhoto", "Decision"),
}


def __getattr__(name: str) -> Any:
    """Import a name of the public API on its first use."""
    if name == "__version__":
        return import_module("importlib.metadata").version("sameface")
    if name == "open":
        return import_module("sameface.in_process").open_faces
    for home, names in HOMES.items():
        if name in names:
            return getattr(import_module(home), name)
    raise AttributeError(f"module 'sameface' has no attribute {name!r}")


def __dir__() -> list[str]:
    """The names of the public API."""
    return __all__
