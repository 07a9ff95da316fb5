"""The report of an evaluation: one HTML file that needs nothing else, the same as JSON, and the figures."""

import json
from collections.abc import Sequence
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from matplotlib.figure import Figure

from sameface.model.commands.terminal import to_plain
from sameface.model.files import write_atomically
from sameface.model.measurement.groups import compare_groups
from sameface.model.measurement.intervals import Rate
from sameface.training.evaluation.evaluate import Evaluation
from sameface.training.evaluation.plots import encode, plot_det, plot_roc, plot_scores


def write_report(evaluations: Sequence[Evaluation], folder: Path) -> Path:
    """Write everything into a folder; the path of the HTML."""
    folder.mkdir(parents=True, exist_ok=True)
    figures = {"det": plot_det(evaluations), "roc": plot_roc(evaluations)}
    figures |= {f"scores-{evaluation.bundle}": plot_scores(evaluation) for evaluation in evaluations}
    for name, figure in figures.items():
        for kind in ("png", "svg"):
            write_atomically(folder / f"{name}.{kind}", encode(figure, kind))
    content = json.dumps([to_plain(evaluation) for evaluation in evaluations], indent=1)
    write_atomically(folder / "report.json", content.encode() + b"\n")
    write_atomically(folder / "report.html", render_report(evaluations, figures).encode())
    return folder / "report.html"


def render_report(evaluations: Sequence[Evaluation], figures: dict[str, Figure]) -> str:
    """The page, its figures inside it."""
    environment = Environment(
        loader=PackageLoader("sameface.training.evaluation", "."),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"percent": show_percent, "rate": show_rate, "interval": show_interval}
    return environment.get_template("report.html").render(
        evaluations=evaluations,
        figures={name: to_inline(figure) for name, figure in figures.items()},
        ratios=[
            compare_groups(evaluation.groups) if evaluation.groups else None for evaluation in evaluations
        ],
    )


def to_inline(figure: Figure) -> Markup:
    """An SVG without the head that only a file of its own needs."""
    content = encode(figure, "svg").decode()
    return Markup(content[content.index("<svg") :])


def show_percent(value: float) -> str:
    """A share, with as many digits as say something."""
    return f"{value:.2%}"


def show_rate(value: float) -> str:
    """A rate that may be small."""
    return f"{value:.2e}" if value < 0.001 else f"{value:.4f}"


def show_interval(rate: Rate) -> str:
    """From where to where."""
    return f"{show_percent(rate.low)} to {show_percent(rate.high)}"
