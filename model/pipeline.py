"""The path of a photo, readable top to bottom: bytes -> image -> detect -> align -> embed."""

import os
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Generic, TypeVar

import numpy as np

from sameface.model.bundles.bundle import find_folder, load_bundle
from sameface.model.data_folder import DataFolder, GalleryPlace
from sameface.model.decision.calibration_files import Calibrations, name_chosen
from sameface.model.decision.thresholds import TARGET_FMR, TARGET_FPIR, Thresholds
from sameface.model.errors import FaceTooSmall, LowQualityFace, NoFaceFound, SamefaceError
from sameface.model.faces import (
    AlignedFace,
    DetectedFace,
    EmbeddedFace,
    Face,
    FaceWithEmbedding,
    Photo,
    Pixels,
    Value,
)
from sameface.model.observer import SILENT, Observer, Stopwatch
from sameface.model.photo.align import CropShape, align_face, fit_similarity
from sameface.model.photo.choose_face import choose_faces
from sameface.model.photo.detect import Detector, DetectorOptions
from sameface.model.photo.embed import Embedder, open_embedder
from sameface.model.photo.image import ImageLimits, decode_coarsely, decode_pixels
from sameface.model.photo.pixel_budget import PixelBudget
from sameface.model.photo.quality import assess_quality
from sameface.model.runtime.device import available_cores, select_device
from sameface.model.runtime.precision.choice import AUTO, Precision
from sameface.model.runtime.session_pool import open_sessions
from sameface.model.runtime.work_queue import WorkQueue

FaceKind = TypeVar("FaceKind", bound=AlignedFace)


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineOptions:
    """Everything that a pipeline is built from, read once at the edge."""

    recognizer: Path
    detector: Path
    cache: Path  # for prepared graphs
    gallery: GalleryPlace | None = None  # the database with the users' own calibrations
    device: str = "auto"
    precision: Precision = AUTO
    threads: int = field(default_factory=available_cores)
    queue: int = 32
    limits: ImageLimits = ImageLimits()
    detection: DetectorOptions = DetectorOptions()
    max_faces: int = 64
    min_face_pixels: float = 20.0
    calibration: str | None = None  # None: the one chosen in the store, else the bundle's own
    target_fmr: float = TARGET_FMR
    target_fpir: float = TARGET_FPIR

    @classmethod
    def in_folder(
        cls,
        folder: DataFolder,
        recognizer: str | os.PathLike[str] | None = None,
        detector: str | os.PathLike[str] | None = None,
        **others: Any,
    ) -> "PipelineOptions":
        """The options for a data folder, whose default bundles stand in for those not given."""
        return cls(
            recognizer=find_folder(recognizer or folder.recognizer, folder.models),
            detector=find_folder(detector or folder.detector, folder.models),
            cache=folder.cache,
            gallery=folder.gallery,
            **others,
        )


@dataclass(frozen=True, slots=True)
class PhotoFaces(Generic[FaceKind]):
    """The chosen faces of one photo between two steps, the number of faces found, and the stopwatch."""

    faces_found: int
    faces: list[FaceKind]
    stopwatch: Stopwatch


@dataclass(frozen=True, slots=True)
class Detection(Value):
    """The answer of `detect`: the faces of a photo, most prominent first."""

    faces: list[Face]
    faces_found: int  # includes faces that the policy or `max_faces` left out
    timings_ms: dict[str, float]


@dataclass(frozen=True, slots=True)
class PhotoEmbeddings(Value):
    """The answer of `embed`: the faces of a photo with their embeddings."""

    model: str
    faces: list[FaceWithEmbedding]
    faces_found: int
    timings_ms: dict[str, float]


class FaceFinder:
    """Bytes to aligned faces, without a recogniser: all that preparing a data set takes."""

    def __init__(
        self,
        detector: Detector,
        crop_shape: CropShape,
        options: PipelineOptions,
        observer: Observer = SILENT,
    ) -> None:
        self.detector = detector
        self.crop_shape = crop_shape
        self.options = options
        self.observer = observer
        self.pixels = PixelBudget(options.limits)

    def find_faces(
        self, photo: Photo, policy: str, stopwatch: Stopwatch | None = None, min_score: float = 0.0
    ) -> PhotoFaces[AlignedFace]:
        """The aligned faces of a photo, which waits until there is room in memory for its pixels."""
        with self.pixels.holding(photo):
            return self.detect_and_align(photo, policy, stopwatch or self.start_stopwatch(), min_score)

    def detect_and_align(
        self, photo: Photo, policy: str, stopwatch: Stopwatch, min_score: float
    ) -> PhotoFaces[AlignedFace]:
        """Bytes -> image -> detect -> align; a large photo is decoded in full only for a small face.

        Faces with a lower score than `min_score` count as not found.
        """
        with stopwatch.stage("decode"):
            image, scale = decode_coarsely(photo, self.options.limits, self.detector.options.max_side)
        with stopwatch.stage("detect"):
            detected = [face for face in self.detector.detect(image) if face.score >= min_score]
        self.observer.faces(len(detected))
        chosen = choose_faces(policy, detected, image.shape[1::-1])[: self.options.max_faces]
        if scale > 1 and any(self.is_coarse(face) for face in chosen):
            with stopwatch.stage("decode"):
                image = decode_pixels(photo, self.options.limits)
            chosen, scale = [face.enlarge(scale) for face in chosen], 1
        with stopwatch.stage("align"):
            faces = [self.align(image, face, scale) for face in chosen]
        return PhotoFaces(len(detected), faces, stopwatch)

    def is_coarse(self, face: DetectedFace) -> bool:
        """Whether the crop would enlarge this face, so that an image decoded in full has more detail."""
        enlargement, _ = fit_similarity(face.landmarks, self.crop_shape.template)
        return abs(enlargement) > 1

    def align(self, image: Pixels, face: DetectedFace, scale: int) -> AlignedFace:
        """The face in pixels of the photo, with crop and quality; `image` is the photo reduced by `scale`."""
        crop = align_face(image, face.landmarks, *self.crop_shape)
        shown = face.enlarge(scale) if scale > 1 else face
        return AlignedFace(shown.box, shown.landmarks, shown.score, assess_quality(shown, crop), crop)

    def find_one_face(
        self,
        photo: Photo,
        policy: str,
        min_quality: float = 0.0,
        *,
        name: str | None = None,
        min_score: float = 0.0,
    ) -> PhotoFaces[AlignedFace]:
        """The face of a photo to compare, if it is fit; an error carries `name` as its fact `image`."""
        try:
            found = self.find_faces(photo, policy, min_score=min_score)
            self.refuse_unfit(found, min_quality)
        except SamefaceError as error:
            if name:
                error.facts["image"] = name
            raise
        return found

    def refuse_unfit(self, found: PhotoFaces[AlignedFace], min_quality: float) -> None:
        """Raise if the photo has no face, or one of too few pixels or of a quality below `min_quality`."""
        if not found.faces:
            raise NoFaceFound("No face was found in the photo.", faces_found=0)
        quality, smallest = found.faces[0].quality, self.options.min_face_pixels
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

    def start_stopwatch(self) -> Stopwatch:
        """A stopwatch for one request or one photo, which also tells the observer."""
        return Stopwatch(self.observer)


class Pipeline(FaceFinder):
    """Photos to embedded faces; `async` methods use the work queue, all others run on the calling thread."""

    def __init__(
        self, detector: Detector, embedder: Embedder, options: PipelineOptions, observer: Observer = SILENT
    ) -> None:
        contract = embedder.bundle.contract
        super().__init__(detector, CropShape(contract.template, contract.input_size), options, observer)
        self.embedder = embedder
        self.queue = WorkQueue(options.threads, options.queue, observer)

    @cached_property
    def thresholds(self) -> Thresholds:
        """The thresholds of the recogniser, by the calibration and the target rates of the options."""
        options = self.options
        calibrations = Calibrations(self.embedder.bundle, options.calibration, options.gallery)
        return Thresholds(calibrations, options.target_fmr, options.target_fpir)

    async def detect(self, photo: Photo, policy: str = "all") -> Detection:
        """The faces in a photo that the policy chooses."""
        stopwatch = self.start_stopwatch()
        [found] = await self.queue.run_all(lambda photo: self.find_faces(photo, policy, stopwatch), [photo])
        faces = [face.to_face() for face in found.faces]
        return Detection(faces, found.faces_found, stopwatch.milliseconds())

    async def embed(self, photo: Photo, policy: str = "all") -> PhotoEmbeddings:
        """The faces in a photo that the policy chooses, with their embeddings."""
        stopwatch = self.start_stopwatch()
        [found] = await self.queue.run_all(lambda photo: self.embed_faces(photo, policy, stopwatch), [photo])
        faces = [face.without_crop() for face in found.faces]
        name = self.embedder.bundle.contract.name
        return PhotoEmbeddings(name, faces, found.faces_found, stopwatch.milliseconds())

    def embed_faces(
        self, photo: Photo, policy: str, stopwatch: Stopwatch | None = None
    ) -> PhotoFaces[EmbeddedFace]:
        """Bytes -> image -> detect -> align -> embed."""
        return self.add_embeddings(self.find_faces(photo, policy, stopwatch))

    def embed_one_face(
        self,
        photo: Photo,
        policy: str,
        min_quality: float = 0.0,
        *,
        name: str | None = None,
        min_score: float = 0.0,
    ) -> PhotoFaces[EmbeddedFace]:
        """The face of `find_one_face`, with its embedding."""
        found = self.find_one_face(photo, policy, min_quality, name=name, min_score=min_score)
        return self.add_embeddings(found)

    def add_embeddings(self, found: PhotoFaces[AlignedFace]) -> PhotoFaces[EmbeddedFace]:
        """The faces that were found, each with its embedding."""
        with found.stopwatch.stage("embed"):
            embeddings = self.embedder.embed([face.crop for face in found.faces])
        faces = [
            EmbeddedFace(face.box, face.landmarks, face.score, face.quality, face.crop, embedding)
            for face, embedding in zip(found.faces, embeddings, strict=True)
        ]
        return PhotoFaces(found.faces_found, faces, found.stopwatch)

    def warm_up(self) -> None:
        """Run every session once, so that the first request is not slower."""
        width, height = self.crop_shape.size
        side = self.options.detection.max_side
        for _ in range(self.options.threads):  # the pools lend their idle sessions in turn
            self.detector.detect(np.zeros((side, side, 3), np.uint8))
            self.embedder.embed([np.zeros((height, width, 3), np.uint8)])

    def close(self) -> None:
        """Finish the photos in work, cancel those that wait, and end the threads."""
        self.queue.close()
        self.embedder.close()


def open_pipeline(options: PipelineOptions, observer: Observer = SILENT) -> Pipeline:
    """Load both bundles, open their sessions on the device, and warm them up."""
    recognizer = load_bundle(options.recognizer, "recogniser")
    if options.gallery:
        recognizer = name_chosen(recognizer, options.gallery)
    device = select_device(options.device)
    embedder = open_embedder(recognizer, device, options.cache, options.threads, observer, options.precision)
    pipeline = Pipeline(open_detector(options, device), embedder, options, observer)
    pipeline.warm_up()
    return pipeline


def open_face_finder(options: PipelineOptions, crop_shape: CropShape) -> FaceFinder:
    """A face finder that aligns faces to `crop_shape`."""
    return FaceFinder(open_detector(options, select_device(options.device)), crop_shape, options)


def open_detector(options: PipelineOptions, device: str) -> Detector:
    """The detector with a session per thread."""
    bundle = load_bundle(options.detector, "detector")
    return Detector(bundle, open_sessions(bundle, device, options.cache, options.threads), options.detection)
