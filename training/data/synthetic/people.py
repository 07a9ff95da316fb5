"""A data set of drawn identities, for tests and for a first run without real photos."""

import colorsys
from pathlib import Path

import numpy as np
from numpy.random import Generator
from PIL import Image

from sameface.model.observer import Progress, ignore_progress
from sameface.training.data.synthetic.canvas import Colour
from sameface.training.data.synthetic.portrait import (
    BEARDS,
    GLASSES_STYLES,
    HAIR_STYLES,
    Person,
    Shot,
    draw_portrait,
)

SKINS = ((250, 222, 200), (232, 190, 160), (205, 155, 120), (160, 110, 78), (112, 74, 54), (70, 46, 36))
IRISES = ((92, 58, 30), (60, 36, 22), (70, 110, 160), (84, 120, 72), (112, 122, 130))
HAIRS = (
    (30, 24, 22),
    (66, 42, 28),
    (120, 78, 44),
    (196, 154, 92),
    (150, 66, 30),
    (168, 166, 162),
    (230, 226, 220),
)


def write_identities(
    folder: Path, people: int, images: int, seed: int = 0, progress: Progress = ignore_progress
) -> None:
    """Draw `images` aligned crops of each of `people` people: `0000/0000_0000.png`, 112x112.

    An image follows from `seed`, its person's number and its own number alone, so that a larger set contains
    the smaller ones. Background, clothes and light are drawn anew for every image, so that only the face
    identifies a person.
    """
    for number in range(people):
        home = folder / f"{number:04}"
        home.mkdir(parents=True, exist_ok=True)
        person = invent_person(np.random.default_rng((seed, number, 0)))
        for image in range(images):
            shot = invent_shot(np.random.default_rng((seed, number, image + 1)))  # 0 seeds the person
            crop = Image.fromarray(draw_portrait(person, shot))
            crop.save(home / f"{number:04}_{image:04}.png", compress_level=1)
        progress("drawing", number + 1, people)


def write_pairs(file: Path, people: int, images: int, folds: int = 5) -> None:
    """List pairs of drawn people in the format of LFW, equally many in each fold.

    A person's first two images are a genuine pair, the last images of a person and the next an impostor pair.
    People who would make a fold larger are left out.
    """
    size = people // folds
    lines = [f"{folds}\t{size}"]
    for fold in range(folds):
        numbers = range(fold * size, (fold + 1) * size)
        lines += [f"{number:04}\t0\t1" for number in numbers]
        lines += [
            f"{number:04}\t{images - 1}\t{(number + 1) % people:04}\t{images - 1}" for number in numbers
        ]
    file.write_text("\n".join(lines) + "\n", "utf-8")


def invent_person(random: Generator) -> Person:
    """A random person."""
    skin = mix_neighbours(SKINS, random)
    return Person(
        skin=skin,
        face_width=random.uniform(36, 46),
        chin=random.uniform(56, 68),
        jaw=random.uniform(1.7, 3),
        ears=random.uniform(3, 7),
        eye_gap=random.uniform(15.5, 20),
        eye_width=random.uniform(6.5, 10),
        eye_height=random.uniform(2.8, 5.2),
        eye_tilt=random.uniform(-0.2, 0.25),
        iris=vary(IRISES, random),
        brow_height=random.uniform(9, 14),
        brow_width=random.uniform(1.2, 4.5),
        brow_tilt=random.uniform(-0.25, 0.25),
        nose_length=random.uniform(17, 24),
        nose_width=random.uniform(4.5, 9.5),
        mouth_height=random.uniform(37.5, 43),
        mouth_width=random.uniform(11, 18),
        lips=random.uniform(1.2, 4.2),
        lip_colour=mix(skin, (190, 60, 70), random.uniform(0.2, 0.7)),
        hair=str(random.choice(HAIR_STYLES)),
        hair_colour=vary(HAIRS, random),
        hairline=random.uniform(26, 42),
        beard=str(random.choice(BEARDS)),
        glasses=str(random.choice(GLASSES_STYLES)),
        glasses_colour=any_colour(random, 0.1, 0.6),
        mole=invent_mole(random),
    )


def invent_mole(random: Generator) -> complex:
    """A point on a cheek or the forehead for one person in three, else 0."""
    side, places = random.choice((-1, 1)), ((20, 20), (15, 32), (12, -22), (26, 12))
    x, y = places[random.integers(len(places))]
    return complex(side * x, y) if random.random() < 1 / 3 else 0j


def invent_shot(random: Generator) -> Shot:
    """Random pose, expression, background, light and noise."""
    warmth = random.uniform(-0.08, 0.08)
    exposure = random.uniform(0.7, 1.15)
    return Shot(
        yaw=float(random.normal(0, 0.16)),
        nod=float(random.normal(0, 0.1)),
        turn=complex(random.normal(1, 0.02), random.normal(0, 0.025)),
        move=complex(random.normal(0, 1), random.normal(0, 1)),
        smile=random.uniform(-0.4, 1),
        gape=max(0.0, random.uniform(-6, 6)),
        lids=random.uniform(0.6, 1.1),
        brow_raise=random.uniform(-1, 2.5),
        backdrop=(any_colour(random), any_colour(random)),
        clothes=any_colour(random),
        light=complex(random.normal(0, 0.15), random.normal(0, 0.1)),
        exposure=(exposure * (1 + warmth), exposure, exposure * (1 - warmth)),
        noise=random.uniform(1, 7),
        noise_seed=int(random.integers(2**32)),
    )


def vary(colours: tuple[Colour, ...], random: Generator) -> Colour:
    """A random one of the colours, slightly varied."""
    chosen = colours[random.integers(len(colours))]
    return mix(chosen, any_colour(random), random.uniform(0, 0.12))


def mix_neighbours(colours: tuple[Colour, ...], random: Generator) -> Colour:
    """A random mixture of two neighbouring colours."""
    place = random.uniform(0, len(colours) - 1)
    start = min(int(place), len(colours) - 2)
    return mix(colours[start], colours[start + 1], place - start)


def mix(first: Colour, second: Colour, share: float) -> Colour:
    """`first` mixed with the share `share` of `second`."""
    red, green, blue = (round(a + (b - a) * share) for a, b in zip(first, second, strict=True))
    return red, green, blue


def any_colour(random: Generator, darkest: float = 0.1, lightest: float = 0.9) -> Colour:
    """A random hue with a brightness from `darkest` to `lightest`."""
    hue, saturation, value = random.uniform(), random.uniform(0, 0.7), random.uniform(darkest, lightest)
    red, green, blue = (round(part * 255) for part in colorsys.hsv_to_rgb(hue, saturation, value))
    return red, green, blue
