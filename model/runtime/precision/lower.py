"""A network in the lower precision of the device, taken if faces prove its embeddings and it is faster."""

from sameface.model.bundles.bundle import Bundle
from sameface.model.errors import PrecisionUnavailable
from sameface.model.faces import Floats, Pixels
from sameface.model.runtime.graph_rewrites import to_fp16
from sameface.model.runtime.precision.proof import LEAST_COSINE, Agreement, Proof, compare_embeddings
from sameface.model.runtime.session import Session
from sameface.model.runtime.variants import WORTHWHILE, Variant, time_sessions


def lower(exact: Variant, precision: str) -> Variant:
    """The variant's network in bf16 on OpenVINO, or its graph converted to fp16."""
    if precision == "bf16":
        return Variant(exact.network, "openvino", precision)
    return Variant(to_fp16(exact.network), precision=precision)


def try_lower(
    bundle: Bundle, device: str, exact: Variant, precision: str, crops: Pixels
) -> tuple[Variant, Proof]:
    """The network in `precision`, and the proof on `crops` against `exact` that says if it may be used."""
    try:
        other = lower(exact, precision)
        sessions = [other.open(device), exact.open(device)]
        agreement = compare_embeddings(bundle, sessions[1], sessions[0], crops)
    except Exception as error:  # engines raise their own unexported types
        return exact, Proof(precision, used=False, fault=f"the network does not run in it: {error}")
    return other, prove(precision, agreement, sessions, bundle.preprocess(crops[:1]))


def prove(precision: str, agreement: Agreement, sessions: list[Session], sample: Floats) -> Proof:
    """The proof of the first session's precision against the second, exact one; both are timed by turns."""
    seconds, exact_seconds = time_sessions(sessions, sample)
    fault = None
    if not agreement.holds:
        fault = f"embeddings differ: cosine {agreement.worst_cosine:.5f}, and {LEAST_COSINE} is the least"
    elif seconds >= WORTHWHILE * exact_seconds:
        fault = "it is not faster here"
    return Proof(
        precision,
        used=fault is None,
        fault=fault,
        faces=agreement.faces,
        mean_cosine=agreement.mean_cosine,
        worst_cosine=agreement.worst_cosine,
        crops_per_second=1 / seconds,
        exact_crops_per_second=1 / exact_seconds,
    )


def insist(bundle: Bundle, proof: Proof) -> Proof:
    """The proof of a precision that was asked for: used although slower, refused if embeddings differ."""
    if proof.worst_cosine is None or proof.worst_cosine < LEAST_COSINE:
        raise PrecisionUnavailable(f"{bundle.contract.name} cannot run in {proof.precision}: {proof.fault}.")
    return proof.accepted()
