"""The path of a photo, readable top to bottom: bytes -> image -> detect -> align -> embed -> compare."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from sameface.model.bundles.bundle import load_bundle
from sameface.model.data_folder import DataFolder
from sameface.model.decision.calibration_files import Calibrations
from sameface.model.decision.thresholds import (
    AT_OWN_RATE,
    TARGET_FMR,
    TARGET_FPIR,
    Rule,
    Threshold,
    Thresholds,
)
from sameface.model.errors import FaceTooSmall, LowQualityFace, NoFaceFound, SamefaceError
from sameface.model.faces import AlignedFace, DetectedFace, EmbeddedFace
from sameface.model.observer import SILENT, Observer, Stopwatch
from sameface.model.photo.align import align_face, fit_similarity
from sameface.model.photo.choose_face import FACE_POLICIES
from sameface.model.photo.detect import Detector, DetectorOptions
from sameface.model.photo.embed import Embedder
from sameface.model.photo.image import ImageLimits, decode_coarsely, decode_image
from sameface.model.photo.quality import assess_quality
from sameface.model.runtime.device import available_cores, select_device
from sameface.model.runtime.session_pool import open_sessions
from sameface.model.runtime.work_queue import Workers
from sameface.model.verify import Decision, EnrolledPerson, Look, Side, compare


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineOptions:
    """Everything that a pipeline is built from, read once at the edge."""

    recognizer: Path
    detector: Path
    cache: Path  # for prepared graphs
    device: str = "auto"
    threads: int = field(default_factory=available_cores)
    queue: int = 32
    limits: ImageLimits = ImageLimits()
    detection: DetectorOptions = DetectorOptions()
    max_faces: int = 64
    min_face_pixels: float = 20.0
    calibration: str | None = None  # the bundle's own
    target_fmr: float = TARGET_FMR
    target_fpir: float = TARGET_FPIR

    @classmethod
    def in_folder(
        cls, folder: DataFolder, recognizer: Path | None = None, detector: Path | None = None, **others: Any
    ) -> "PipelineOptions":
        """With the default bundles of a data folder where none is named."""
        return cls(
            recognizer=(recognizer or folder.recognizer).expanduser(),
            detector=(detector or folder.detector).expanduser(),
            cache=folder.cache,
            **others,
        )


class Pipeline:
    """Takes photos to faces, embeddings and decisions; the `async` methods queue, the others do the work."""

    def __init__(
        self,
        detector: Detector,
        embedder: Embedder,
        options: PipelineOptions,
        observer: Observer = SILENT,
    ) -> None:
        self.observer = observer
        self.detector = detector
        self.embedder = embedder
        self.options = options
        self.workers = Workers(options.threads, options.queue, self.observer)
        calibrations = Calibrations(embedder.bundle, options.calibration)
        self.thresholds = Thresholds(calibrations, options.target_fmr, options.target_fpir)

    async def detect(self, photo: bytes, faces: str = "all") -> Look[AlignedFace]:
        """The faces in a photo."""
        stopwatch = self.start_stopwatch()
        [look] = await self.workers.run_all(lambda photo: self.find_faces(photo, faces, stopwatch), [photo])
        return look

    async def embed(self, photo: bytes, faces: str = "all") -> Look[EmbeddedFace]:
        """The faces in a photo with their embeddings."""
        stopwatch = self.start_stopwatch()
        [look] = await self.workers.run_all(lambda photo: self.embed_faces(photo, faces, stopwatch), [photo])
        return look

    async def verify(
        self,
        probe: bytes,
        reference: bytes | EnrolledPerson,
        *,
        rule: Rule = AT_OWN_RATE,
        faces: str = "prominent",
        min_quality: float = 0.0,
    ) -> Decision:
        """Whether a photo shows the person of another, or an enrolled one; photos are worked on together."""
        stopwatch = self.start_stopwatch()
        threshold = self.choose_threshold(rule, reference)
        photos = {"probe": probe} | ({"reference": reference} if isinstance(reference, bytes) else {})

        def look_at(photo: tuple[str, bytes]) -> Look[EmbeddedFace]:
            return self.embed_one_face(*photo, faces=faces, min_quality=min_quality)

        looks = await self.workers.run_all(look_at, list(photos.items()))
        sides = [Side(look.faces_found, look.faces[0]) for look in looks]
        compared = reference if isinstance(reference, EnrolledPerson) else sides[1]
        similarity, other = compare(sides[0], compared)
        self.observer.similarity("verify", similarity)
        return Decision(
            same_person=similarity >= threshold.value,
            similarity=similarity,
            threshold=threshold.value,
            target_fmr=threshold.target,
            estimated_fmr=threshold.estimate(similarity),
            extrapolated=threshold.is_extrapolated(similarity),
            calibration=threshold.calibration_name,
            model=self.embedder.bundle.contract.name,
            probe=sides[0],
            reference=other,
            timings_ms=stopwatch.milliseconds(*(look.stopwatch for look in looks)),
        )

    def start_stopwatch(self) -> Stopwatch:
        """For one request, or one photo of it."""
        return Stopwatch(self.observer)

    def choose_threshold(self, rule: Rule, reference: bytes | EnrolledPerson) -> Threshold:
        """What counts as the same person, by what the probe is compared with."""
        if isinstance(reference, bytes):
            return self.thresholds.for_pair(rule)
        return self.thresholds.for_pair(rule, calibration=reference.calibration, faces=len(reference.faces))

    def find_faces(self, photo: bytes, policy: str, stopwatch: Stopwatch | None = None) -> Look[AlignedFace]:
        """Bytes -> image -> detect -> align; a large photo is decoded in full only for a small face."""
        stopwatch = stopwatch or self.start_stopwatch()
        with stopwatch.stage("decode"):
            image, scale = decode_coarsely(photo, self.options.limits, self.detector.options.max_side)
        with stopwatch.stage("detect"):
            detected = self.detector.detect(image)
        self.observer.faces(len(detected))
        chosen = FACE_POLICIES[policy](detected, image.size)[: self.options.max_faces]
        if scale > 1 and any(self.is_coarse(face) for face in chosen):
            with stopwatch.stage("decode"):
                image = decode_image(photo, self.options.limits)
            chosen, scale = [face.enlarge(scale) for face in chosen], 1
        with stopwatch.stage("align"):
            faces = [self.align(image, face, scale) for face in chosen]
        return Look(len(detected), faces, stopwatch)

    def is_coarse(self, face: DetectedFace) -> bool:
        """Whether a crop would have more pixels than the image has of this face."""
        enlargement, _ = fit_similarity(face.landmarks, self.embedder.bundle.contract.template)
        return abs(enlargement) > 1

    def align(self, image: Image.Image, face: DetectedFace, scale: int) -> AlignedFace:
        """The face in pixels of the photo, with its crop on the recogniser's template and its quality."""
        contract = self.embedder.bundle.contract
        crop = align_face(image, face.landmarks, contract.template, contract.input_size)
        shown = face.enlarge(scale) if scale > 1 else face
        return AlignedFace(shown.box, shown.landmarks, shown.score, crop, assess_quality(shown, crop))

    def embed_faces(
        self, photo: bytes, policy: str, stopwatch: Stopwatch | None = None
    ) -> Look[EmbeddedFace]:
        """Bytes -> image -> detect -> align -> embed."""
        return self.embed_look(self.find_faces(photo, policy, stopwatch))

    def embed_look(self, look: Look[AlignedFace]) -> Look[EmbeddedFace]:
        """The faces that were found, each with its embedding."""
        with look.stopwatch.stage("embed"):
            embeddings = self.embedder.embed([face.crop for face in look.faces])
        faces = [
            EmbeddedFace(face.box, face.landmarks, face.score, face.crop, face.quality, embedding)
            for face, embedding in zip(look.faces, embeddings, strict=True)
        ]
        return Look(look.faces_found, faces, look.stopwatch)

    def embed_one_face(
        self, name: str, photo: bytes, *, faces: str, min_quality: float
    ) -> Look[EmbeddedFace]:
        """The one face of a photo that is to be compared; errors say by `name` which photo they are about."""
        try:
            look = self.find_faces(photo, faces)
            self.refuse_unfit(look, min_quality)
        except SamefaceError as error:
            error.facts["image"] = name
            raise
        return self.embed_look(look)

    def refuse_unfit(self, look: Look[AlignedFace], min_quality: float) -> None:
        """No face, a face of too few pixels, and where asked for, one of too low a quality."""
        if not look.faces:
            raise NoFaceFound("No face was found in the photo.", faces_found=0)
        quality, smallest = look.faces[0].quality, self.options.min_face_pixels
        if quality.size < smallest:
            raise FaceTooSmall(
                f"The face has {quality.size:.0f} pixels; {smallest:.0f} are needed.", limit=smallest
            )
        if quality.score < min_quality:
            raise LowQualityFace(
                f"The face's quality is {quality.score}; {min_quality} was asked for.",
                limit=min_quality,
                issues=quality.issues,
            )

    def warm_up(self) -> None:
        """Run every session once, so that no first caller pays for it."""
        width, height = self.embedder.bundle.contract.input_size
        photo = Image.new("RGB", (self.options.detection.max_side,) * 2)
        for _ in range(self.options.threads):  # idle sessions take turns
            self.detector.detect(photo)
            self.embedder.embed([np.zeros((height, width, 3), np.uint8)])

    def close(self) -> None:
        """Wait for what runs, drop what waits."""
        self.workers.close()
        self.embedder.close()


def open_pipeline(options: PipelineOptions, observer: Observer = SILENT) -> Pipeline:
    """Load both bundles, open their sessions on the device, and warm them up."""
    device = select_device(options.device)
    recognizer = load_bundle(options.recognizer, "recogniser")
    detector = load_bundle(options.detector, "detector")
    pipeline = Pipeline(
        Detector(
            detector, open_sessions(detector, device, options.cache, options.threads), options.detection
        ),
        Embedder(recognizer, open_sessions(recognizer, device, options.cache, options.threads), observer),
        options,
        observer,
    )
    pipeline.warm_up()
    return pipeline
