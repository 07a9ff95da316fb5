"""The faces of a photo that a client sent."""

from dataclasses import dataclass

from sameface.api.rekognition.answers import QUALITY_BARS
from sameface.model.errors import LowQualityFace, NoFaceFound
from sameface.model.faces import Embedding, FaceWithEmbedding
from sameface.model.photo.image import measure_image
from sameface.model.pipeline import Pipeline


@dataclass(frozen=True, slots=True)
class FacesOfPhoto:
    """The faces of a photo, the largest first, and the photo's width and height."""

    size: tuple[int, int]
    faces: list[FaceWithEmbedding]
    identity: str  # of the recogniser

    @property
    def embeddings(self) -> list[Embedding]:
        """The embeddings of the faces."""
        return [Embedding(face.embedding, self.identity) for face in self.faces]


async def find_faces(
    pipeline: Pipeline, photo: bytes, quality_filter: str, policy: str = "all"
) -> FacesOfPhoto:
    """The faces of a photo that are good enough for the filter; raises without any."""
    found = await pipeline.embed(photo, policy)
    if not found.faces:
        raise NoFaceFound("There is no face in the image: send one that shows a face.")
    good = [face for face in found.faces if face.quality.score >= QUALITY_BARS[quality_filter]]
    if not good:
        raise LowQualityFace(f"No face of the image passes the QualityFilter {quality_filter}.")
    good.sort(key=lambda face: -face.box.width * face.box.height)
    return FacesOfPhoto(measure(pipeline, photo), good, pipeline.embedder.identity)


def measure(pipeline: Pipeline, photo: bytes) -> tuple[int, int]:
    """The width and height of a photo that the pipeline has decoded."""
    return measure_image(photo, pipeline.options.limits)
