"""The model card: what a user of the bundle must know, and nothing that was not measured."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sameface.model.bundles.bundle import Bundle

if TYPE_CHECKING:
    from sameface.training.backbones.cost import Cost  # loads torch

CARD = "README.md"

LIMITS = """\
For saying whether two photos show one person, where a wrong answer can be noticed and put right: sorting
somebody's own photos, or proposing candidates to a person who decides.

- **It knows nothing about liveness.** A photo of a photo is a face to it.
- **Not for decisions about people** without a human being who can overrule it, and not for watching people
  who have not agreed to it.
- **Choose the threshold on photos like yours**, for the false matches that you can bear: the more people a
  probe is compared with, the more of them look alike.
- Its embeddings compare with those of this file alone: with another bundle, a gallery must be embedded anew.
- Embeddings are biometric data: protect them as you would protect the photos."""

UNMEASURED = """\
Not measured, so nothing is claimed about it: how errors differ between women and men, ages or skin colours;
children; masks, sunglasses and profiles; small, dark or blurred faces; photos taken many years apart; and the
rate of false matches at a given threshold."""

OWNER = """\
The counts are all that the export knows. Where the images come from, who is in them, whether these people
agreed and what the licence allows is for the owner of the data to add here."""


def write_card(bundle: Bundle, cost: "Cost") -> str:
    """The model card of a bundle, in Markdown."""
    contract = bundle.contract
    recipe = dict(contract.recipe or {})
    trained = recipe.pop("trained")
    parity = dict(contract.parity or {})
    sections = [
        f"# {contract.name}",
        f"A face recogniser: it takes an aligned RGB crop of 112x112 pixels to {contract.dimension} numbers"
        " whose direction says who it is. The cosine of two of them is their similarity.",
        describe_network(bundle, cost, trained, parity),
        "## Serve it\n\nIn the folder of this page:\n\n```sh\nsameface serve --recognizer .\n```\n\n"
        f"If it is in the data folder, `sameface serve --recognizer {contract.name}` does it from anywhere. "
        + describe_threshold(contract.published_threshold),
        "## Accuracy\n\n" + describe_accuracy(recipe, trained, parity),
        UNMEASURED,
        f"## Intended use and limits\n\n{LIMITS}",
        "## Data\n\n" + describe_data(trained),
        OWNER,
        "## Export\n\n" + describe_parity(parity),
        "## Training\n\n" + describe_recipe(recipe),
    ]
    return "\n\n".join(sections) + "\n"


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table whose columns also line up as plain text."""
    cells = [[cell.replace("|", "\\|").replace("\n", " ") for cell in row] for row in (header, *rows)]
    widths = [max(3, *map(len, column)) for column in zip(*cells, strict=True)]
    padded = [
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |"
        for row in cells
    ]
    rule = "|" + "|".join("-" * (width + 2) for width in widths) + "|"
    return "\n".join([padded[0], rule, *padded[1:]])


def describe_network(
    bundle: Bundle, cost: "Cost", trained: Mapping[str, Any], parity: Mapping[str, Any]
) -> str:
    """The network's size, cost, file and licence."""
    rows = [
        ("backbone", str(trained["architecture"]["backbone"])),
        ("parameters", f"{cost.parameters:,}"),
        ("multiply-accumulates per crop", f"{cost.multiply_accumulates:,}"),
        ("precision", parity.get("variant", "float32")),
        ("file", f"`{bundle.file}`, {parity['size_bytes'] / 1e6:.2f} MB"),
        ("sha256", f"`{bundle.sha256}`"),
        ("licence", bundle.contract.licence),
    ]
    return table(("property", "value"), rows)


def describe_threshold(threshold: float | None) -> str:
    """The threshold that the server uses by default."""
    if threshold is None:
        return "It has no threshold yet: requests must bring one, or the bundle a calibration."
    return (
        f"Unless a request says otherwise, a similarity of {threshold:.3f} counts as the same person: the"
        " threshold that was most often right on the pairs given to the export."
    )


def describe_accuracy(
    recipe: Mapping[str, Any], trained: Mapping[str, Any], parity: Mapping[str, Any]
) -> str:
    """The accuracies that were measured, and how to read them."""
    rows = []
    if trained["accuracy"] is not None:
        pairs = Path((recipe.get("evaluation") or {}).get("pairs", "the recipe's pairs")).name
        rows.append(
            (f"`{pairs}` of the recipe", "looked at while it was trained", f"{trained['accuracy']:.2%}")
        )
    if measured := parity.get("measured"):
        on = f"{measured['pairs']:,} pairs given to the export"
        missing = f"{measured['missing_pairs']:,} without a crop, counted as wrong"
        rows.append((on, missing, f"{measured['accuracy']:.2%}"))
    if parity.get("variant"):
        rows.append(("the same pairs, float32", "before the conversion", f"{parity['float32_accuracy']:.2%}"))
    if not rows:
        return "Accuracy was not measured."
    note = "The share of pairs decided right, each fold by the threshold that suits the others best."
    if trained["accuracy"] is not None:
        note += " Pairs that were looked at during training flatter the result: expect less elsewhere."
    return f"{table(('pairs', 'note', 'accuracy'), rows)}\n\n{note}"


def describe_data(trained: Mapping[str, Any]) -> str:
    """The counts of the training data, and how often it was seen."""
    data = trained["data"]
    blends = data.get("blends", 0)  # missing in older checkpoints
    passes = trained["seen"] / max(1, data["images"] + blends)
    rows = [
        ("identities", f"{data['identities']:,}"),
        ("images", f"{data['images']:,}"),
        ("blends of two of them", f"{blends:,}"),
        ("identities left out, with too few images", f"{data['left_out']:,}"),
        ("images that could not be read", f"{data['unreadable']:,}"),
        ("images trained on", f"{trained['seen']:,}: each {passes:.1f} times, on average"),
        ("steps", f"{trained['step']:,}"),
        ("weights", "a moving average" if trained["averaged"] else "those of this step"),
    ]
    return table(("what", "count"), rows)


def describe_recipe(recipe: Mapping[str, Any]) -> str:
    """The settings of the recipe, a row each, defaults included."""
    rows = [(f"`{key}`", show_value(value)) for key, value in flatten(recipe) if value not in (None, {}, ())]
    return table(("setting", "value"), rows)


def flatten(settings: Mapping[str, Any], place: str = "") -> list[tuple[str, Any]]:
    """Nested settings as a list under dotted names."""
    flat: list[tuple[str, Any]] = []
    for key, value in settings.items():
        inner = isinstance(value, Mapping)
        flat += flatten(value, f"{place}{key}.") if inner else [(f"{place}{key}", value)]
    return flat


def show_value(value: Any) -> str:
    """A setting as text, lists joined by commas."""
    return ", ".join(map(show_value, value)) if isinstance(value, list | tuple) else str(value)


def describe_parity(parity: Mapping[str, Any]) -> str:
    """How the exported file differs from the trained network."""
    if variant := parity.get("variant"):
        loss = parity["float32_accuracy"] - parity["measured"]["accuracy"]
        return (
            f"Converted to {variant} with ONNX Runtime {parity['onnxruntime']} and kept because it loses"
            f" {loss:.2%} of accuracy, which was to be at most {parity['max_loss']:.2%}."
        )
    rows = [
        ("largest difference of a coordinate", f"{parity['max_difference']:.2g}"),
        ("least cosine of the two embeddings of a crop", f"{parity['least_cosine']:.8f}"),
        ("random crops compared", str(parity["crops"])),
        ("opset", str(parity["opset"])),
        ("torch", str(parity["torch"])),
        ("ONNX Runtime", str(parity["onnxruntime"])),
    ]
    return "The network in torch against the file in ONNX Runtime:\n\n" + table(("parity", "value"), rows)
