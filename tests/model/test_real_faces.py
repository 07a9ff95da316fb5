"""The published networks on real faces: right people, right colours, right way up."""

import asyncio
import hashlib
import io
import os
import tarfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageFilter

from sameface.model.bundles.bundle import load_bundle, read_json
from sameface.model.bundles.published import MODELS, SHIPPED
from sameface.model.data_folder import DataFolder
from sameface.model.decision.calibration_files import read_calibration
from sameface.model.decision.similarity import measure_similarity
from sameface.model.faces import EmbeddedFace
from sameface.model.gallery.gallery import open_gallery
from sameface.model.measurement.photo_sketch import draw_sketch, estimate_overlap
from sameface.model.photo.embed import open_embedder
from sameface.model.photo.quality import assess_quality
from sameface.model.pipeline import Pipeline
from sameface.model.runtime.precision.choice import AUTO, EXACT, Precision
from sameface.model.runtime.precision.proof import LEAST_COSINE
from sameface.model.runtime.session import open_session
from sameface.model.verify import VerifyRequest, verify
from tests.pictures import encode

THRESHOLD = 0.363  # the published one
LFW_TAR = Path(
    os.environ.get("SAMEFACE_LFW_TAR") or Path(__file__).parents[3] / "shared" / "data" / "lfw_dev.tar"
)
PAIRS = 40  # of either sort
ORIENTATION = 0x0112

Portrait = Callable[[str], bytes]
LfwName = tuple[str, int]


@pytest.fixture
def portrait(real_data: DataFolder) -> Portrait:
    return lambda name: (real_data.demo / f"{name}.jpg").read_bytes()


@pytest.fixture
def find_face(real_pipeline: Pipeline) -> Callable[[bytes], EmbeddedFace]:
    def find(photo: bytes) -> EmbeddedFace:
        [face] = real_pipeline.embed_faces(photo, "only").faces
        return face

    return find


FindFace = Callable[[bytes], EmbeddedFace]


def open_photo(photo: bytes) -> Image.Image:
    return Image.open(io.BytesIO(photo))


def cut_to_face(photo: bytes, face: EmbeddedFace, margin: float, enlarge: int = 1) -> Image.Image:
    """The picture of a face's box, with a margin in shares of the box (negative: a part of the box)."""
    box = face.box
    x, y = box.width * margin, box.height * margin
    edges = box.left - x, box.top - y, box.left + box.width + x, box.top + box.height + y
    cut = open_photo(photo).crop([round(edge) for edge in edges])
    return cut.resize((cut.width * enlarge, cut.height * enlarge), Image.Resampling.BICUBIC)


# Portraits.


@pytest.mark.parametrize(("name", "part"), [("sface", "embedder"), ("yunet", "detector")])
def test_the_bundles_feed_their_networks_as_published(real_pipeline: Pipeline, name: str, part: str) -> None:
    """So that what the tests below prove is proven of the published contracts."""
    bundle = getattr(real_pipeline, part).bundle
    assert bundle.sha256 == MODELS[name].file.sha256
    assert replace(bundle, contract=MODELS[name].contract).identity == bundle.identity


@pytest.mark.parametrize(
    ("probe", "reference", "same_person"),
    [("obama", "obama2", True), ("obama", "biden", False), ("obama2", "biden", False)],
)
def test_portraits_of_one_person_are_the_same_and_of_two_are_not(
    real_pipeline: Pipeline,
    portrait: Portrait,
    tmp_path: Path,
    probe: str,
    reference: str,
    same_person: bool,
) -> None:
    request = VerifyRequest(probe=portrait(probe), reference=portrait(reference))
    with closing(open_gallery(DataFolder(tmp_path), real_pipeline)) as gallery:
        decision = asyncio.run(verify(real_pipeline, gallery, request))
    assert not (tmp_path / "gallery.db").exists()  # two photos need no gallery
    assert decision.same_person is same_person
    assert decision.threshold == pytest.approx(0.415, abs=0.001)  # at FMR 1e-4, as calibrated
    assert (decision.probe.faces_found, decision.reference.faces_found) == (1, 1)


def test_the_similarity_is_what_these_weights_are_known_for(find_face: FindFace, portrait: Portrait) -> None:
    """OpenCV's own path comes to 0.74; a wrong crop, order or normalisation comes to less."""
    faces = [find_face(portrait(name)) for name in ("obama", "obama2")]
    assert measure_similarity(faces[0].embedding, faces[1].embedding) == pytest.approx(0.74, abs=0.03)


@pytest.mark.parametrize("name", ["obama", "obama2", "biden"])
def test_a_portrait_is_a_good_face(find_face: FindFace, portrait: Portrait, name: str) -> None:
    face = find_face(portrait(name))
    assert (face.score > 0.85, face.quality.score > 0.9, face.quality.issues) == (True, True, ())
    left_eye, right_eye, nose, left_mouth, right_mouth = face.landmarks
    assert left_eye[0] < nose[0] < right_eye[0]
    assert left_mouth[0] < right_mouth[0]
    assert max(left_eye[1], right_eye[1]) < nose[1] < min(left_mouth[1], right_mouth[1])


@pytest.mark.parametrize("light", [1, 0.35])
@pytest.mark.parametrize("name", ["obama", "obama2", "biden"])
def test_a_portrait_out_of_focus_is_named_blurred_in_any_light(
    find_face: FindFace, portrait: Portrait, name: str, light: float
) -> None:
    face = find_face(portrait(name))
    lit = Image.fromarray((face.crop * light).astype(np.uint8))
    blurred = np.asarray(lit.filter(ImageFilter.GaussianBlur(4)))
    assert "blurred" not in assess_quality(face, np.asarray(lit)).issues
    assert "blurred" in assess_quality(face, blurred).issues


@pytest.mark.parametrize(
    ("orientation", "stored"),
    [
        (3, Image.Transpose.ROTATE_180),
        (6, Image.Transpose.ROTATE_90),
        (8, Image.Transpose.ROTATE_270),
    ],
)
def test_a_photo_that_the_camera_turned_is_the_same_face(
    find_face: FindFace, portrait: Portrait, orientation: int, stored: Image.Transpose
) -> None:
    photo = portrait("obama")
    exif = Image.Exif()
    exif[ORIENTATION] = orientation
    turned = encode(open_photo(photo).transpose(stored), "JPEG", quality=95, exif=exif.tobytes())
    assert measure_similarity(find_face(photo).embedding, find_face(turned).embedding) > 0.97


@pytest.mark.parametrize("width", [300, 1600])
def test_a_photo_in_another_size_is_the_same_face(
    find_face: FindFace, portrait: Portrait, width: int
) -> None:
    photo = portrait("biden")
    image = open_photo(photo)
    scaled = encode(image.resize((width, round(image.height * width / image.width))), "JPEG", quality=95)
    assert measure_similarity(find_face(photo).embedding, find_face(scaled).embedding) > 0.95


@pytest.mark.parametrize("enlarge", [1, 3])
def test_a_face_that_fills_the_picture_is_found(
    find_face: FindFace, portrait: Portrait, enlarge: int
) -> None:
    photo = portrait("obama")
    whole = find_face(photo)
    close = find_face(encode(cut_to_face(photo, whole, margin=0, enlarge=enlarge)))
    assert measure_similarity(whole.embedding, close.embedding) > 0.8


@pytest.mark.parametrize("name", ["obama", "biden"])
def test_a_face_larger_than_the_picture_is_found_by_a_second_smaller_look(
    real_pipeline: Pipeline, find_face: FindFace, portrait: Portrait, name: str
) -> None:
    photo = portrait(name)
    whole = find_face(photo)
    close = cut_to_face(photo, whole, margin=-0.2, enlarge=3)
    detector = real_pipeline.detector
    assert detector.detect_at(np.asarray(close), detector.options.max_side / max(close.size)) == []
    found = find_face(encode(close))
    assert found.box.width > 0.7 * close.width
    assert measure_similarity(whole.embedding, found.embedding) > THRESHOLD


@pytest.mark.parametrize("name", ["obama", "obama2", "biden"])
def test_the_order_of_colours_matters(
    real_pipeline: Pipeline, find_face: FindFace, portrait: Portrait, name: str
) -> None:
    """So that a swap could not go unnoticed by the tests above."""
    face = find_face(portrait(name))
    [right, swapped] = real_pipeline.embedder.embed([face.crop, face.crop[..., ::-1]])
    assert measure_similarity(right, face.embedding) > 0.9999
    assert measure_similarity(swapped, face.embedding) < 0.98


def test_both_faces_of_one_picture_are_told_apart(
    real_pipeline: Pipeline, find_face: FindFace, portrait: Portrait
) -> None:
    photos = [portrait(name) for name in ("obama", "biden")]
    together = Image.new("RGB", (1900, 1100))
    together.paste(open_photo(photos[0]), (0, 0))
    together.paste(open_photo(photos[1]), (920, 0))
    look = real_pipeline.embed_faces(encode(together, "JPEG", quality=95), "all")
    assert look.faces_found == 2
    left, right = sorted(look.faces, key=lambda face: face.box.left)
    obama, biden = (find_face(photo) for photo in photos)
    for face, own, other in ((left, obama, biden), (right, biden, obama)):
        assert measure_similarity(face.embedding, own.embedding) > 0.9
        assert measure_similarity(face.embedding, other.embedding) < THRESHOLD


@pytest.mark.parametrize(("precision", "least"), [(EXACT, 1 - 1e-5), (AUTO, LEAST_COSINE)])
def test_the_prepared_graph_embeds_as_the_published_one(
    real_data: DataFolder, find_face: FindFace, portrait: Portrait, precision: Precision, least: float
) -> None:
    crop = find_face(portrait("obama")).crop
    bundle = load_bundle(real_data.recognizer, "recogniser")
    pixels = bundle.preprocess(crop[np.newaxis])
    [published] = open_session(bundle.path, "cpu").run(None, {"data": pixels})
    with closing(open_embedder(bundle, "cpu", real_data.cache, precision=precision)) as embedder:
        [embedding] = embedder.embed([crop])
    assert float(embedding.values @ published[0] / np.linalg.norm(published[0])) >= least


# Labeled Faces in the Wild, where it is at hand; only counts leave these functions.


def read_pairs(text: str) -> dict[bool, list[tuple[LfwName, LfwName]]]:
    """The first pairs of every fold, matched (True) and mismatched (False)."""
    header, *lines = [line for line in text.splitlines() if line.strip()]
    folds, size = (int(number) for number in header.split())
    pairs: dict[bool, list[tuple[LfwName, LfwName]]] = {True: [], False: []}
    for number, line in enumerate(lines):
        fields = line.split()
        matched = len(fields) == 3
        if number % size < PAIRS // folds:
            other = fields[0] if matched else fields[2]
            pairs[matched].append(((fields[0], int(fields[1])), (other, int(fields[-1]))))
    return pairs


def count_matches(pipeline: Pipeline, archive: tarfile.TarFile, pairs: list[tuple[LfwName, LfwName]]) -> int:
    """How many pairs reach the threshold; a photo without a face is no match."""
    photos = {}
    for name, number in sorted({photo for pair in pairs for photo in pair}):
        file = archive.extractfile(f"lfw_dev/images/{name}/{name}_{number:04d}.jpg")
        assert file is not None
        photos[name, number] = file.read()
    with ThreadPoolExecutor(2) as threads:
        looks = threads.map(lambda photo: pipeline.embed_faces(photo, "prominent").faces, photos.values())
        faces = dict(zip(photos, looks, strict=True))
    found = [(faces[probe], faces[reference]) for probe, reference in pairs]
    return sum(
        bool(probe and reference)
        and measure_similarity(probe[0].embedding, reference[0].embedding) >= THRESHOLD
        for probe, reference in found
    )


@pytest.fixture
def lfw() -> Iterator[tarfile.TarFile]:
    """The archive of half of Labeled Faces in the Wild."""
    if not LFW_TAR.exists():
        pytest.skip("Labeled Faces in the Wild is not here: name its tar file in SAMEFACE_LFW_TAR.")
    with tarfile.open(LFW_TAR) as archive:
        yield archive


def test_the_shipped_calibration_knows_the_photos_that_it_was_made_on(lfw: tarfile.TarFile) -> None:
    [file] = (SHIPPED / MODELS["sface"].contract.name).glob("*.json")
    calibration = read_calibration(read_json(file))
    photos = [lfw.extractfile(member) for member in lfw if member.name.endswith(".jpg")]
    digests = [hashlib.sha256(photo.read()).hexdigest() for photo in photos if photo]
    assert len(digests) == calibration.evidence.faces
    assert calibration.sketch == draw_sketch(digests)
    assert estimate_overlap(calibration.sketch, len(digests), digests) == 1


def test_strangers_are_told_apart_and_acquaintances_recognised(
    real_pipeline: Pipeline, lfw: tarfile.TarFile
) -> None:
    listing = lfw.extractfile("lfw_dev/pairs.txt")
    assert listing is not None
    pairs = read_pairs(listing.read().decode())
    counts = len(pairs[True]), len(pairs[False])
    assert counts == (PAIRS, PAIRS)
    false_matches = count_matches(real_pipeline, lfw, pairs[False])
    true_matches = count_matches(real_pipeline, lfw, pairs[True])
    assert false_matches == 0
    assert true_matches >= PAIRS - 3
