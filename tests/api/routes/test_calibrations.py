"""Rates instead of thresholds, as a client sees them."""

from collections.abc import Iterator

import httpx
import pytest

from sameface.model.bundles.bundle import load_bundle
from tests.api.collections import embedding_of, enrol, identify, make_collection
from tests.api.problems import expect
from tests.api.routes.test_verify import verify
from tests.conftest import Serve
from tests.model.calibrated import LOWEST, calibrate_bundle
from tests.networks import build_recogniser
from tests.pictures import photo_of

NAME = "tiny-recogniser/drawn"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory):
    folder = tmp_path_factory.mktemp("calibrated")
    calibrate_bundle(build_recogniser(folder))
    calibrate_bundle(load_bundle(folder), "cameras")
    return folder


@pytest.fixture(scope="module")
def calibrated(folder, serve: Serve, tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    data = tmp_path_factory.mktemp("data")
    with serve(recognizer=folder, data=data, target_fmr=1e-3) as client:
        yield client


def test_the_servers_rate_decides_unless_the_request_brings_its_own(calibrated: httpx.Client) -> None:
    answer = verify(calibrated, photo_of(1), photo_of(1, noise=3)).json()
    assert (answer["target_fmr"], answer["calibration"]) == (1e-3, NAME)
    stricter = verify(calibrated, photo_of(1), photo_of(1), target_fmr=0.0005).json()
    laxer = verify(calibrated, photo_of(1), photo_of(1), target_fmr=0.1).json()
    assert stricter["threshold"] > answer["threshold"] > laxer["threshold"]
    assert answer["extrapolated"] is False


def test_the_estimate_says_what_a_similarity_means(calibrated: httpx.Client) -> None:
    answer = verify(calibrated, photo_of(1), photo_of(1), threshold=0.2).json()
    assert (answer["target_fmr"], answer["threshold"]) == (None, 0.2)
    assert answer["estimated_fmr"] == pytest.approx(LOWEST)
    other = verify(calibrated, photo_of(1), photo_of(2), target_fmr=0.1).json()
    assert other["estimated_fmr"] > answer["estimated_fmr"]


def test_a_rate_beyond_the_data_is_refused_unless_extrapolating_is_allowed(calibrated: httpx.Client) -> None:
    problem = expect(verify(calibrated, photo_of(1), photo_of(1), target_fmr=1e-6), 422, "fmr_not_supported")
    assert problem["lowest_supported"] == pytest.approx(LOWEST)
    assert problem["calibration"] == NAME
    answer = verify(calibrated, photo_of(1), photo_of(1), target_fmr=1e-6, extrapolate="true").json()
    assert (answer["extrapolated"], answer["target_fmr"]) == (True, 1e-6)
    assert answer["estimated_fmr"] < LOWEST


@pytest.mark.parametrize("rate", ["0", "1", "-0.1", "nan", "inf"])
def test_a_rate_must_be_one(calibrated: httpx.Client, rate: str) -> None:
    expect(verify(calibrated, photo_of(1), photo_of(1), target_fmr=rate), 422, "invalid_request")
    staff = make_collection(calibrated)
    response = calibrated.post(f"{staff}/identify", files={"image": photo_of(1)}, data={"target_fpir": rate})
    expect(response, 422, "invalid_request")


def test_the_threshold_of_a_gallery_follows_its_size(calibrated: httpx.Client) -> None:
    staff = make_collection(calibrated)
    thresholds = []
    for person in range(4):
        enrol(calibrated, staff, photo_of(person), person_id=f"p{person}")
        answer = identify(calibrated, staff, photo_of(0))
        assert (answer["target_fpir"], answer["calibration"]) == (0.01, NAME)
        thresholds.append(answer["threshold"])
    assert thresholds == sorted(set(thresholds))
    enrol(calibrated, staff, photo_of(9), photo_of(9, noise=1), photo_of(9, noise=2), person_id="p9")
    best, mean = (identify(calibrated, staff, photo_of(0), fusion=fusion) for fusion in ("max", "mean"))
    assert best["threshold"] >= mean["threshold"] > thresholds[-1]


def test_nothing_that_passes_is_no_match(calibrated: httpx.Client) -> None:
    staff = make_collection(calibrated)
    enrol(calibrated, staff, photo_of(1), person_id="ada")
    [known] = identify(calibrated, staff, photo_of(1, noise=4))["results"]
    [unknown] = identify(calibrated, staff, photo_of(2), target_fpir=0.0005)["results"]
    assert known["match"]["person_id"] == "ada"
    assert unknown["match"] is None


def test_a_gallery_beyond_the_data_is_extrapolated_by_default_and_says_so(calibrated: httpx.Client) -> None:
    staff = make_collection(calibrated)
    for person in range(3):
        enrol(calibrated, staff, photo_of(person), person_id=f"p{person}")
    assert identify(calibrated, staff, photo_of(0), target_fpir=1e-3)["extrapolated"] is True
    assert identify(calibrated, staff, photo_of(0), target_fpir=0.1)["extrapolated"] is False
    strict = {"target_fpir": 1e-3, "extrapolate": "false"}
    response = calibrated.post(f"{staff}/identify", files={"image": photo_of(0)}, data=strict)
    problem = expect(response, 422, "fpir_not_supported")
    assert problem["lowest_supported"] == pytest.approx(1 - (1 - LOWEST) ** 3)
    batch = calibrated.post(f"{staff}/identify/batch", files={"images": photo_of(0)}, params=strict)
    expect(batch, 422, "fpir_not_supported")


def test_a_person_of_several_faces_needs_more_similarity(calibrated: httpx.Client) -> None:
    staff = make_collection(calibrated)
    enrol(calibrated, staff, photo_of(1), person_id="one")
    enrol(calibrated, staff, *(photo_of(2, noise=noise) for noise in range(4)), person_id="four")
    collection = staff.removeprefix("/v1/collections/")

    def against(person: str) -> dict:
        fields = {"collection": collection, "person_id": person, "target_fmr": 0.01}
        return calibrated.post("/v1/verify", files={"probe": photo_of(1)}, data=fields).json()

    assert against("four")["threshold"] > against("one")["threshold"]


def test_calibrations_are_listed_with_what_they_rest_on(calibrated: httpx.Client) -> None:
    items = calibrated.get("/v1/calibrations").json()["items"]
    assert [(item["name"], item["default"]) for item in items] == [
        ("tiny-recogniser/cameras", False),
        (NAME, True),
    ]
    assert items[1]["lowest_fmr"] == pytest.approx(LOWEST)
    assert items[1]["evidence"]["people"] == 200
    assert len(items[1]["decades"]) == 3
    assert calibrated.get("/v1/models").json()["items"][0]["calibration"] == "drawn"


def test_a_server_without_calibrations_lists_none(client: httpx.Client) -> None:
    assert client.get("/v1/calibrations").json() == {"items": [], "next_cursor": None}


@pytest.mark.parametrize("name", ["cameras", "tiny-recogniser/cameras"])
def test_a_collection_may_have_its_own(calibrated: httpx.Client, name: str) -> None:
    staff = f"{make_collection(calibrated)}-own"
    made = calibrated.put(staff, json={"calibration": name})
    assert (made.status_code, made.json()["calibration"]) == (201, "tiny-recogniser/cameras")
    assert calibrated.put(staff, json={"calibration": "cameras"}).status_code == 200
    expect(calibrated.put(staff, json={"calibration": "drawn"}), 409, "already_exists")
    probe = {"embedding": embedding_of(calibrated, photo_of(1))}
    answer = calibrated.post(f"{staff}/identify", json=probe).json()
    assert answer["calibration"] == "tiny-recogniser/cameras"
    enrol(calibrated, staff, photo_of(1), person_id="ada")
    fields = {"collection": staff.removeprefix("/v1/collections/"), "person_id": "ada"}
    verified = calibrated.post("/v1/verify", files={"probe": photo_of(1)}, data=fields).json()
    assert verified["calibration"] == "tiny-recogniser/cameras"


def test_a_server_decides_by_the_calibration_that_it_is_told(folder, serve: Serve, tmp_path) -> None:
    with serve(recognizer=folder, data=tmp_path, calibration="cameras", target_fmr=0.01) as client:
        answer = verify(client, photo_of(1), photo_of(1)).json()
    assert (answer["calibration"], answer["target_fmr"]) == ("tiny-recogniser/cameras", 0.01)
