"""Draws detected faces onto a photo."""

from collections.abc import Sequence

from PIL import Image, ImageDraw

from sameface.model.faces import DetectedFace

COLOUR = (0, 220, 90)
INK = (0, 0, 0)


def draw_faces(
    image: Image.Image, faces: Sequence[DetectedFace], labels: Sequence[str] | None = None
) -> Image.Image:
    """A copy of the image with a box, five dots and a label for each face; the label is the score."""
    marked = image.copy()
    pen = ImageDraw.Draw(marked)
    width = max(1, max(image.size) // 300)
    for face, label in zip(faces, labels or [f"{face.score:.2f}" for face in faces], strict=True):
        box = face.box
        pen.rectangle(
            (box.left, box.top, box.left + box.width, box.top + box.height), outline=COLOUR, width=width
        )
        for x, y in face.landmarks:
            pen.ellipse((x - width, y - width, x + width, y + width), fill=COLOUR)
        draw_label(pen, label, face, max(10, 5 * width))
    return marked


def draw_label(pen: ImageDraw.ImageDraw, label: str, face: DetectedFace, size: int) -> None:
    """Write a label above the face, or below where the picture ends above it."""
    left, top = max(0.0, face.box.left), face.box.top
    place = (left, top, "lb") if top > 1.5 * size else (left, top + face.box.height, "lt")
    x, y, anchor = place
    pen.rectangle(pen.textbbox((x, y), label, anchor=anchor, font_size=size), fill=COLOUR)
    pen.text((x, y), label, INK, anchor=anchor, font_size=size)
