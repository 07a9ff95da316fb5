"""Draws a crop from the parameters of a person and those of one photo of the person."""

from dataclasses import dataclass

import numpy as np
from PIL import Image

from sameface.model.faces import Pixels, Point
from sameface.training.data.crop import CROP_SIDE
from sameface.training.data.synthetic.canvas import (
    Canvas,
    Colour,
    Shape,
    between,
    curve,
    mirror,
    oval,
    shade,
)

# The depth of each part in front of the eyes, in pixels of the crop.
EARS, HEAD, HAIR, EYES, BEARD, GLASSES, MOUTH, NOSE = -22, -12, -10, 0, 2, 5, 6, 13
LANDMARK_DEPTHS = np.array((EYES, EYES, NOSE, MOUTH, MOUTH), float)
CROWN = 58  # of the head, pixels above the eyes
WHITE, BLACK = (236, 232, 226), (24, 18, 18)


@dataclass(frozen=True, slots=True, kw_only=True)
class Person:
    """What all photos of a person share; lengths in pixels of the crop."""

    skin: Colour
    face_width: float
    chin: float
    jaw: float  # 1.7 is pointed, 3 is square
    ears: float
    eye_gap: float
    eye_width: float
    eye_height: float
    eye_tilt: float
    iris: Colour
    brow_height: float
    brow_width: float
    brow_tilt: float
    nose_length: float
    nose_width: float
    mouth_height: float
    mouth_width: float
    lips: float
    lip_colour: Colour
    hair: str  # one of HAIR_STYLES; beard and glasses likewise
    hair_colour: Colour
    hairline: float
    beard: str
    glasses: str
    glasses_colour: Colour
    mole: complex


@dataclass(frozen=True, slots=True, kw_only=True)
class Shot:
    """What differs between photos of a person."""

    yaw: float  # in radians, like the nod
    nod: float
    turn: complex  # scale and roll that are left after alignment
    move: complex
    smile: float
    gape: float
    lids: float
    brow_raise: float
    backdrop: tuple[Colour, Colour]
    clothes: Colour
    light: complex  # points to the brighter side; its length is the change from centre to edge
    exposure: tuple[float, float, float]  # factors of red, green and blue
    noise: float
    noise_seed: int


HAIR_STYLES = ("bald", "short", "fringe", "parted", "long", "curly")
BEARDS = ("none", "none", "none", "moustache", "goatee", "full")
GLASSES_STYLES = ("none", "none", "none", "round", "square")


def draw_portrait(person: Person, shot: Shot) -> Pixels:
    """The aligned crop of one photo, RGB (112, 112, 3)."""
    canvas = open_canvas(person, shot)
    draw_head(canvas, person, shot)
    draw_hair(canvas, person)
    draw_beard(canvas, person)
    draw_nose(canvas, person)
    draw_mouth(canvas, person, shot)
    for side in (-1, 1):
        draw_eye(canvas, person, shot, side)
        draw_glass(canvas, person, side)
    return develop(canvas.finish(), shot)


def open_canvas(person: Person, shot: Shot) -> Canvas:
    """A canvas with the background, aligned to the person's landmarks."""
    backdrop = Image.fromarray(np.array([shot.backdrop, shot.backdrop[::-1]], np.uint8))
    canvas = Canvas(backdrop, shot.yaw, shot.nod)
    canvas.align(place_landmarks(person, shot), LANDMARK_DEPTHS, shot.turn, shot.move)
    return canvas


def place_landmarks(person: Person, shot: Shot) -> Shape:
    """Eyes, nose and corners of the mouth before the head turns, left of the image first."""
    corner = complex(person.mouth_width * (1 + 0.12 * shot.smile), person.mouth_height - 3 * shot.smile)
    eye, nose = person.eye_gap, 1j * person.nose_length
    return np.array((-eye, eye, nose, -corner.conjugate(), corner))


def find_landmarks(person: Person, shot: Shot) -> list[Point]:
    """The five landmarks in pixels of the portrait."""
    return open_canvas(person, shot).place(place_landmarks(person, shot), LANDMARK_DEPTHS)


def draw_head(canvas: Canvas, person: Person, shot: Shot) -> None:
    """Draw long hair behind the head, then neck, clothes, ears, the face's outline and a mole."""
    if person.hair == "long":
        canvas.fill(oval(person.face_width * 1.2, CROWN + 4, 90, 4), HAIR, person.hair_colour)
    canvas.fill(oval(24, 10, 40, 4) + 60j, EARS, shade(person.skin, 0.7))
    canvas.fill(oval(70, 14, 60) + 88j, EARS, shot.clothes)
    for side in (-1, 1):
        ear = oval(person.ears, person.ears * 1.6, person.ears * 1.7) + (person.face_width - 1 + 6j)
        canvas.fill(mirror(ear, side), EARS, shade(person.skin, 0.85))
    face = oval(person.face_width, CROWN - 4, person.chin, person.jaw)
    canvas.fill(face * 1.02, HEAD, shade(person.skin, 0.82))
    canvas.fill(face * 0.97, HEAD, person.skin)
    if person.mole:
        canvas.fill(oval(1.6, 1.6, 1.6) + person.mole, BEARD, shade(person.skin, 0.35))


def draw_hair(canvas: Canvas, person: Person) -> None:
    """Draw the hair from the crown down to the hairline."""
    if person.hair == "bald":
        return
    head = oval(person.face_width * 1.06, CROWN, 20)
    outer = np.sort(head[head.imag <= 0])  # from the left temple over the crown to the right one
    if person.hair == "curly":
        outer = outer * (1.08 + 0.04 * np.cos(2.5 * np.arange(len(outer))))
    part = -0.5 if person.hair == "parted" else 0
    across = np.linspace(1, -1, 17)
    from_part = np.abs(across - part) / np.where(across > part, 1 - part, 1 + part)
    top = {"fringe": 14, "curly": person.hairline - 4}.get(person.hair, person.hairline)
    inner = person.face_width * across + 1j * (26 * from_part**4 - top)
    if person.hair == "fringe":
        inner += 1.5j * np.cos(9 * across)
    canvas.fill(np.concatenate((outer, inner)), HAIR, person.hair_colour)


def draw_beard(canvas: Canvas, person: Person) -> None:
    """Draw a moustache, a goatee, or a full beard along the jaw."""
    colour = shade(person.hair_colour, 0.9)
    mouth = 1j * person.mouth_height
    if person.beard == "full":
        jaw = oval(person.face_width * 0.98, 20, person.chin, person.jaw)
        jaw = np.sort(jaw[jaw.imag >= 24])  # from the left ear under the chin to the right one
        canvas.fill(between(jaw, curve(jaw[-1].real, -12) + 30j), HEAD, colour)
    if person.beard in ("goatee", "full"):
        canvas.fill(oval(person.mouth_width * 0.9, 4, 17, 3) + mouth + 6j, BEARD, colour)
    if person.beard != "none":
        width = person.mouth_width * 1.05
        canvas.fill(between(curve(width, -9), curve(width, -3)) + mouth, MOUTH, colour)


def draw_nose(canvas: Canvas, person: Person) -> None:
    """Draw a shaded bridge, the tip and two nostrils."""
    width, tip = person.nose_width, 1j * person.nose_length
    bridge = np.array((-2 + 4j, 2 + 4j, width * 0.7 + tip, -width * 0.7 + tip))
    depths = np.array((3, 3, NOSE, NOSE), float)
    canvas.fill(bridge, depths, shade(person.skin, 0.93))
    canvas.fill(bridge.real * 0.4 - 0.8 + 1j * bridge.imag, depths, shade(person.skin, 1.08))
    canvas.fill(oval(width, width * 0.55, 4) + tip, NOSE, shade(person.skin, 0.9))
    for side in (-1, 1):
        canvas.fill(
            oval(width * 0.24, 1.2, 1.2) + side * width * 0.5 + tip + 2.4j, NOSE, shade(person.skin, 0.45)
        )


def draw_mouth(canvas: Canvas, person: Person, shot: Shot) -> None:
    """Draw two lips that the smile bends, and the open mouth between them."""
    width = person.mouth_width * (1 + 0.12 * shot.smile)
    bend = 5 * shot.smile
    centre = 1j * (person.mouth_height - 3 * shot.smile)
    upper, middle = curve(width, bend - person.lips), curve(width, bend)
    lower = curve(width, bend + shot.gape)
    canvas.fill(between(middle, lower) + centre, MOUTH, BLACK)
    if shot.gape > 3:
        canvas.fill(between(middle, curve(width, bend + 2.5)) + centre, MOUTH, WHITE)
    canvas.fill(between(upper, middle) + centre, MOUTH, person.lip_colour)
    bottom = curve(width * 0.96, bend + shot.gape + person.lips * 1.3)
    canvas.fill(between(lower, bottom) + centre, MOUTH, shade(person.lip_colour, 1.1))
    canvas.trace(middle + centre, MOUTH, shade(person.lip_colour, 0.5), 0.8)


def draw_eye(canvas: Canvas, person: Person, shot: Shot, side: int) -> None:
    """Draw white, iris and pupil under the lid, and the brow above."""
    centre = person.eye_gap
    height = person.eye_height * shot.lids
    tilt = np.exp(-1j * person.eye_tilt)
    lid, below = curve(person.eye_width, -height), curve(person.eye_width, height * 0.75)

    def put(shape: Shape, colour: Colour) -> None:
        canvas.fill(mirror(shape * tilt + centre, side), EYES, colour)

    put(between(lid - 2j, below + 1j), shade(person.skin, 0.8))
    put(between(lid, below), WHITE)
    radius = person.eye_height * 0.95
    put(oval(radius, min(radius, height), min(radius, height * 0.8)), person.iris)
    put(oval(radius * 0.45, radius * 0.45, radius * 0.45), BLACK)
    canvas.trace(mirror(lid * tilt + centre, side), EYES, BLACK, 1.2)
    thick = person.brow_width
    brow = between(curve(10, -3) - 0.5j * thick, curve(10, -3) + 0.5j * thick) * np.exp(
        -1j * person.brow_tilt
    )
    raised = centre - 1j * (person.brow_height + shot.brow_raise)
    canvas.fill(mirror(brow + raised, side), EYES, shade(person.hair_colour, 0.75))


def draw_glass(canvas: Canvas, person: Person, side: int) -> None:
    """Draw one glass with its half of the bridge and its temple."""
    if person.glasses == "none":
        return
    colour, centre = person.glasses_colour, person.eye_gap + 1j
    rim = oval(13, 10, 11) if person.glasses == "round" else np.array((-13 - 8j, 14 - 9j, 13 + 9j, -11 + 9j))
    closed = np.concatenate((rim, rim[:2]))
    canvas.trace(mirror(closed + centre, side), GLASSES, colour, 1.8)
    canvas.trace(mirror(np.array((0j - 2j, centre - 13 - 2j)), side), GLASSES, colour, 1.8)
    temple = np.array((centre + 13 - 4j, person.face_width + 0j))
    canvas.trace(mirror(temple, side), np.array((GLASSES, HEAD), float), colour, 1.8)


def develop(image: Image.Image, shot: Shot) -> Pixels:
    """Apply light from one side, exposure, and sensor noise."""
    reach = np.linspace(-1, 1, CROP_SIDE, dtype=np.float32)
    light = 1 + shot.light.real * reach + shot.light.imag * reach[:, None]  # (112, 112)
    lit = np.asarray(image) * light[..., None] * np.array(shot.exposure, np.float32)  # (112, 112, 3)
    noise = np.random.default_rng(shot.noise_seed).standard_normal(lit.shape, np.float32)
    exposed: Pixels = (lit + shot.noise * noise).round().clip(0, 255).astype(np.uint8)
    return exposed
