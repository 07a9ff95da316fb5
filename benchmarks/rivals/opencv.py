"""What a user would pick instead: OpenCV's own detector and recogniser classes on the same weights.

As a script it does what `ask` sends it, so that any version can be asked, each in its own environment.
"""

import json
import math
import pickle
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import cv2
import numpy as np

from benchmarks.shared.load import Load, run_callers
from sameface.model.measurement.lfw_pairs import Pair

SCORE = (
    0.7  # of a face: with OpenCV's own 0.9 the photos of 74 of the 3,000 pairs of lfw_dev seem to have none
)
COSINE = 0.363  # from which on it is one person, as the authors of SFace and OpenCV's examples have it


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
        """The image and a row for every face in it."""
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
        """Whether both show one person, or None without a face."""
        one, other = self.embed(probe), self.embed(reference)
        return None if one is None or other is None else bool(one @ other >= COSINE)


def ask(
    python: Path,
    detector: Path,
    recognizer: Path,
    pairs: list[Pair],
    callers: int,
    threads: int,
    **until: Any,
) -> Load:
    """Verifications by the OpenCV of an environment: so many callers, each with so many threads."""
    task = pickle.dumps((detector, recognizer, pairs, callers, threads, until))
    command = [str(python), "-m", "benchmarks.rivals.opencv"]
    done = subprocess.run(command, input=task, stdout=subprocess.PIPE, check=True)
    load: Load = pickle.loads(done.stdout)
    return load


def main() -> None:
    """Do what `ask` sends."""
    detector, recognizer, pairs, callers, threads, until = pickle.load(sys.stdin.buffer)
    cv2.setNumThreads(threads)
    paths = [OpenCvPath(detector, recognizer) for _ in range(callers)]
    photos = [(pair.probe.read_bytes(), pair.reference.read_bytes()) for pair in pairs]

    def verify(path: OpenCvPath, number: int) -> tuple[int, bytes]:
        same = path.verify(*photos[number % len(photos)])
        return (422, b"") if same is None else (200, json.dumps({"same_person": same}).encode())

    for path in paths:
        verify(path, 0)  # which sets up its buffers
    load = run_callers([partial(verify, path) for path in paths], **until)
    pickle.dump(load, sys.stdout.buffer)


if __name__ == "__main__":
    main()
