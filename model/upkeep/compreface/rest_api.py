"""Reads one service of a CompreFace through its REST API, with the service's key."""

import json
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import Request, urlopen

from sameface.model.store.records import is_id
from sameface.model.upkeep.compreface.source import Example, Service
from sameface.model.upkeep.errors import ComprefaceRefused

EXAMPLES_AT_ONCE = 500
DOWNLOADS = 4  # photos that are fetched at once
TIMEOUT_SECONDS = 60


class ComprefaceApi:
    """The recognition service that `api_key` opens at `url`, called `name`: the API has no name for it."""

    def __init__(self, url: str, api_key: str, name: str) -> None:
        if not url.startswith(("http://", "https://")):
            raise ComprefaceRefused("`--url` takes CompreFace's address: http://HOST:8000.")
        self._root = f"{url.rstrip('/')}/api/v1/recognition"
        self._api_key = api_key
        self._name = name
        self._threads = ThreadPoolExecutor(DOWNLOADS, thread_name_prefix="sameface-compreface")

    def close(self) -> None:
        """End the threads."""
        self._threads.shutdown()

    def list_services(self) -> list[Service]:
        """The one service that the key opens."""
        return [Service(self._name, self._api_key, int(self._read_faces(0, 1)["total_elements"]))]

    def list_subjects(self, service: Service) -> list[str]:  # noqa: ARG002
        """The names of the service's subjects, those without an example too."""
        return [str(subject) for subject in self._read("/subjects")["subjects"]]

    def list_examples(self, service: Service) -> Iterator[Example]:  # noqa: ARG002
        """Yield the examples of the service, page by page."""
        page, pages = 0, 1
        while page < pages:
            found = self._read_faces(page, EXAMPLES_AT_ONCE)
            for face in found["faces"]:
                if not is_id(face["image_id"]):
                    raise self._refusal("names an image by what is no id")
                yield Example(face["image_id"], face["subject"])
            page, pages = page + 1, int(found["total_pages"])

    def read_photos(self, service: Service, image_ids: Sequence[str]) -> dict[str, bytes]:  # noqa: ARG002
        """By image id: the photos; those that CompreFace did not keep are left out."""
        photos = self._threads.map(lambda image_id: self._get(f"/faces/{image_id}/img"), image_ids)
        return {image_id: photo for image_id, photo in zip(image_ids, photos, strict=True) if photo}

    def _read_faces(self, page: int, size: int) -> Any:
        return self._read(f"/faces?{urlencode({'page': page, 'size': size})}")

    def _read(self, path: str) -> Any:
        try:
            return json.loads(self._get(path))
        except ValueError:
            raise self._refusal("answers with something else than JSON") from None

    def _get(self, path: str) -> bytes:
        """The body of an answer; raises if it is an error or if none comes."""
        request = Request(self._root + path, headers={"x-api-key": self._api_key})
        try:
            with urlopen(request, timeout=TIMEOUT_SECONDS) as answer:
                body: bytes = answer.read()
                return body
        except HTTPError as error:
            with error:
                raise self._refusal(f"answers {error.code}: {read_message(error.read())}") from None
        except OSError as error:
            raise self._refusal(f"cannot be reached: {getattr(error, 'reason', error)}") from None

    def _refusal(self, what: str) -> ComprefaceRefused:
        return ComprefaceRefused(f"CompreFace at {self._root} {what}.")


def read_message(body: bytes) -> str:
    """What an error of CompreFace says, or `no CompreFace` if it is not one of its own."""
    try:
        return str(json.loads(body)["message"]).rstrip(".")
    except (ValueError, KeyError, TypeError):
        return "this is no CompreFace"
