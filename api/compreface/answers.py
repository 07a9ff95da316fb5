"""What clients of CompreFace read: faces with boxes and plug-ins, subjects with similarities."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from sameface.api.compreface.options import Options
from sameface.model.decision.confidence import measure_confidence
from sameface.model.decision.thresholds import Threshold
from sameface.model.errors import NoFaceFound, SeveralFacesFound
from sameface.model.faces import Embedding, Face, FaceWithEmbedding
from sameface.model.photo.pose import estimate_pose
from sameface.model.pipeline import PhotoEmbeddings, Pipeline
from sameface.model.verify import Comparison

FaceKind = TypeVar("FaceKind", bound=Face)

AT_TARGET = 0.5  # the similarity that CompreFace's clients take for the border
DIGITS = 5


async def find_faces(pipeline: Pipeline, photo: bytes, options: Options) -> PhotoEmbeddings:
    """The faces of a photo that the options ask for, largest first, with their embeddings."""
    found = await pipeline.embed(photo)
    faces = choose(found.faces, options)
    return PhotoEmbeddings(found.model, faces, len(faces), found.timings_ms)


async def find_only_face(pipeline: Pipeline, photo: bytes, options: Options) -> PhotoEmbeddings:
    """The only face of a photo."""
    found = await find_faces(pipeline, photo, options.model_copy(update={"limit": 0}))
    if len(found.faces) > 1:
        raise SeveralFacesFound("More than one face in the source image")
    return found


def list_embeddings(pipeline: Pipeline, found: PhotoEmbeddings) -> list[Embedding]:
    """The embeddings of the faces of a photo, with the identity of the recogniser that made them."""
    return [Embedding(face.embedding, pipeline.embedder.identity) for face in found.faces]


def choose(faces: Sequence[FaceKind], options: Options) -> list[FaceKind]:
    """The faces that the detector is sure enough of, largest first, as many as wanted; raises without any."""
    sure = [face for face in faces if face.score >= options.det_prob_threshold]
    if not sure:
        raise NoFaceFound("No face is found in the given image")
    return sorted(sure, key=lambda face: -face.box.width * face.box.height)[: options.limit or None]


def describe_face(
    face: Face | FaceWithEmbedding, options: Options, timings_ms: Mapping[str, float]
) -> dict[str, Any]:
    """A face: its box, and what the plug-ins say of it. Those that sameface lacks say nothing."""
    box = face.box
    described: dict[str, Any] = {
        "box": {
            "probability": round(face.score, DIGITS),
            "x_max": round(box.left + box.width),
            "y_max": round(box.top + box.height),
            "x_min": round(box.left),
            "y_min": round(box.top),
        }
    }
    if "landmarks" in options.face_plugins:
        described["landmarks"] = [[round(x), round(y)] for x, y in face.landmarks]
    if "pose" in options.face_plugins:
        described["pose"] = estimate_pose(face.landmarks).to_dict()
    if "calculator" in options.face_plugins and isinstance(face, FaceWithEmbedding):
        described["embedding"] = face.embedding.tolist()
    if options.status:
        embedding = timings_ms.get("embed", 0.0)
        described["execution_time"] = {
            "detector": round(sum(timings_ms.get(stage, 0.0) for stage in ("decode", "detect", "align")), 1),
            "calculator": round(embedding, 1),
        }
    return described


def describe_matches(found: PhotoEmbeddings, options: Options, compared: Comparison) -> list[dict[str, Any]]:
    """The faces of a photo, each with its similarity to the one that they were compared with."""
    return [
        describe_face(face, options, found.timings_ms)
        | {"similarity": describe_similarity(compared.threshold, similarity)}
        for face, similarity in zip(found.faces, compared.similarities, strict=True)
    ]


def describe_result(results: list[dict[str, Any]], options: Options, pipeline: Pipeline) -> dict[str, Any]:
    """An answer with its results and, if asked for, the names of the networks behind them."""
    if not options.status:
        return {"result": results}
    return {"result": results, "plugins_versions": name_networks(pipeline)}


def name_networks(pipeline: Pipeline) -> dict[str, str]:
    """The networks that detect and embed, by CompreFace's words for what they do."""
    return {
        "detector": pipeline.detector.bundle.contract.name,
        "calculator": pipeline.embedder.bundle.contract.name,
    }


def describe_similarity(threshold: Threshold, similarity: float) -> float:
    """A similarity as CompreFace's clients read it: 0.5 at the threshold."""
    return round(measure_confidence(threshold, similarity, AT_TARGET), DIGITS)
