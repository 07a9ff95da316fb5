"""The report of an evaluation: a self-contained HTML file, its numbers as JSON, and the figures."""

import json
from dataclasses import dataclass
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from matplotlib.figure import Figure

from sameface.model.decision.calibration import Rate
from sameface.model.decision.rates import round_up, write_rate
from sameface.model.faces import to_plain
from sameface.model.files import write_atomically
from sameface.model.measurement.groups import compare_groups
from sameface.training.evaluation.difference import Comparison, Difference
from sameface.training.evaluation.evaluate import Evaluation
from sameface.training.evaluation.plots import encode, plot_det, plot_roc, plot_scores


@dataclass(frozen=True, slots=True)
class Report:
    """The evaluations of one bundle or two, how they differ, and how all of it was made."""

    made_at: str
    version: str
    command: str
    evaluations: tuple[Evaluation, ...]
    difference: Comparison | None = None


def write_report(report: Report, folder: Path) -> Path:
    """Write HTML, JSON and figures into `folder`; returns the path of the HTML."""
    folder.mkdir(parents=True, exist_ok=True)
    evaluations = report.evaluations
    figures = {"det": plot_det(evaluations), "roc": plot_roc(evaluations)}
    figures |= {f"scores-{evaluation.bundle}": plot_scores(evaluation) for evaluation in evaluations}
    for name, figure in figures.items():
        for kind in ("png", "svg"):
            write_atomically(folder / f"{name}.{kind}", encode(figure, kind))
    content = json.dumps(to_plain(report), indent=1)
    write_atomically(folder / "report.json", content.encode() + b"\n")
    write_atomically(folder / "report.html", render_report(report, figures).encode())
    return folder / "report.html"


def render_report(report: Report, figures: dict[str, Figure]) -> str:
    """The HTML page with inline figures."""
    environment = Environment(
        loader=PackageLoader("sameface.training.evaluation", "."),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "percent": show_percent,
        "rate": write_rate,
        "round_up": round_up,
        "interval": show_interval,
        "points": show_points,
        "count": "{:,}".format,
    }
    return environment.get_template("report.html").render(
        report=report,
        evaluations=report.evaluations,
        difference=report.difference,
        figures={name: to_inline(figure) for name, figure in figures.items()},
        ratios=[
            compare_groups(evaluation.groups) if evaluation.groups else None
            for evaluation in report.evaluations
        ],
    )


def to_inline(figure: Figure) -> Markup:
    """The figure as an SVG element, without the XML declaration of a file."""
    content = encode(figure, "svg").decode()
    return Markup(content[content.index("<svg") :])


def show_percent(value: float) -> str:
    """A share in percent, with two decimals."""
    return f"{value:.2%}"


def show_interval(rate: Rate) -> str:
    """The interval of a rate in percent."""
    return f"{show_percent(rate.low)} to {show_percent(rate.high)}"


def show_points(difference: Difference) -> str:
    """A difference with its interval, in percentage points."""
    value, low, high = (f"{100 * part:+.2f}" for part in (difference.value, difference.low, difference.high))
    return f"{value} ({low} to {high})"
