"""The fields of a form, part by part as they stream in."""

from typing import Any

from sameface.api.body.multipart import PartReader
from sameface.api.errors import InvalidRequest, TooManyImages
from sameface.api.settings import Settings
from sameface.model.errors import ImageTooLarge

MAX_FIELD_BYTES = 64_000  # of a form field that is no image
MAX_PARTS = 100


class FormReader(PartReader):
    """Collects the parts of a multipart body, refusing a part as soon as it is too large.

    `photos` has the fields that are images, and whether each takes many.
    """

    def __init__(self, boundary: bytes, photos: dict[str, bool], settings: Settings) -> None:
        super().__init__(boundary)
        self.photos = photos
        self.settings = settings
        self.fields: dict[str, Any] = {}
        self.images = 0

    def write(self, chunk: bytes) -> None:
        """The next bytes of the body."""
        self.parse(chunk)

    def close(self) -> dict[str, Any]:
        """The fields once the body has ended: photos as bytes, all else as text."""
        self.check_end()
        return self.fields

    def start_part(self, options: dict[bytes, bytes]) -> None:
        """Which field it is, and how large it may get."""
        self.name = options.get(b"name", b"").decode("utf-8", "replace")[:100]
        if not self.name:
            raise InvalidRequest("A part has no name.")
        if self.name in self.fields and not self.photos.get(self.name):
            raise InvalidRequest(f"The part {self.name!r} was sent twice.")
        if len(self.fields) >= MAX_PARTS:
            raise InvalidRequest(f"A form may have {MAX_PARTS} parts.")
        self.is_image = self.name in self.photos or b"filename" in options
        self.images += self.is_image
        if self.images > self.settings.max_images:
            limit = self.settings.max_images
            raise TooManyImages(f"A request may have {limit} images.", limit=limit)

    def add_to_part(self, data: bytes, start: int, end: int) -> None:
        """More of a part's content."""
        self.content += data[start:end]
        if self.is_image and len(self.content) > self.settings.max_image_bytes:
            limit = self.settings.max_image_bytes
            raise ImageTooLarge(f"An image may have {limit} bytes.", limit=limit, image=self.name)
        if not self.is_image and len(self.content) > MAX_FIELD_BYTES:
            raise InvalidRequest(f"The part {self.name!r} may have {MAX_FIELD_BYTES} bytes.")

    def end_part(self) -> None:
        """A part is complete."""
        if self.photos.get(self.name):
            self.fields.setdefault(self.name, []).append(bytes(self.content))
        elif self.name in self.photos:
            self.fields[self.name] = bytes(self.content)
        else:
            self.fields[self.name] = self.content.decode("utf-8", "replace")
