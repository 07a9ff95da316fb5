"""What calls about photos return: faces, decisions, candidates."""

from dataclasses import dataclass

from sameface_client.values import Floats, Value


@dataclass(frozen=True, slots=True)
class Box(Value):
    """Where a face is, in pixels of the upright image."""

    left: float
    top: float
    width: float
    height: float


@dataclass(frozen=True, slots=True)
class Quality(Value):
    """How fit a face is for comparison, as a score from 0 to 1 and the measures behind it."""

    score: float
    sharpness: float
    brightness: float
    yaw: float
    size: float
    issues: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Face(Value):
    """A face in a photo; `landmarks` are eyes, nose and mouth corners, image-left first."""

    box: Box
    landmarks: tuple[tuple[float, ...], ...]
    score: float
    quality: Quality


@dataclass(frozen=True, slots=True, eq=False)
class FaceWithEmbedding(Face):
    """A face with its embedding of length 1."""

    embedding: Floats


@dataclass(frozen=True, slots=True)
class ComparedPhoto(Value):
    """A photo of the comparison: the number of faces found, and the face that was compared."""

    faces_found: int
    face: Face


@dataclass(frozen=True, slots=True)
class ComparedPerson(Value):
    """An enrolled person as the reference, and the face that was closest to the probe."""

    person_id: str
    face_id: str


@dataclass(frozen=True, slots=True)
class Decision(Value):
    """The answer to "is this the same face?", with the similarity, threshold and calibration behind it."""

    same_person: bool
    similarity: float
    threshold: float
    target_fmr: float | None
    estimated_fmr: float | None
    estimated_fmr_is_bound: bool
    extrapolated: bool
    calibration: str | None
    model: str
    probe: ComparedPhoto
    reference: ComparedPhoto | ComparedPerson
    timings_ms: dict[str, float]


@dataclass(frozen=True, slots=True)
class Detection(Value):
    """The faces in a photo, most prominent first."""

    faces: list[Face]
    faces_found: int
    timings_ms: dict[str, float]


@dataclass(frozen=True, slots=True)
class PhotoEmbeddings(Value):
    """The faces in a photo with their embeddings."""

    model: str
    faces: list[FaceWithEmbedding]
    faces_found: int
    timings_ms: dict[str, float]


@dataclass(frozen=True, slots=True)
class Candidate(Value):
    """A person who may be the one in question."""

    person_id: str
    name: str | None
    similarity: float
    face_id: str


@dataclass(frozen=True, slots=True)
class IdentifiedFace(Value):
    """One face of a probe, its match if there is one, and the best candidates."""

    face: Face | None  # None where an embedding was sent
    normalised: bool  # the embedding was sent at another length than 1
    match: Candidate | None
    candidates: list[Candidate]


@dataclass(frozen=True, slots=True)
class Identification(Value):
    """The answer to "who is this?", with the threshold, the calibration and the gallery's size behind it."""

    collection: str
    gallery_size: int
    gallery_faces: int
    threshold: float
    target_fpir: float | None
    extrapolated: bool
    calibration: str | None
    model: str
    results: list[IdentifiedFace]
    timings_ms: dict[str, float]
