"""Figures of an evaluation: DET and ROC curves and histograms of scores, for one bundle or several."""

import io
import math
from collections.abc import Sequence

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sameface.model.decision.rates import write_rate
from sameface.model.measurement.intervals import Rates
from sameface.training.evaluation.evaluate import BINS, Evaluation

COLOURS = ("#1f5fa8", "#c8501e")
GREY = "#8a8a8a"
SIZE = (6.4, 4.8)


def plot_det(evaluations: Sequence[Evaluation]) -> Figure:
    """FNMR by FMR, both logarithmic: lower and further left is better."""
    figure, axes = start("false match rate", "false non-match rate", "DET")
    for evaluation, colour in zip(evaluations, COLOURS, strict=False):
        fnmrs = np.array(evaluation.curves.fnmrs)
        plot_curve(axes, evaluation, np.where(fnmrs > 0, fnmrs, np.nan), colour)  # 0 has no logarithm
    least = 0.5 / max(evaluation.genuine_pairs for evaluation in evaluations)  # lower rates cannot be seen
    axes.set(xscale="log", yscale="log", xlim=(find_least(evaluations), 1), ylim=(least, 1))
    return finish(figure, axes)


def plot_roc(evaluations: Sequence[Evaluation]) -> Figure:
    """The share of genuine pairs that match, by FMR."""
    figure, axes = start("false match rate", "true match rate", "ROC")
    for evaluation, colour in zip(evaluations, COLOURS, strict=False):
        plot_curve(axes, evaluation, 1 - np.array(evaluation.curves.fnmrs), colour)
    axes.set(xscale="log", xlim=(find_least(evaluations), 1))
    return finish(figure, axes)


def plot_curve(axes: Axes, evaluation: Evaluation, rates: Rates, colour: str) -> None:
    """Draw a curve, grey left of a dotted line where fewer than thirty false matches support it."""
    fmrs = np.array(evaluation.curves.fmrs)
    thin = fmrs <= evaluation.lowest_fmr * 10**0.05  # one point more, so that both parts meet
    axes.plot(fmrs[thin], rates[thin], color=GREY, linewidth=1)
    firm = fmrs >= evaluation.lowest_fmr
    axes.plot(fmrs[firm], rates[firm], color=colour, label=evaluation.bundle)
    axes.axvline(evaluation.lowest_fmr, color=colour, linewidth=0.8, linestyle=":")


def find_least(evaluations: Sequence[Evaluation]) -> float:
    """The lowest rate of any curve, rounded down to a decade."""
    least = min(evaluation.curves.fmrs[-1] for evaluation in evaluations)
    return float(10 ** math.floor(math.log10(least) + 1e-9))


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
        label = f"calibrated for FMR {write_rate(evaluation.calibrated.target_fmr)}"
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
