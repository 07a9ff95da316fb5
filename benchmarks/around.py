"""Where does the CPU time of a verification go, around the two networks?

The steps of a photo run one after the other on one thread, as a worker of the server runs them, with the
networks in between, whose weights push everything else out of the caches; each is measured by the thread's
own clock. The rest of what the server takes for a verification over HTTP is receiving, answering, threads and
the audit. The photos are those of LFW, and portraits of LFW enlarged to 640 x 480.

    python -m benchmarks.around LFW_FOLDER [--data ~/.sameface] [--photos 200]
"""

import argparse
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import ParamSpec, TypeVar

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.cost import compose
from benchmarks.shared.lfw import read_lfw
from benchmarks.shared.load import form_request, run_load
from benchmarks.shared.machine import describe_machine
from benchmarks.shared.server import serve
from sameface.model.bundles.bundle import DETECTOR_STRIDES
from sameface.model.data_folder import DataFolder
from sameface.model.faces import DetectedFace
from sameface.model.photo import detect
from sameface.model.photo.align import align_face
from sameface.model.photo.choose_face import choose_faces
from sameface.model.photo.embed import to_unit
from sameface.model.photo.image import decode_coarsely
from sameface.model.photo.pixel_budget import count_pixels
from sameface.model.photo.quality import assess_quality
from sameface.model.pipeline import Pipeline, PipelineOptions, open_pipeline

NETWORKS = ("detector", "recogniser")
WARM_UP = 10
CLIENTS = 4

Given = ParamSpec("Given")
Result = TypeVar("Result")


class Steps:
    """Milliseconds of CPU time of each step, photo by photo."""

    def __init__(self) -> None:
        self.spent: dict[str, list[float]] = {}

    def run(
        self, name: str, work: Callable[Given, Result], *given: Given.args, **named: Given.kwargs
    ) -> Result:
        """Do a step, and add what it took."""
        start = time.thread_time_ns()
        result = work(*given, **named)
        self.spent.setdefault(name, []).append((time.thread_time_ns() - start) / 1e6)
        return result

    def medians(self) -> dict[str, float]:
        """The median of each step."""
        return {name: median(spent) for name, spent in self.spent.items()}


def main() -> None:
    """Measure both sizes, and print a table each."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("lfw", type=Path)
    arguments.add_argument("--data", type=Path, default=Path("~/.sameface").expanduser())
    arguments.add_argument("--photos", type=int, default=200)
    options = arguments.parse_args()
    console = Console(width=100)
    console.print(describe_machine())
    files = [pair.probe for pair in read_lfw(options.lfw)][:: max(1, 3000 // options.photos)]
    for name, photos in {
        "250 x 250": [file.read_bytes() for file in files],
        "640 x 480": [compose([file], 640, 480) for file in files],
    }.items():
        steps = measure_steps(options.data, photos)
        console.print(show(name, steps.medians(), measure_server(options.data, photos)))


def measure_steps(data: Path, photos: Sequence[bytes]) -> Steps:
    """Walk every photo through the steps."""
    pipeline = open_pipeline(PipelineOptions.in_folder(DataFolder(data), threads=1))
    for photo in photos[:WARM_UP]:
        walk(pipeline, photo, Steps())
    steps = Steps()
    for photo in photos:
        walk(pipeline, photo, steps)
    pipeline.close()
    return steps


def walk(pipeline: Pipeline, photo: bytes, steps: Steps) -> None:
    """The steps of `Pipeline.embed_one_face`, each measured."""
    limits, detector, embedder = pipeline.options.limits, pipeline.detector, pipeline.embedder
    steps.run("header, room for the pixels", count_pixels, photo, limits)
    image, _ = steps.run("decode", decode_coarsely, photo, limits, detector.options.max_side)
    canvas = [-(-side // detect.MULTIPLE) * detect.MULTIPLE for side in image.shape[:2]]
    pixels = steps.run("canvas and colours to floats", detector.bundle.preprocess, image[None], canvas)
    outputs = steps.run("detector", detector.sessions.run, pixels, detect.OUTPUTS)
    named = dict(zip(detect.OUTPUTS, outputs, strict=True))
    height, width, _ = image.shape

    def find_boxes() -> list[DetectedFace]:
        found = [
            detect.decode_stride(named, stride, canvas[1], detector.options.min_score)
            for stride in DETECTOR_STRIDES
        ]
        rows = detect.suppress_overlaps(np.concatenate(found))
        return choose_faces("prominent", detect.to_faces(rows, (width, height)), (width, height))

    for face in steps.run("cells to boxes, choose", find_boxes):
        crop = steps.run("align", align_face, image, face.landmarks, *pipeline.crop_shape)
        steps.run("quality", assess_quality, face, crop)
        crops = steps.run("crop to floats", embedder.bundle.preprocess, crop[None])
        [embeddings] = steps.run("recogniser", embedder.sessions.run, crops)
        steps.run("embedding to length 1", to_unit, embeddings[0])


def measure_server(data: Path, photos: Sequence[bytes]) -> float:
    """Milliseconds of CPU time that the server takes for a verification, at four clients."""
    pairs = zip(photos[::2], photos[1::2], strict=False)
    requests = [form_request("/v1/verify", {"probe": one, "reference": other}) for one, other in pairs]
    with serve(data) as server:
        run_load(server, requests, CLIENTS, count=WARM_UP)
        before = server.cpu_seconds
        load = run_load(server, requests, CLIENTS, count=len(requests))
        return 1000 * (server.cpu_seconds - before) / len(load.answers)


def show(name: str, photo: dict[str, float], server: float) -> Table:
    """A row per step, for a photo and for a verification of two, with its share of the server's time."""
    table = Table(f"photos of {name}", "ms of a core, a photo", "a verification", "of the server's")
    networks = 2 * sum(photo[network] for network in NETWORKS)
    rest = server - 2 * sum(photo.values())
    for step, spent in photo.items():
        table.add_row(step, f"{spent:.3f}", f"{2 * spent:.2f}", f"{2 * spent / server:.1%}")
    table.add_row("receive, answer, threads, audit", "", f"{rest:.2f}", f"{rest / server:.1%}")
    table.add_section()
    table.add_row("the networks", "", f"{networks:.2f}", f"{networks / server:.1%}")
    table.add_row("around them", "", f"{server - networks:.2f}", f"{1 - networks / server:.1%}")
    table.add_row("all, by the server's clock", "", f"{server:.2f}", "")
    return table


if __name__ == "__main__":
    main()
