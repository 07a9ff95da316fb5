"""Bytes to upright RGB pixels; unknown formats and too large images are refused before decoding."""

import hashlib
import io
import math
import re
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import AvifImagePlugin, ExifTags, Image, ImageFile, ImageOps, features

from sameface.model.errors import ImageTooLarge, SamefaceError, UnreadableImage, UnsupportedImage
from sameface.model.faces import Photo, Pixels
from sameface.model.photo.formats.gif import refuse_many_blocks
from sameface.model.photo.formats.hidden_pixels import refuse_hidden_pixels
from sameface.model.photo.formats.jpeg import START_OF_SCAN, choose_scale, decode_in_one_step, read_size
from sameface.model.photo.formats.tiff import keep_first_image
from sameface.model.runtime.work_queue import Unwanted, stop_if_unwanted

HEIC = "HEIF"  # as Pillow's plugin calls it
PHOTO_NAMES = re.compile(
    r".*\.(jpe?g|png|webp|bmp|gif|tiff?|hei[cf]|avif)", re.IGNORECASE
)  # of photos' files
SIGNATURES = {
    "JPEG": (b"\xff\xd8\xff",),
    "PNG": (b"\x89PNG\r\n\x1a\n",),
    "BMP": (b"BM",),
    "GIF": (b"GIF87a", b"GIF89a"),
    "TIFF": (b"II*\0", b"MM\0*"),
}
HEIC_BRANDS = (b"heic", b"heix", b"heim", b"heis", b"mif1")
WHITE = (255, 255, 255)
MAX_SCANS = 100  # of a JPEG: a progressive one has 6 to 18, and each costs as much as decoding all of it
MAX_RATIO = (
    50  # of the sides of a large image: panoramas have 20 at most, and memory grows with the longer side
)
LARGE_SIDE = 1000


@dataclass(frozen=True, slots=True)
class ImageLimits:
    """What one photo may cost, and all that are in memory at one time."""

    max_bytes: int = 10_000_000
    max_pixels: int = 50_000_000
    max_decoded_pixels: int = 60_000_000  # of all photos that are in memory at one time
    max_decode_seconds: float = 10.0


def list_photo_files(folder: Path) -> list[Path]:
    """The files in a folder and its subfolders that are called as photos are, sorted."""
    return sorted(path for path in folder.rglob("*") if PHOTO_NAMES.fullmatch(path.name))


def read_photo(path: Path) -> bytes:
    """The content of a photo's file."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise UnreadableImage(f"{path} cannot be read: {error.strerror}.") from error


def decode_image(photo: Photo, limits: ImageLimits) -> Image.Image:
    """The upright RGB image of a photo (the first frame of an animation, alpha on white)."""
    return Image.fromarray(decode_pixels(photo, limits))


def decode_pixels(photo: Photo, limits: ImageLimits) -> Pixels:
    """The pixels of `decode_image`, as an array."""
    return decode_coarsely(photo, limits, None)[0]


def decode_coarsely(photo: Photo, limits: ImageLimits, side: int | None) -> tuple[Pixels, int]:
    """The pixels and their scale: one of them stands for scale x scale pixels of the photo.

    A JPEG is decoded at a half, a quarter or an eighth of its size as long as its longer side keeps `side`
    pixels: a photo of twelve megapixels then takes a third of the time.
    """
    if isinstance(photo, Image.Image):
        refuse_too_many_pixels(photo.size, limits.max_pixels)
        return to_rgb(ImageOps.exif_transpose(photo)), 1
    try:
        return decode_small_jpeg(photo, limits, side) or decode_by_pillow(photo, limits, side)
    except Image.DecompressionBombError as error:
        raise ImageTooLarge("The image has far too many pixels.", limit=limits.max_pixels) from error
    except (SamefaceError, Unwanted):
        raise
    except Exception as error:  # a decoder fed with hostile bytes may raise anything
        raise UnreadableImage("The image is damaged or cut short and cannot be decoded.") from error


def decode_small_jpeg(content: bytes, limits: ImageLimits, side: int | None) -> tuple[Pixels, int] | None:
    """The pixels of a JPEG and their scale; None if the photo is something that Pillow has to decode."""
    stop_if_unwanted()
    is_jpeg = refuse_unlikely(content, limits) == "JPEG"
    size = read_size(content) if is_jpeg else None
    if size is None:
        return None
    refuse_too_many_pixels(size, limits.max_pixels)
    scale = choose_scale(size, side)
    pixels = decode_in_one_step(content, size, scale)
    return None if pixels is None else (pixels, scale)


def decode_by_pillow(content: bytes, limits: ImageLimits, side: int | None) -> tuple[Pixels, int]:
    """The pixels of a photo of any format, and their scale."""
    with open_photo(content, limits) as image:
        refuse_too_many_pixels(image.size, limits.max_pixels)
        longer = max(image.size)
        if side and longer >= 2 * side:
            width, height = (math.ceil(length * side / longer) for length in image.size)
            image.draft(None, (width, height))
        scale = round(longer / max(image.size))
        ImageOps.exif_transpose(image, in_place=True)
        return to_rgb(image), scale


def measure_image(photo: bytes, limits: ImageLimits) -> tuple[int, int]:
    """The width and height of a photo that was decoded before, as it stands upright, read off its header."""
    with open_photo(photo, limits) as image:
        lies_on_its_side = image.getexif().get(ExifTags.Base.Orientation, 1) >= 5
        return (image.height, image.width) if lies_on_its_side else image.size


def open_photo(content: bytes, limits: ImageLimits) -> Image.Image:
    """The image with its header read and none of its pixels; raises if the content is nothing to decode."""
    found = refuse_unlikely(content, limits)
    if found == "GIF":
        refuse_many_blocks(content)
    if found == "TIFF":
        content = keep_first_image(content)
    if found == HEIC:
        register_heic()
    if found == "AVIF":
        refuse_missing_avif()
    image = Image.open(PhotoFile(content, limits.max_decode_seconds), formats=[found])
    if found in ("AVIF", HEIC):
        refuse_hidden_pixels(content, found, image.width * image.height)
    return image


def refuse_missing_avif() -> None:
    """Raise if Pillow was built without AVIF, which its wheels have; else let it decode on one thread."""
    if not features.check("avif"):
        raise UnsupportedImage(
            "AVIF is not read here, because Pillow was built without it: convert it to JPEG."
        )
    AvifImagePlugin.DEFAULT_MAX_THREADS = 1


def register_heic() -> None:
    """Let Pillow decode HEIC, each photo on one thread; raises if the extra is not installed."""
    try:
        import pillow_heif
    except ImportError:
        raise UnsupportedImage(
            "HEIC is not read here, because the extra `heic` is not installed (`pip install "
            "'sameface[heic]'`): install it, or convert the photo to JPEG."
        ) from None
    pillow_heif.register_heif_opener(thumbnails=False, aux_images=False, depth_images=False, decode_threads=1)


class PhotoFile(io.BytesIO):
    """A photo's content; its decoder asks for block after block, and can be stopped between two of them."""

    def __init__(self, content: bytes, seconds: float) -> None:
        super().__init__(content)
        self._content = content
        self._seconds = seconds
        self._ends = time.monotonic() + seconds
        self._is_jpeg = sniff_format(content) == "JPEG"

    def read(self, size: int | None = -1) -> bytes:
        """The next `size` bytes, of a JPEG's pixels only those before the next scan; raises to stop decoding.

        A few bytes of a scan may be work on all pixels of the photo, so no block has two of them.
        """
        stop_if_unwanted()
        if time.monotonic() > self._ends:
            raise ImageTooLarge(f"The image takes over {self._seconds:g} s to decode.", limit=self._seconds)
        if self._is_jpeg and size == ImageFile.MAXBLOCK:  # of pixels: what comes before them is shorter
            start = self.tell()
            scan = self._content.find(START_OF_SCAN, start + 1, start + size)
            size = scan - start if scan > 0 else size
        return super().read(size)


def refuse_unlikely(content: bytes, limits: ImageLimits) -> str:
    """The format; raises if the content is empty, too long, of no known format, or has too many scans."""
    if not content:
        raise UnreadableImage("The image is empty.")
    if len(content) > limits.max_bytes:
        raise ImageTooLarge(f"An image may have {limits.max_bytes} bytes.", limit=limits.max_bytes)
    found = sniff_format(content)
    if found is None:
        raise UnsupportedImage(
            f"Send a JPEG, PNG, WebP, BMP, GIF, TIFF, AVIF or HEIC image; {describe_content(content)}."
        )
    if found == "JPEG" and (scans := content.count(START_OF_SCAN)) > MAX_SCANS:
        raise ImageTooLarge(f"The JPEG has {scans} scans; {MAX_SCANS} are allowed.", limit=MAX_SCANS)
    return found


def sniff_format(photo: bytes) -> str | None:
    """The format by the first bytes, never by a file name or an HTTP header; None if it is unknown."""
    if photo.startswith(b"RIFF") and photo[8:12] == b"WEBP":
        return "WEBP"
    if photo[4:8] == b"ftyp":
        brands = read_brands(photo)
        if b"avif" in brands:
            return "AVIF"
        return HEIC if any(brand in HEIC_BRANDS for brand in brands) else None
    return next((name for name, starts in SIGNATURES.items() if photo.startswith(starts)), None)


def read_brands(photo: bytes) -> list[bytes]:
    """The brands, four bytes each, in the `ftyp` box of an ISO media file such as AVIF or HEIC."""
    end = min(int.from_bytes(photo[:4]), 256)
    return [photo[8:12], *(photo[place : place + 4] for place in range(16, end, 4))]


def describe_content(content: bytes) -> str:
    """What a file of another format seems to be, for the sentence that refuses it."""
    if content[4:8] == b"ftyp":
        return "this looks like a film: send one picture of it"
    if content.startswith(b"data:"):
        return "this is a data URL, which JSON takes: in a form, send the bytes that it encodes"
    return "the content is none of them"


def refuse_too_many_pixels(size: tuple[int, int], max_pixels: int) -> None:
    """Raise if an image of this `size` has more than `max_pixels`, or sides that no camera makes."""
    width, height = size
    if width * height > max_pixels:
        raise ImageTooLarge(
            f"The image has {width} x {height} pixels; {max_pixels} are allowed.", limit=max_pixels
        )
    longer, shorter = max(size), max(1, min(size))
    if longer > LARGE_SIDE and longer > MAX_RATIO * shorter:
        raise ImageTooLarge(
            f"The image has {width} x {height} pixels; one side may be {MAX_RATIO} times the other.",
            limit=MAX_RATIO,
        )


def to_rgb(image: Image.Image) -> Pixels:
    """The RGB pixels of an image of any mode."""
    image.load()
    if image.mode.startswith("I"):  # 16 bits per pixel: convert() would clip instead of scale
        image = Image.fromarray((np.asarray(image).astype(np.uint32) >> 8).astype(np.uint8))
    if image.has_transparency_data:
        seen = image if image.mode == "RGBA" else image.convert("RGBA")
        image = Image.new("RGB", seen.size, WHITE)
        image.paste(seen, mask=seen)
    return np.asarray(image if image.mode == "RGB" else image.convert("RGB"))


def encode_png(pixels: Pixels) -> bytes:
    """The pixels as a PNG file, without loss."""
    content = io.BytesIO()
    Image.fromarray(pixels).save(content, "PNG")
    return content.getvalue()


def hash_photo(photo: Photo) -> str:
    """The SHA-256 of a photo: of the file's content, or of the pixels of a decoded image."""
    return hashlib.sha256(photo if isinstance(photo, bytes) else photo.tobytes()).hexdigest()
