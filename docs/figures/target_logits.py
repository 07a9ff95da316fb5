"""Draws what each head makes of the target's angle, and where its border between two classes lies.

python docs/figures/target_logits.py
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import torch
from matplotlib import pyplot as plt
from matplotlib.axes import Axes

from sameface.training.losses.by_name import build_head

HERE = Path(__file__).parent
ANGLES = np.linspace(0, 180, 1441)  # degrees
GREY, BROWN, BLUE, SKY, RED, GREEN, PURPLE = (
    "#555555",
    "#a6761d",
    "#0072b2",
    "#56b4e9",
    "#d55e00",
    "#009e73",
    "#aa4499",
)


@dataclass(frozen=True, slots=True)
class Curve:
    """A head with its options, and how it is drawn."""

    name: str
    label: str
    colour: str
    style: str = "-"
    norm: float = 1.0
    options: dict[str, Any] = field(default_factory=dict)


WITHOUT_ANNEALING = {"base": 0.0, "lambda_min": 0.0}
CURVES = [
    Curve("modified_softmax", "softmax, modified softmax: cos t", GREY),
    Curve("sphereface_r", "SphereFace-R, m = 1.4: cos t,\nothers cos(t / m), drawn dashed on the left", SKY),
    Curve("arcface", "ArcFace, m = 0.5: cos(t + m)", GREEN),
    Curve("cosface", "CosFace, m = 0.35: cos t − m", RED),
    Curve("adaface", "AdaFace, m = 0.4, high norm (q = 1)", PURPLE, "--", norm=1000.0),
    Curve("adaface", "AdaFace, usual norm (q = 0)", PURPLE, "-", norm=20.0),
    Curve("adaface", "AdaFace, low norm (q = −1)", PURPLE, ":", norm=0.01),
    Curve("l_softmax", "L-Softmax, m = 2, λ = 0: ψ(t)", BROWN, options={"margin": 2, **WITHOUT_ANNEALING}),
    Curve("sphereface", "SphereFace, m = 4, λ = 5, where annealing ends", BLUE, options={"base": 0.0}),
    Curve("sphereface", "SphereFace, m = 4, λ = 0: ψ(t), down to −7", BLUE, ":", options=WITHOUT_ANNEALING),
]


def main() -> None:
    """Write target-logits.svg and target-logits.png beside this script."""
    mpl.rcParams.update(
        {"font.size": 10, "axes.spines.top": False, "axes.spines.right": False, "svg.hashsalt": "-"}
    )
    figure, (left, right) = plt.subplots(1, 2, figsize=(14.5, 5.6), layout="constrained")
    for curve in CURVES:
        target, other = measure_logits(curve, label=0), measure_logits(curve, label=1)
        draw = {"color": curve.colour, "linestyle": curve.style, "linewidth": 1.8, "label": curve.label}
        if curve.name == "sphereface_r":
            left.plot(ANGLES, other, **{**draw, "linestyle": "--"})
        else:
            left.plot(ANGLES, target, **draw)
        right.plot(ANGLES, find_border(target, other), **draw)
    name_axes(left, right)
    figure.legend(
        *right.get_legend_handles_labels(), loc="outside right center", frameon=False, labelspacing=0.9
    )
    figure.savefig(HERE / "target-logits.svg", metadata={"Date": None, "Creator": None})
    figure.savefig(HERE / "target-logits.png", dpi=110, metadata={"Software": None})


def measure_logits(curve: Curve, label: int) -> Any:
    """Logits of class 0, over the scale, of embeddings of class `label` at every angle from it."""
    head = build_head(curve.name, 2, 2, **curve.options).double().eval()
    if curve.name == "adaface":
        head.norm_deviation.fill_(1.0)
    head.weight.data = torch.eye(2, dtype=torch.float64)
    angles = torch.from_numpy(np.radians(ANGLES))
    embeddings = curve.norm * torch.stack([angles.cos(), angles.sin()], dim=1)  # (angles, 2)
    logits = head(embeddings, torch.full((len(angles),), label))[:, 0]
    return (logits / (head.scale or curve.norm)).detach().numpy()


def find_border(target: Any, other: Any) -> Any:
    """For every angle to the own class, the angle to another with the same logit; NaN if none has it."""
    border = np.interp(-target, -other, ANGLES)  # both fall with the angle
    return np.where(target > other[-1] + 1e-9, border, np.nan)


def name_axes(left: Axes, right: Axes) -> None:
    """Titles, ranges, grids."""
    degrees = range(0, 181, 30)
    left.set(title="Logit of the own class, over its scale", xlabel="angle t to the own class, degrees")
    left.set(xlim=(0, 180), ylim=(-3.1, 1.1), xticks=degrees)
    right.set(title="Border between two classes (own class above the line)")
    right.set(xlabel="angle to the own class, degrees", ylabel="angle to the other class, degrees")
    right.set(xlim=(0, 180), ylim=(0, 180), xticks=degrees, yticks=degrees)
    for panel in (left, right):
        panel.set_box_aspect(1)
        panel.grid(alpha=0.25)


if __name__ == "__main__":
    main()
