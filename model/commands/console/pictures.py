"""How commands write pictures."""

from pathlib import Path

from PIL import Image

from sameface.model.errors import UnsupportedImage


def save_picture(picture: Image.Image, path: Path) -> None:
    """Write a picture in the format of the file name's suffix."""
    try:
        picture.save(path)
    except (OSError, ValueError) as error:
        raise UnsupportedImage(f"{path} cannot be written: {error}.") from error
