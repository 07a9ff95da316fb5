"""The report of an evaluation: a self-contained HTML file, its numbers as JSON, and the figures."""

import json
from collections.abc import Sequence
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from matplotlib.figure import Figure

from sameface.model.decision.calibration import Rate
from sameface.model.faces import to_plain
from sameface.model.files import write_atomically
from sameface.model.measurement.groups import compare_groups
from sameface.training.evaluation.evaluate import Evaluation
from sameface.training.evaluation.plots import encode, plot_det, plot_roc, plot_scores


def write_report(evaluations: Sequence[Evaluation], folder: Path) -> Path:
    """Write HTML, JSON and figures into `folder`; returns the path of the HTML."""
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
    """The HTML page with inline figures."""
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
    """The figure as an SVG element, without the XML declaration of a file."""
    content = encode(figure, "svg").decode()
    return Markup(content[content.index("<svg") :])


def show_percent(value: float) -> str:
    """A share in percent, with two decimals."""
    return f"{value:.2%}"


def show_rate(value: float) -> str:
    """A rate, in scientific notation below 0.001."""
    return f"{value:.2e}" if value < 0.001 else f"{value:.4f}"


def show_interval(rate: Rate) -> str:
    """The interval of a rate in percent."""
    return f"{show_percent(rate.low)} to {show_percent(rate.high)}"
