"""What calls about the server itself return: its networks, its calibrations, its keys."""

from dataclasses import dataclass, field
from datetime import datetime

from sameface_client.values import Value


@dataclass(frozen=True, slots=True)
class PrecisionProof(Value):
    """A lower precision on the server's machine, compared with the exact one; None was not measured."""

    precision: str
    used: bool
    fault: str | None  # why it is not used
    faces: int | None
    own_faces: bool  # the operator's own, or drawn ones
    mean_cosine: float | None  # of the two embeddings of a face
    worst_cosine: float | None
    crops_per_second: float | None  # on one thread, taking turns with the exact one
    exact_crops_per_second: float | None


@dataclass(frozen=True, slots=True)
class LoadedModel(Value):
    """A network that the server runs."""

    name: str
    kind: str
    dimension: int | None
    published_threshold: float | None
    calibration: str | None
    licence: str
    source: str
    sha256: str
    identity: str  # the hash of file and contract, to which galleries and calibrations bind
    device: str
    provider: str
    precision: str = "exact"  # what it computes in: exact, bf16 or fp16
    proof: PrecisionProof | None = None  # of the lower precision, if the server looked for one


@dataclass(frozen=True, slots=True)
class MeasuredRate(Value):
    """An error rate and its 95 % interval, from a bootstrap over people."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class MeasuredRates(Value):
    """Both error rates at a threshold."""

    threshold: float
    fmr: MeasuredRate
    fnmr: MeasuredRate


@dataclass(frozen=True, slots=True)
class GroupOfPeople(Value):
    """How a group fares at the calibration's working threshold."""

    group: str
    people: int
    impostor_pairs: int
    genuine_pairs: int
    rates: MeasuredRates


@dataclass(frozen=True, slots=True)
class MeasuredOn(Value):
    """The data behind a calibration."""

    data: str
    people: int
    faces: int
    failed: int  # photos without a face to embed
    genuine_pairs: int
    impostor_pairs: int
    by_worst_group: bool


@dataclass(frozen=True, slots=True)
class Calibration(Value):
    """How similarities of a recogniser relate to error rates, and what that was measured on."""

    name: str
    default: bool  # decided by unless a collection has its own
    identity: str  # of the recogniser's bundle
    created_at: datetime
    lowest_fmr: float  # that 30 false matches or more were expected at
    evidence: MeasuredOn
    decades: list[MeasuredRates]  # at FMR 0.1, 0.01 ... as far as the data supports it
    groups: list[GroupOfPeople]


@dataclass(frozen=True, slots=True)
class KeyLimits(Value):
    """How much a key may ask for; None is no limit."""

    requests_per_minute: int | None = None
    photos_per_minute: int | None = None
    concurrent: int | None = None  # requests at once
    faces: int | None = None  # enrolled in the collections that it may touch


@dataclass(frozen=True, slots=True)
class Key(Value):
    """An API key, without its secret, which is kept nowhere."""

    key_id: str
    name: str
    scopes: list[str]
    collections: list[str] | None  # None: all
    limits: KeyLimits
    service: str | None  # of another server's family, such as `compreface/recognition`
    created_at: datetime | None  # None: it is of the server's environment
    expires_at: datetime | None
    last_used_at: datetime | None  # to the hour
    revoked_at: datetime | None
    former_until: datetime | None  # how long the secret before the last rotation works


@dataclass(frozen=True, slots=True)
class KeyWithSecret(Key):
    """A key with its new secret, which is shown this once."""

    secret: str = field(repr=False)
