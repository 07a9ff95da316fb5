"""What a user would pick instead: OpenCV's own detector and recogniser classes on the same weights."""

import math
from pathlib import Path
from typing import Any

import cv2
import numpy as np


class OpenCvPath:
    """Photo to embedding by FaceDetectorYN and FaceRecognizerSF, taking the face nearest the centre."""

    def __init__(self, detector: Path, recognizer: Path) -> None:
        self.detector = cv2.FaceDetectorYN.create(str(detector), "", (320, 320), score_threshold=0.7)
        self.recognizer = cv2.FaceRecognizerSF.create(str(recognizer), "")

    def embed(self, photo: bytes) -> Any | None:
        """The unit embedding of the face nearest the centre, or None without a face."""
        image = cv2.imdecode(np.frombuffer(photo, np.uint8), cv2.IMREAD_COLOR)
        assert image is not None
        height, width = image.shape[:2]
        self.detector.setInputSize((width, height))
        _, faces = self.detector.detect(image)
        if faces is None:
            return None
        nearest = min(
            faces,
            key=lambda row: math.hypot(row[0] + row[2] / 2 - width / 2, row[1] + row[3] / 2 - height / 2),
        )
        embedding = self.recognizer.feature(self.recognizer.alignCrop(image, nearest))[0]
        return embedding / np.linalg.norm(embedding)
