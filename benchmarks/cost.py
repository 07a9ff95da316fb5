"""What does a photo cost, by its size and its number of faces?

Portraits of LFW are tiled and scaled to the sizes of cameras, with a little noise, as a camera makes it: a
smooth JPEG would decode too fast. One client asks for the embeddings of all faces; the stages are the
server's `timings_ms`. OpenCV embeds the same photos in process, with its own threads, at their full size.

    python -m benchmarks.cost LFW_FOLDER [--data ~/.sameface] [--turns 9]
"""

import argparse
import io
import json
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

import cv2
import numpy as np
from PIL import Image
from rich.console import Console
from rich.progress import track
from rich.table import Table

from benchmarks.rivals.opencv import OpenCvPath
from benchmarks.shared.lfw import read_lfw
from benchmarks.shared.load import Connection, form_request
from benchmarks.shared.server import serve
from sameface.model.bundles.bundle import load_bundle
from sameface.model.data_folder import DataFolder

PHOTOS = [  # width, height, faces
    (250, 250, 1),
    (640, 480, 1),
    (1920, 1080, 1),
    (4000, 3000, 1),
    (1920, 1080, 5),
    (1920, 1080, 50),
]
STAGES = ("decode", "detect", "align", "embed")
NOISE = 3  # standard deviation, of 255 levels


@dataclass(slots=True)
class Row:
    """A photo, and the answers and times measured with it."""

    name: str
    photo: bytes
    answers: list[Any] = field(default_factory=list)
    milliseconds: list[float] = field(default_factory=list)
    opencv_faces: int = 0
    opencv_milliseconds: list[float] = field(default_factory=list)


def main() -> None:
    """Embed every photo with the server and with OpenCV by turns, and print the table."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("lfw", type=Path)
    arguments.add_argument("--data", type=Path, default=Path("~/.sameface").expanduser())
    arguments.add_argument("--turns", type=int, default=9)
    options = arguments.parse_args()
    portraits = [pair.probe for pair in read_lfw(options.lfw)[::15]]
    rows = [
        Row(f"{width} x {height}, {faces} faces", compose(portraits[:faces], width, height))
        for width, height, faces in PHOTOS
    ]
    folder = DataFolder(options.data)
    opencv = OpenCvPath(load_bundle(folder.detector).path, load_bundle(folder.recognizer).path)
    with serve(options.data) as server, Connection(server) as connection:
        for _ in track(range(options.turns), transient=True):
            for row in rows:
                ask_server(connection, row)
                ask_opencv(opencv, row)
    Console(width=130).print(describe(rows))


def compose(portraits: Sequence[Path], width: int, height: int) -> bytes:
    """A JPEG of this size with the portraits tiled in rows."""
    columns = math.ceil(math.sqrt(len(portraits) * width / height))
    side = min(width // columns, height // math.ceil(len(portraits) / columns))
    whole = Image.new("RGB", (width, height), (96, 96, 96))
    for place, portrait in enumerate(portraits):
        row, column = divmod(place, columns)
        with Image.open(portrait) as image:
            whole.paste(image.resize((side, side), Image.Resampling.BICUBIC), (column * side, row * side))
    noise = np.random.default_rng(0).normal(0, NOISE, (height, width, 3))
    pixels = (np.asarray(whole) + noise).clip(0, 255).astype(np.uint8)
    content = io.BytesIO()
    Image.fromarray(pixels).save(content, "JPEG", quality=90)
    return content.getvalue()


def ask_server(connection: Connection, row: Row) -> None:
    """Embed all faces over HTTP, and record the time and the answer."""
    request = form_request("/v1/embed", {"image": row.photo}, {"encoding": "base64"})
    start = time.perf_counter()
    status, body = connection.ask(request)
    row.milliseconds.append((time.perf_counter() - start) * 1000)
    assert status == 200, body
    row.answers.append(json.loads(body))


def ask_opencv(opencv: OpenCvPath, row: Row) -> None:
    """Embed all faces with OpenCV in process, and record the time and the number of faces."""
    start = time.perf_counter()
    row.opencv_faces = len(opencv.embed_all(row.photo))
    row.opencv_milliseconds.append((time.perf_counter() - start) * 1000)


def describe(rows: list[Row]) -> Table:
    """A table with a row per photo, of medians."""
    table = Table("photo", "kB", "faces", "ms", *STAGES, "rest", f"OpenCV {cv2.__version__}: ms", "faces")
    for row in rows:
        whole = median(row.milliseconds)
        stages = [median(answer["timings_ms"][stage] for answer in row.answers) for stage in STAGES]
        table.add_row(
            row.name,
            f"{len(row.photo) / 1000:.0f}",
            str(len(row.answers[0]["faces"])),
            *(f"{milliseconds:.1f}" for milliseconds in (whole, *stages, whole - sum(stages))),
            f"{median(row.opencv_milliseconds):.1f}",
            str(row.opencv_faces),
        )
    return table


if __name__ == "__main__":
    main()
