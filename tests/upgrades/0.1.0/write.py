"""Writes what version 0.1.0 leaves behind; README.md says how to run it with the code of that version."""
# ruff: noqa: I001, TID251 (in 0.1.0 the rooms were packages of their own)

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from model import reembed
from model.bundle import load_bundle
from model.folders import DataFolder
from model.gallery import Gallery
from model.store import Store
from model.transfer import import_collection
from tests.model.calibrated import calibrate_bundle
from tests.networks import build_detector, build_recogniser
from tests.pictures import draw_photo

DATA, ARCHIVE, PHOTOS = Path("data"), Path("staff.gz"), Path("photos")
MODELS = DATA / "models"
PEOPLE = {"ada": 1, "bob": 2, "carl": 3}


def sameface(data: Path, *words: object) -> None:
    places = {"SAMEFACE_DATA": data, "SAMEFACE_RECOGNIZER": MODELS / "recogniser"}
    places |= {"SAMEFACE_DETECTOR": MODELS / "detector"}
    environment = os.environ | {name: str(place) for name, place in places.items()}
    subprocess.run([sys.executable, "-m", "sameface", *map(str, words)], check=True, env=environment)


def build_bundles() -> None:
    for name in ("recogniser", "detector", "other"):
        (MODELS / name).mkdir(parents=True)
    build_detector(MODELS / "detector")
    build_recogniser(MODELS / "other", name="other", seed=7)
    calibrate_bundle(build_recogniser(MODELS / "recogniser"))


def draw_probes() -> None:
    PHOTOS.mkdir()
    for person, number in PEOPLE.items():
        draw_photo(number, noise=number).save(PHOTOS / f"{person}.jpg")


def enrol_staff(photos: Path) -> None:
    """Ada and Bob with two faces each; Carl was enrolled and forgotten."""
    for person, number in PEOPLE.items():
        (photos / person).mkdir()
        draw_photo(number).save(photos / person / "1.png")
        draw_photo(number).resize((480, 360)).save(photos / person / "2.png")
    sameface(DATA, "enroll", photos, "--collection", "staff", "--store-crops")
    sameface(DATA, "forget", "carl", "--collection", "staff")
    with closing(Gallery(DATA / "gallery.db", load_bundle(MODELS / "recogniser"))) as gallery:
        staff = gallery.get_collection("staff")
        gallery.store.update_person(staff, "ada", {"name": "Ada Example", "metadata": {"desk": 12}})
        gallery.indexes.renew(gallery.get_collection("staff"))
    sameface(DATA, "export", "staff", ARCHIVE)


def interrupt(home: Path) -> None:
    """A draft of each kind: an import and a move that were killed, and a move killed before it tidied up."""
    for name in ("staff", "visitors"):
        sameface(home, "import", ARCHIVE, "--collection", name)
    other, folder = load_bundle(MODELS / "other"), DataFolder(DATA)
    let_die(lambda store: import_collection(store, ARCHIVE, "guests", die_importing), home)
    let_die(lambda store: reembed.move_collection(store, "staff", other, folder, progress=die), home)
    finish = reembed.finish
    reembed.finish = lambda *words: finish(*words) and die()
    let_die(lambda store: reembed.move_collection(store, "visitors", other, folder), home)
    sameface(home, "people", "--collection", "staff")  # leaves everything in one file


def let_die(work: Callable[[Store], object], home: Path) -> None:
    """Do this in a process that is expected to be killed by it."""
    child = os.fork()
    if not child:
        work(Store(home / "gallery.db"))
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9


def die_importing(what: str, *_: object) -> None:
    if what == "importing":
        die()


def die(*_: object) -> None:
    os._exit(9)


if __name__ == "__main__":
    build_bundles()
    draw_probes()
    with tempfile.TemporaryDirectory() as spare:
        enrol_staff(Path(spare))
    with tempfile.TemporaryDirectory() as spare:
        interrupt(Path(spare))
        shutil.move(Path(spare) / "gallery.db", "interrupted.db")
    shutil.rmtree(DATA / "cache")
    for lock in (*DATA.rglob("*.lock"), *DATA.rglob("*.opening")):
        lock.unlink()
