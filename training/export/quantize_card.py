"""The model card of a bundle of eight bits: what it was made of, and how it compares."""

from collections.abc import Mapping
from typing import Any

from sameface.model.bundles.bundle import Bundle
from sameface.training.export.model_card import LIMITS, table


def write_int8_card(bundle: Bundle, exact: Bundle, min_cosine: float) -> str:
    """The model card, in Markdown; the measurements are those of the contract's `parity`."""
    contract, parity = bundle.contract, dict(bundle.contract.parity or {})
    sections = [
        f"# {contract.name}",
        f"{exact.contract.name} in eight bits, made by `sameface quantize`: a recogniser of its own, whose"
        " embeddings do not compare with those of the other.",
        table(("property", "value"), describe_file(bundle, exact, parity)),
        "## Beside the exact one\n\n" + table(("measure", "exact", "eight bits"), compare(parity)),
        describe_loss(parity, min_cosine),
        "## Decisions\n\n" + describe_decisions(bundle),
        f"## Intended use and limits\n\n{LIMITS}",
    ]
    return "\n\n".join(sections) + "\n"


def describe_file(bundle: Bundle, exact: Bundle, parity: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The file, its size, and what it was made of."""
    return [
        ("made of", f"`{exact.contract.name}`, identity `{exact.identity[:12]}`"),
        ("precision", "int8: activations 8 bits, weights 7 with a scale per channel"),
        ("layers", f"{parity['layers']}, of which {parity['exact_layers']} stay in float32"),
        ("file", f"`{bundle.file}`, {parity['size_bytes'] / 1e6:.2f} MB"),
        ("sha256", f"`{bundle.sha256}`"),
        ("licence", bundle.contract.licence),
    ]


def compare(parity: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """A row for each measurement of both."""
    exact, small = (f"{parity[name]:.0f}" for name in ("exact_crops_per_second", "crops_per_second"))
    rows = [
        ("crops/s on one thread, by turns", exact, small),
        ("engine", str(parity["exact_engine"]), str(parity["engine"])),
    ]
    return rows + [
        (f"FNMR at FMR {rates['fmr']:g}", write_rate(rates["first"]), write_rate(rates["second"]))
        for rates in parity["rates"]
    ]


def write_rate(rate: Mapping[str, float]) -> str:
    """A rate and its interval in per cent."""
    return f"{rate['value']:.2%} ({rate['low']:.2%} to {rate['high']:.2%})"


def describe_loss(parity: Mapping[str, Any], min_cosine: float) -> str:
    """How far embeddings turn, and on how many faces that was measured."""
    people = f" of {parity['people']:,} people" if parity["people"] else ""
    return (
        f"The cosine of the two embeddings of a face is {parity['mean_cosine']:.4f} on average and"
        f" {parity['worst_cosine']:.4f} at worst, on {parity['faces']:,} faces{people} that set no range; at"
        f" least {min_cosine:g} on average was asked for."
    )


def describe_decisions(bundle: Bundle) -> str:
    """Where its thresholds come from."""
    if bundle.contract.calibration:
        return (
            f"Thresholds come from the calibration `{bundle.contract.calibration}`, fitted to the same faces."
        )
    if bundle.contract.published_threshold is not None:
        return (
            "It has no calibration of its own, and decides by the threshold of the exact one: calibrate it."
        )
    return "It has neither calibration nor threshold: calibrate it with `sameface calibrate`."
