"""Draws the accuracy of the runs in each folder against the images that they have seen.

python docs/results/curves.py
"""

import csv
from collections.abc import Mapping
from pathlib import Path

import matplotlib as mpl
from matplotlib import pyplot as plt

HERE = Path(__file__).parent
FOLDERS = {
    "losses": {
        "sphereface": "#0072b2",
        "cosface": "#d55e00",
        "arcface": "#009e73",
        "softmax": "#555555",
        "modified_softmax": "#999999",
        "triplet": "#a6761d",
        "distillation": "#aa4499",
        "distillation_cosface": "#cc3377",
        "distillation_sphereface": "#56b4e9",
    },
    "small": {"with_blends": "#0072b2", "crops_alone": "#999999"},
}
SOLID = ("sphereface", "cosface", "arcface", "with_blends")  # what each figure is about


def main() -> None:
    """One picture for each folder, as PNG for readers and SVG for printing."""
    mpl.rcParams.update({"font.size": 9, "svg.hashsalt": "sameface"})
    for folder, colours in FOLDERS.items():
        draw(HERE / folder, colours)


def draw(folder: Path, colours: Mapping[str, str]) -> None:
    """A line for every run."""
    figure, axes = plt.subplots(figsize=(7.5, 4.5), layout="constrained")
    runs = {name: read_accuracy(folder / f"{name}.csv") for name in colours}
    for name, (images, accuracy) in sorted(runs.items(), key=lambda run: -run[1][1][-1]):
        style = "-" if name in SOLID else "--"
        label = f"{name.replace('_', ' ')}, {accuracy[-1]:.1f} %"
        axes.plot(images, accuracy, style, color=colours[name], label=label, marker="o", ms=3)
    axes.set(xlabel="images seen, thousands", ylabel="accuracy on lfw_dev pairs, %", xlim=(0, None))
    axes.grid(alpha=0.3)
    axes.legend(frameon=False)
    for kind in ("png", "svg"):
        metadata = {"Date": None} if kind == "svg" else None
        figure.savefig(folder / f"curves.{kind}", dpi=150, metadata=metadata)


def read_accuracy(file: Path) -> tuple[list[float], list[float]]:
    """Thousands of images, and the percentage of pairs that were right after them."""
    with file.open(newline="") as rows:
        looks = [row for row in csv.DictReader(rows) if row["accuracy"]]
    return [int(row["images"]) / 1000 for row in looks], [100 * float(row["accuracy"]) for row in looks]


if __name__ == "__main__":
    main()
