"""Calibrations of any bundle, made of random people in a moment."""

from sameface.model.bundles.bundle import Bundle
from sameface.model.decision.calibration import Calibration
from sameface.model.decision.calibration_files import save_calibration
from sameface.model.measurement.fit_calibration import calibrate
from sameface.model.measurement.labelled_photos import LabelledFaces
from tests.model.strangers import draw_people

PAIRS = 79_600  # impostors of 200 people with two faces: rates from 3.8e-4 up are supported
LOWEST = 30 / PAIRS


def draw_faces(people: int = 200, faces: int = 2, **options: float) -> LabelledFaces:
    drawn = draw_people(people, faces, **options)
    names = [f"p{person}" for person in range(people)]
    files = [f"p{person}/{face}" for face, person in enumerate(drawn.people)]
    return LabelledFaces(names, files, drawn, [])


def measure(bundle: Bundle, name: str = "drawn", faces: LabelledFaces | None = None) -> Calibration:
    return calibrate(bundle, name, faces or draw_faces(), data="drawn", target_fmr=1e-3)


def calibrate_bundle(bundle: Bundle, name: str = "drawn", **options: bool) -> Calibration:
    calibration = measure(bundle, name)
    save_calibration(calibration, bundle, **options)
    return calibration
