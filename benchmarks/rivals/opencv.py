"""OpenCV's own detector and recogniser classes on the same weights.

`ask` runs this module as a script in another environment, so that any version of OpenCV can be measured. That
has OpenCV alone, and nothing of what sameface needs.
"""

import json
import math
import pickle
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import cv2
import numpy as np

from benchmarks.shared.load import Load, run_callers

if TYPE_CHECKING:
    from sameface.model.measurement.lfw_pairs import Pair

# Lowest detector score of a face; with OpenCV's default of 0.9, 74 of the 3,000 pairs of lfw_dev have a photo
# without a face.
SCORE = 0.7
COSINE = 0.363  # the threshold of the same person, of SFace's authors and OpenCV's examples


class OpenCvPath:
    """Photo to embedding by FaceDetectorYN and FaceRecognizerSF, taking the face nearest the centre."""

    def __init__(self, detector: Path, recognizer: Path) -> None:
        self.detector = cv2.FaceDetectorYN.create(str(detector), "", (320, 320), score_threshold=SCORE)
        self.recognizer = cv2.FaceRecognizerSF.create(str(recognizer), "")

    def embed(self, photo: bytes) -> Any | None:
        """The unit embedding of the face nearest the centre, or None without a face."""
        image, faces = self.find_faces(photo)
        if faces is None:
            return None
        height, width = image.shape[:2]
        nearest = min(
            faces,
            key=lambda row: math.hypot(row[0] + row[2] / 2 - width / 2, row[1] + row[3] / 2 - height / 2),
        )
        return self.embed_face(image, nearest)

    def embed_all(self, photo: bytes) -> list[Any]:
        """The unit embedding of every face."""
        image, faces = self.find_faces(photo)
        return [] if faces is None else [self.embed_face(image, face) for face in faces]

    def find_faces(self, photo: bytes) -> tuple[Any, Any | None]:
        """The decoded image, and the detector's row for every face, None without a face."""
        image = cv2.imdecode(np.frombuffer(photo, np.uint8), cv2.IMREAD_COLOR)
        assert image is not None
        height, width = image.shape[:2]
        self.detector.setInputSize((width, height))
        return image, self.detector.detect(image)[1]

    def embed_face(self, image: Any, face: Any) -> Any:
        """The unit embedding of one face."""
        embedding = self.recognizer.feature(self.recognizer.alignCrop(image, face))[0]
        return embedding / np.linalg.norm(embedding)

    def verify(self, probe: bytes, reference: bytes) -> bool | None:
        """Whether both photos show the same person, or None if one has no face."""
        one, other = self.embed(probe), self.embed(reference)
        return None if one is None or other is None else bool(one @ other >= COSINE)


def ask(
    python: Path,
    detector: Path,
    recognizer: Path,
    pairs: "list[Pair]",
    callers: int,
    threads: int,
    **until: Any,
) -> Load:
    """Verify by `callers` of the OpenCV of `python`, set to `threads`; `until` is `seconds` or `count`."""
    photos = [(pair.probe, pair.reference) for pair in pairs]
    task = pickle.dumps((detector, recognizer, photos, callers, threads, until))
    command = [str(python), "-m", "benchmarks.rivals.opencv"]
    done = subprocess.run(command, input=task, stdout=subprocess.PIPE, check=True)
    load: Load = pickle.loads(done.stdout)
    return load


def main() -> None:
    """Run the task that `ask` pickled to stdin, and pickle its Load to stdout."""
    detector, recognizer, files, callers, threads, until = pickle.load(sys.stdin.buffer)
    cv2.setNumThreads(threads)
    paths = [OpenCvPath(detector, recognizer) for _ in range(callers)]
    photos = [(probe.read_bytes(), reference.read_bytes()) for probe, reference in files]

    def verify(path: OpenCvPath, number: int) -> tuple[int, bytes]:
        same = path.verify(*photos[number % len(photos)])
        return (422, b"") if same is None else (200, json.dumps({"same_person": same}).encode())

    for path in paths:
        verify(path, 0)  # the warm-up, which allocates its buffers
    load = run_callers([partial(verify, path) for path in paths], **until)
    pickle.dump(load, sys.stdout.buffer)


if __name__ == "__main__":
    main()
