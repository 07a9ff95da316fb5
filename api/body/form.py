"""Reads the fields of a multipart form while it streams in."""

from collections.abc import AsyncIterator
from typing import Any

from sameface.api.body.multipart import PartData, PartEvent, PartParser, PartStart
from sameface.api.errors import InvalidRequest, TooManyImages
from sameface.api.settings import Settings
from sameface.model.errors import ImageTooLarge

MAX_FIELD_BYTES = 64_000  # of a form field other than an image
MAX_PARTS = 100
MAX_NAME = 100


async def read_form(
    chunks: AsyncIterator[bytes], boundary: bytes, photos: dict[str, bool], settings: Settings
) -> dict[str, Any]:
    """The fields of a multipart body: image fields as bytes, every other field as text.

    `photos` maps the name of an image field to whether it takes several images. A part is refused as soon as
    it is too large.
    """
    parser, form = PartParser(boundary), Form(photos, settings)
    async for chunk in chunks:
        for event in parser.parse(chunk):
            form.take(event)
    parser.check_end()
    return form.fields


class Form:
    """The fields of a form so far, and the part that is being read."""

    def __init__(self, photos: dict[str, bool], settings: Settings) -> None:
        self.photos = photos
        self.settings = settings
        self.fields: dict[str, Any] = {}
        self.images = 0

    def take(self, event: PartEvent) -> None:
        """Apply the next event of the multipart body."""
        if isinstance(event, PartStart):
            self.start_part(event.name[:MAX_NAME], is_file=event.filename is not None)
        elif isinstance(event, PartData):
            self.add_to_part(event.content)
        else:
            self.end_part()

    def start_part(self, name: str, *, is_file: bool) -> None:
        """Begin the field `name`; raises if it is repeated, or one part or image too many."""
        if not name:
            raise InvalidRequest("A part has no name.")
        if name in self.fields and not self.photos.get(name):
            raise InvalidRequest(f"The part {name!r} was sent twice.")
        if len(self.fields) >= MAX_PARTS:
            raise InvalidRequest(f"A form may have {MAX_PARTS} parts.")
        self.name, self.content = name, bytearray()
        self.is_image = name in self.photos or is_file
        self.images += self.is_image
        if self.images > self.settings.max_images:
            limit = self.settings.max_images
            raise TooManyImages(f"A request may have {limit} images.", limit=limit)

    def add_to_part(self, content: bytes) -> None:
        """Append `content` to the part; raises once the part is over its limit of bytes."""
        self.content += content
        if self.is_image and len(self.content) > self.settings.max_image_bytes:
            limit = self.settings.max_image_bytes
            raise ImageTooLarge(f"An image may have {limit} bytes.", limit=limit, image=self.name)
        if not self.is_image and len(self.content) > MAX_FIELD_BYTES:
            raise InvalidRequest(f"The part {self.name!r} may have {MAX_FIELD_BYTES} bytes.")

    def end_part(self) -> None:
        """Store the complete part as a field."""
        if self.photos.get(self.name):
            self.fields.setdefault(self.name, []).append(bytes(self.content))
        elif self.name in self.photos:
            self.fields[self.name] = bytes(self.content)
        else:
            self.fields[self.name] = self.content.decode("utf-8", "replace")
