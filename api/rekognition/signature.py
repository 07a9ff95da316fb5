"""AWS Signature Version 4: what a client has signed, and what the signature of a request must be."""

import hashlib
import hmac
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from urllib.parse import quote

from sameface.api.rekognition.errors import SignatureIncomplete, TokenMissing

ALGORITHM = "AWS4-HMAC-SHA256"
TIME = "%Y%m%dT%H%M%SZ"
PART = re.compile(r"(Credential|SignedHeaders|Signature)=([^,\s]+)")
NEEDED_HEADERS = {"host", "x-amz-date", "x-amz-target"}  # unsigned, they could be exchanged on the way


@dataclass(frozen=True, slots=True)
class Signature:
    """What the header `Authorization` says: who signed which headers, when, where and for what."""

    key_id: str
    scope: str  # date/region/service/aws4_request
    headers: tuple[str, ...]
    value: str
    time: str

    @property
    def seconds(self) -> float:
        """When the request was signed, in seconds since 1970."""
        return datetime.strptime(self.time, TIME).replace(tzinfo=UTC).timestamp()


@dataclass(frozen=True, slots=True)
class SignedRequest:
    """The parts of a request that are signed."""

    path: str
    query: str
    headers: Mapping[str, str]
    body: bytes | bytearray
    method: str = "POST"


def read_signature(headers: Mapping[str, str]) -> Signature:
    """The signature in the headers of a request; raises if there is none, or a part of it is missing."""
    algorithm, _, rest = headers.get("authorization", "").partition(" ")
    if algorithm != ALGORITHM:
        raise TokenMissing(f"Sign the request: the header Authorization must begin with {ALGORITHM}.")
    parts = dict(PART.findall(rest))
    key_id, _, scope = parts.get("Credential", "").partition("/")
    signed = tuple(parts.get("SignedHeaders", "").split(";"))
    found = Signature(key_id, scope, signed, parts.get("Signature", ""), headers.get("x-amz-date", ""))
    if len(parts) < 3 or not scope.endswith("/rekognition/aws4_request") or scope.count("/") != 3:
        raise SignatureIncomplete(
            "Authorization needs SignedHeaders, Signature, and a Credential for the service rekognition."
        )
    if not NEEDED_HEADERS.issubset(signed) or any(name not in headers for name in signed):
        raise SignatureIncomplete(f"Send and sign the headers {', '.join(sorted(NEEDED_HEADERS))}.")
    try:
        fits = found.time.startswith(scope.partition("/")[0]) and found.seconds > 0
    except ValueError:
        fits = False
    if not fits:
        raise SignatureIncomplete(
            "X-Amz-Date must be a time such as 20261118T090000Z, of the Credential's day."
        )
    return found


def sign(secret: str, signature: Signature, request: SignedRequest) -> str:
    """The value that `signature` must have if `request` was signed with `secret`."""
    canonical = write_canonical(signature, request)
    said = "\n".join([ALGORITHM, signature.time, signature.scope, hashlib.sha256(canonical).hexdigest()])
    key = f"AWS4{secret}".encode()
    for part in (*signature.scope.split("/"), said):
        key = hmac.digest(key, part.encode(), hashlib.sha256)
    return key.hex()


def write_canonical(signature: Signature, request: SignedRequest) -> bytes:
    """The request as it is signed: method, path, query, the signed headers and the hash of the body."""
    headers = [f"{name}:{' '.join(request.headers[name].split())}\n" for name in signature.headers]
    lines = [
        request.method,
        quote(request.path),
        "&".join(sorted(request.query.split("&"))),
        "".join(headers),
        ";".join(signature.headers),
        hashlib.sha256(request.body).hexdigest(),
    ]
    return "\n".join(lines).encode()
