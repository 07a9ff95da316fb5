"""Calibrations of any bundle, made of random people in a moment."""

import dataclasses
import json

from sameface.model.bundles.bundle import CALIBRATIONS, Bundle, rewrite_contract
from sameface.model.decision.calibration import Calibration
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


def calibrate_bundle(bundle: Bundle, name: str = "drawn", *, default: bool = False) -> Calibration:
    """A calibration as a file in the bundle's folder, as one that comes with a bundle."""
    calibration = measure(bundle, name)
    path = bundle.folder / CALIBRATIONS / f"{name}.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(dataclasses.asdict(calibration)))
    if default or bundle.contract.calibration is None:
        rewrite_contract(bundle, dataclasses.replace(bundle.contract, calibration=name))
    return calibration
