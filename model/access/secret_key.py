"""The secret key of a server and of all that share its data: it signs the audit's seals, and encrypts the
secrets of keys that have to be kept."""

import base64
import hashlib
import hmac
import os
import secrets
from dataclasses import dataclass
from pathlib import Path

from cryptography.fernet import Fernet, InvalidToken

from sameface.model.data_folder import folder_of
from sameface.model.errors import SecretKeyRefused
from sameface.model.files import make_private_folder, replacing
from sameface.model.store.store import Store

VARIABLE = "SAMEFACE_SECRET_KEY"
FILE_VARIABLE = f"{VARIABLE}_FILE"
FILE = "secret.key"  # in the data folder, where neither variable is set
SHORTEST = 32  # characters: 128 bits in hexadecimal


@dataclass(frozen=True, slots=True, repr=False)
class SecretKey:
    """A secret that is shown nowhere; for each purpose it signs and encrypts with a key of its own."""

    secret: bytes

    def sign(self, purpose: str, content: bytes) -> str:
        """The HMAC-SHA256 of `content`, in hexadecimal."""
        return hmac.digest(self.derive(purpose), content, hashlib.sha256).hex()

    def has_signed(self, purpose: str, content: bytes, signature: str) -> bool:
        """Whether `signature` is that of `content`."""
        return hmac.compare_digest(self.sign(purpose, content).encode(), signature.encode())

    def encrypt(self, purpose: str, text: str) -> str:
        """`text` encrypted and authenticated, another each time."""
        return self.cipher(purpose).encrypt(text.encode()).decode()

    def decrypt(self, purpose: str, sealed: str) -> str | None:
        """The text that `encrypt` made `sealed` of; None if another key or purpose did, or it was altered."""
        try:
            return self.cipher(purpose).decrypt(sealed.encode()).decode()
        except InvalidToken:
            return None

    def cipher(self, purpose: str) -> Fernet:
        """What encrypts for `purpose`."""
        return Fernet(base64.urlsafe_b64encode(self.derive(purpose)))

    def derive(self, purpose: str) -> bytes:
        """The key for `purpose`, 256 bits that tell nothing about the secret or about other keys."""
        return hmac.digest(self.secret, purpose.encode(), hashlib.sha256)


def load_secret_key(folder: Path, *, make: bool = True) -> SecretKey:
    """The key of SAMEFACE_SECRET_KEY or of SAMEFACE_SECRET_KEY_FILE, else of the data folder `folder`.

    There it is made if it is missing, unless a new one would be of no use.
    """
    if secret := os.environ.get(VARIABLE):
        return check(secret, VARIABLE)
    if named := os.environ.get(FILE_VARIABLE):
        return read_key(Path(named).expanduser())
    path = folder / FILE
    if make and not path.exists():
        make_key(path)
    return read_key(path)


def secret_key_of(store: Store, *, make: bool = True) -> SecretKey:
    """The secret key that belongs to a store: of the environment, or of its data folder.

    There it is made if it is missing, but not for a gallery of several machines: each would make another.
    """
    return load_secret_key(folder_of(store.place), make=make and isinstance(store.place, Path))


def read_key(path: Path) -> SecretKey:
    """The key in a file, without the white space around it."""
    try:
        return check(path.read_text().strip(), str(path))
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is no text"
        raise SecretKeyRefused(
            f"The secret key cannot be read from {path}: {reason}. {VARIABLE} and"
            f" {FILE_VARIABLE} name another."
        ) from error


def check(secret: str, source: str) -> SecretKey:
    """The key, if it is long enough."""
    if len(secret) < SHORTEST:
        raise SecretKeyRefused(
            f"{source} has {len(secret)} characters, and a secret key has {SHORTEST} or more: `openssl rand"
            " -hex 32` draws one."
        )
    return SecretKey(secret.encode())


def make_key(path: Path) -> None:
    """Draw a key that only the owner may read; if another process makes one at the same time, one remains."""
    drawn = path.with_name(f"{path.name}.{secrets.token_hex(4)}")
    try:
        make_private_folder(path.parent)
        with replacing(drawn, private=True) as file:
            file.write(f"{secrets.token_hex(32)}\n".encode())
        try:
            path.hardlink_to(drawn)
        except FileExistsError:  # the other process was faster
            pass
        finally:
            drawn.unlink()
    except OSError as error:
        raise SecretKeyRefused(
            f"A secret key cannot be made in {path.parent}: {error.strerror}. Set {VARIABLE} or"
            f" {FILE_VARIABLE}."
        ) from error
