"""Figures of an evaluation: DET and ROC curves and histograms of scores, for one bundle or several."""

import io
from collections.abc import Sequence

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sameface.model.measurement.fit_calibration import RULE_OF_30
from sameface.training.evaluation.evaluate import BINS, Evaluation

COLOURS = ("#1f5fa8", "#c8501e")
GREY = "#8a8a8a"
SIZE = (6.4, 4.8)


def plot_det(evaluations: Sequence[Evaluation]) -> Figure:
    """FNMR by FMR, both logarithmic: lower and further left is better."""
    figure, axes = start("false match rate", "false non-match rate", "DET")
    for evaluation, colour in zip(evaluations, COLOURS, strict=False):
        curves = evaluation.curves
        seen = np.array(curves.fnmrs) > 0  # 0 has no logarithm
        axes.plot(
            np.array(curves.fmrs)[seen], np.array(curves.fnmrs)[seen], color=colour, label=evaluation.bundle
        )
        mark_supported(axes, evaluation, colour)
    least = 0.5 / max(evaluation.genuine_pairs for evaluation in evaluations)  # lower rates cannot be seen
    axes.set(xscale="log", yscale="log", xlim=(1e-6, 1), ylim=(least, 1))
    return finish(figure, axes)


def plot_roc(evaluations: Sequence[Evaluation]) -> Figure:
    """The share of genuine pairs that match, by FMR."""
    figure, axes = start("false match rate", "true match rate", "ROC")
    for evaluation, colour in zip(evaluations, COLOURS, strict=False):
        curves = evaluation.curves
        axes.plot(curves.fmrs, 1 - np.array(curves.fnmrs), color=colour, label=evaluation.bundle)
        mark_supported(axes, evaluation, colour)
    axes.set(xscale="log", xlim=(1e-6, 1))
    return finish(figure, axes)


def mark_supported(axes: Axes, evaluation: Evaluation, colour: str) -> None:
    """Draw a dotted line, left of which fewer than thirty false matches support the curve."""
    lowest = RULE_OF_30 / evaluation.impostor_pairs
    axes.axvline(lowest, color=colour, linewidth=0.8, linestyle=":")


def plot_scores(evaluation: Evaluation) -> Figure:
    """Histograms of the similarities of genuine and impostor pairs."""
    figure, axes = start("similarity", "share of pairs", f"scores of {evaluation.bundle}")
    edges = np.linspace(-1, 1, BINS + 1)
    curves = evaluation.curves
    for label, shares, colour in (
        (f"{evaluation.impostor_pairs:,} impostor pairs", curves.impostor, COLOURS[1]),
        (f"{evaluation.genuine_pairs:,} genuine pairs", curves.genuine, COLOURS[0]),
    ):
        axes.stairs(shares, edges, fill=True, alpha=0.45, color=colour, label=label)
    axes.axvline(evaluation.eer_threshold, color=GREY, linewidth=0.8, label="equal error rate")
    if evaluation.calibrated:
        threshold = evaluation.calibrated.rates.threshold
        label = f"calibrated for FMR {evaluation.calibrated.target_fmr:g}"
        axes.axvline(threshold, color="black", linewidth=0.8, linestyle="--", label=label)
    seen = edges[:-1][np.array(curves.genuine) + np.array(curves.impostor) > 0]
    axes.set_xlim(float(seen.min()) - 0.05, 1)
    return finish(figure, axes)


def start(across: str, up: str, title: str) -> tuple[Figure, Axes]:
    """An empty figure with a title and labelled axes."""
    figure = Figure(figsize=SIZE, layout="constrained")
    axes = figure.add_subplot()
    axes.set_xlabel(across)
    axes.set_ylabel(up)
    axes.set_title(title, loc="left", fontsize=11)
    return figure, axes


def finish(figure: Figure, axes: Axes) -> Figure:
    """Add the grid and the legend, and remove the upper and right spines."""
    axes.grid(color="#e4e4e4", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, fontsize=9, loc="upper center", bbox_to_anchor=(0.5, -0.14), ncols=2)
    return figure


def encode(figure: Figure, kind: str) -> bytes:
    """The figure as PNG or SVG; equal figures give equal bytes."""
    content = io.BytesIO()
    with rc_context({"svg.hashsalt": "sameface"}):
        figure.savefig(content, format=kind, dpi=144, metadata={"Date": None} if kind == "svg" else None)
    return content.getvalue()
