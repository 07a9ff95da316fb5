"""Draws detected faces onto a photo."""

from collections.abc import Sequence

from PIL import Image, ImageDraw

from sameface.model.faces import DetectedFace

COLOUR = (0, 220, 90)


def draw_faces(image: Image.Image, faces: Sequence[DetectedFace]) -> Image.Image:
    """A copy of the image with a box, five dots and the score of each face."""
    marked = image.copy()
    pen = ImageDraw.Draw(marked)
    width = max(1, max(image.size) // 300)
    for face in faces:
        box = face.box
        pen.rectangle(
            (box.left, box.top, box.left + box.width, box.top + box.height), outline=COLOUR, width=width
        )
        for x, y in face.landmarks:
            pen.ellipse((x - width, y - width, x + width, y + width), fill=COLOUR)
        pen.text((box.left, box.top), f"{face.score:.2f}", COLOUR, anchor="lb", font_size=max(10, 5 * width))
    return marked
