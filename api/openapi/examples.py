"""One example per request and response, shown in the documentation and tested against the schemas."""

import json
from collections.abc import Iterable
from typing import Any

# A PNG of one pixel: nobody's face is in the contract.
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR42mNoAAAAggCB2kUIOwAAAABJRU5ErkJggg=="
PHOTO = {"base64": PIXEL}

FACE = {
    "box": {"left": 371.23, "top": 89.81, "width": 240.06, "height": 329.45},
    "landmarks": [[438.71, 213.95], [553.83, 213.68], [494.52, 267.51], [440.01, 317.7], [546.99, 319.01]],
    "score": 0.9462,
    "quality": {
        "score": 1.0,
        "sharpness": 0.1174,
        "brightness": 0.564,
        "yaw": -1.7,
        "size": 240.1,
        "issues": [],
    },
}
TIMINGS = {"decode": 5.1, "detect": 14.2, "align": 1.1, "total": 20.6}

DETECT = {"faces": [FACE], "faces_found": 1, "timings_ms": TIMINGS}
EMBED = {
    "model": "sface-2021dec",
    "faces": [{**FACE, "embedding": [0.0812, -0.0344, 0.1021]}],
    "faces_found": 1,
    "timings_ms": {**TIMINGS, "embed": 20.3, "total": 41.2},
}
VERIFY = {
    "same_person": True,
    "similarity": 0.741723,
    "threshold": 0.415249,
    "target_fmr": 0.0001,
    "estimated_fmr": 0.000004135,
    "estimated_fmr_is_bound": True,
    "extrapolated": False,
    "calibration": "sface-2021dec/lfw-dev",
    "model": "sface-2021dec",
    "probe": {"faces_found": 1, "face": FACE},
    "reference": {"faces_found": 1, "face": FACE},
    "timings_ms": {"decode": 10.2, "detect": 28.4, "align": 2.2, "embed": 40.6, "total": 43.1},
}
MODELS = {
    "items": [
        {
            "name": "sface-2021dec",
            "kind": "recogniser",
            "dimension": 128,
            "published_threshold": 0.363,
            "calibration": "lfw-dev",
            "licence": "Apache-2.0",
            "source": "https://github.com/opencv/opencv_zoo",
            "sha256": "0ba9fbfa01b5270c96627c4ef784da859931e02f04419c829e83484087c34e79",
            "identity": "c0587f2fd9690b6414d732fce80fe5781fdeb3b268f23c4ef100f323a541a8d8",
            "device": "cpu",
            "provider": "OpenVINO",
            "precision": "bf16",
            "proof": {
                "precision": "bf16",
                "used": True,
                "fault": None,
                "faces": 64,
                "own_faces": False,
                "mean_cosine": 0.99992,
                "worst_cosine": 0.99984,
                "crops_per_second": 121.4,
                "exact_crops_per_second": 75.2,
            },
        }
    ],
    "next_cursor": None,
}
CALIBRATIONS = {
    "items": [
        {
            "name": "sface-2021dec/lfw-dev",
            "default": True,
            "identity": "c0587f2fd9690b6414d732fce80fe5781fdeb3b268f23c4ef100f323a541a8d8",
            "created_at": "2026-11-16T12:00:00Z",
            "lowest_fmr": 0.000004135,
            "evidence": {
                "data": "lfw_dev",
                "people": 2086,
                "faces": 3811,
                "failed": 0,
                "genuine_pairs": 4414,
                "impostor_pairs": 7255541,
                "by_worst_group": False,
            },
            "decades": [
                {
                    "threshold": 0.415249,
                    "fmr": {"value": 0.0000999, "low": 0.0000828, "high": 0.000122},
                    "fnmr": {"value": 0.0326, "low": 0.0236, "high": 0.0436},
                }
            ],
            "groups": [],
        }
    ],
    "next_cursor": None,
}
LIVE = {"status": "alive"}
READY = {
    "status": "ready",
    "device": "cpu",
    "provider": "CPUExecutionProvider",
    "recognizer": "sface-2021dec",
    "detector": "yunet-2023mar",
    "index": "faiss",
    "index_fault": None,
}
COLLECTION = {
    "name": "staff",
    "people": 1200,
    "faces": 3100,
    "model": "sface-2021dec",
    "index": "exact",
    "revision": 3104,
    "store_crops": False,
    "calibration": None,
    "reviewers": 0,
    "created_at": "2026-11-16T09:30:00Z",
}
NEW_COLLECTION = {**COLLECTION, "people": 0, "faces": 0, "revision": 0}
COLLECTIONS = {"items": [COLLECTION], "next_cursor": None}
AUDIT_ENTRY = {
    "entry_id": "3f9a61c20b7de845.17",
    "time": "2026-11-16T09:30:00.081250Z",
    "started_at": "2026-11-16T09:30:00.052113Z",
    "action": "identify",
    "outcome": "match",
    "caller": "gate",
    "request_id": "4f1c",
    "route": "/v1/collections/{collection}/identify",
    "collection": "staff",
    "revision": 3104,
    "person_id": "ada",
    "model": "sface-2021dec",
    "similarity": 0.684121,
    "threshold": 0.4702,
    "reviewed": None,
    "details": {"face_ids": ["9f2c41d07a"], "reviewers": 1},
    "hash": "b5bb9d8014a0f9b1d61e21e796d78dccdf1352f23cd32812f4850b878ae4944c",
    "reviews": [],
    "review_status": "pending",
}
AUDIT = {"items": [AUDIT_ENTRY], "next_cursor": None}
REVIEW = {
    "entry_id": "3f9a61c20b7de845.18",
    "time": "2026-11-16T09:31:12.500000Z",
    "reviewer": "officer-17",
    "confirmed": True,
    "caller": "desk",
}
REVIEWED_ENTRY = {**AUDIT_ENTRY, "reviews": [REVIEW], "review_status": "confirmed"}
PERSON = {
    "person_id": "ada",
    "name": "Ada",
    "metadata": {"department": "engines"},
    "faces": [{"face_id": "9f2c41d07a", "quality": 0.93, "created_at": "2026-11-16T09:30:00Z"}],
    "created_at": "2026-11-16T09:30:00Z",
}
PEOPLE = {"items": [PERSON], "next_cursor": "ada"}
ENROLLED = {
    "person_id": "ada",
    "faces": [{"face_id": "9f2c41d07a", "image": 0, "quality": 0.93}],
    "rejected": [{"image": 1, "code": "no_face_found", "detail": "No face was found in the photo."}],
    "warnings": [
        {
            "code": "looks_like_another_person",
            "face_id": "9f2c41d07a",
            "person_id": "eve",
            "similarity": 0.52,
            "faces_found": None,
        }
    ],
}
KEY_REQUEST = {
    "name": "Front door",
    "scopes": ["read", "search"],
    "collections": ["staff", "visitors-*"],
    "limits": {"photos_per_minute": 600},
    "expires_at": "2126-11-16T09:30:00Z",
}
KEY = {
    "key_id": "5b0c6c2f9d1e4a7788aa0113",
    "name": "Front door",
    "scopes": ["read", "search"],
    "collections": ["staff", "visitors-*"],
    "limits": {"requests_per_minute": None, "photos_per_minute": 600, "concurrent": None, "faces": None},
    "service": None,
    "created_at": "2026-11-16T09:30:00Z",
    "expires_at": "2126-11-16T09:30:00Z",
    "last_used_at": "2026-11-17T14:00:00Z",
    "revoked_at": None,
    "former_until": None,
}
KEYS = {"items": [KEY], "next_cursor": None}
NEW_KEY = {**KEY, "last_used_at": None, "secret": "sf_wMrV2l0m3q-this-is-shown-once-6Vd1Yk8cB0"}
ROTATED_KEY = {**NEW_KEY, "former_until": "2026-11-17T15:30:00Z"}
CANDIDATE = {"person_id": "ada", "name": "Ada", "similarity": 0.684213, "face_id": "9f2c41d07a"}
IDENTIFIED = {
    "collection": "staff",
    "gallery_size": 1200,
    "gallery_faces": 3100,
    "threshold": 0.472,
    "target_fpir": 0.01,
    "extrapolated": True,
    "calibration": "sface-2021dec/lfw-dev",
    "model": "sface-2021dec",
    "results": [{"face": FACE, "normalised": False, "match": CANDIDATE, "candidates": [CANDIDATE]}],
    "timings_ms": {**TIMINGS, "embed": 20.3, "search": 0.8, "total": 42.0},
}
NOT_ENROLLED = {
    "type": "urn:sameface:problem:no_face_found",
    "title": "No face was found",
    "status": 422,
    "code": "no_face_found",
    "detail": "No face was found in the photo.",
    "request_id": "4f1c",
    "line": 2,
}
BATCH_IDENTIFIED: list[dict[str, Any]] = [
    {"id": "1", "results": [{"face": None, "normalised": False, "match": None, "candidates": [CANDIDATE]}]},
    {"id": "2", "error": NOT_ENROLLED},
]
BATCH_ENROLLED: list[dict[str, Any]] = [
    {"id": "1", "person_id": "ada", "faces": ENROLLED["faces"], "warnings": []},
    {"id": "2", "error": NOT_ENROLLED},
]


def to_lines(entries: Iterable[dict[str, Any]]) -> str:
    """The entries as NDJSON."""
    return "".join(json.dumps(entry) + "\n" for entry in entries)


def show(example: dict[str, Any]) -> dict[str, str]:
    """The example of a JSON body or answer, as text until `restore`: FastAPI would leave out what is null."""
    return {"example": json.dumps(example)}


def restore(content: dict[str, Any]) -> None:
    """Turn the example of JSON `content`, by its media types, into what `show` was given."""
    shown = content.get("application/json", {})
    if "example" in shown:
        shown["example"] = json.loads(shown["example"])
