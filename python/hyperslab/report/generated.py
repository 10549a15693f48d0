"""Show an evaluation on drawn workloads in the terminal."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from hyperslab.model.accuracy import questions, regret
from hyperslab.model.generated.scores import Scores
from hyperslab.model.generated.session import Generated
from hyperslab.model.terms import EXTENDED, PAPER
from hyperslab.quantities import UNKNOWN
from hyperslab.report.tables import Table
from hyperslab.report.terminal import print_table

HEADER = (
    "model",
    "faster library",
    "Zarr's wins found",
    "faster layout",
    "RMSE log10",
    "in the interval",
    "regret median",
    "95 %",
    "worst",
)
MOST_REGRETTED = 5


def print_generated(made: Generated, console: Console) -> None:
    """Print the scores of every model, those of each pattern, and the worst choices."""
    for reason in made.warnings:
        console.print(Text(f"warning: {reason}", style="dim"))
    for table in tables(made):
        print_table(table, console)


def tables(made: Generated) -> list[Table]:
    """All tables of an evaluation on drawn workloads."""
    ours = made.scores[EXTENDED.name]
    rows = [_row(_title(name), scores) for name, scores in made.scores.items()]
    rows += [
        (f"always {library}", _of(share, ours.library_pairs), _percent(float(library == "zarr")), *[""] * 6)
        for library, share in made.constant.items()
    ]
    patterns = tuple(_row(name, scores) for name, scores in made.by_pattern().items())
    return [
        Table(f"{ours.workloads} workloads of seed {made.seed}: how good predictions are", HEADER, tuple(rows),
              _note(made, ours)),
        Table("Our model by pattern", ("pattern", *HEADER[1:]), patterns, ""),
        Table("The choices that cost most", ("workload", "regret", "chosen", "best"), _worst(made), ""),
    ]  # fmt: skip


def _note(made: Generated, ours: Scores) -> str:
    ends = ours.intervals

    def between(name: str) -> str:
        if name not in ends:
            return UNKNOWN
        return f"{_percent(ends[name][0])} to {_percent(ends[name][1])}"

    parts = [
        f"{ours.cells} cells, measured in {made.seconds:.0f} s.",
        f"Pairs whose measured intervals overlap are ties and count for no model: {ours.ties} of libraries, "
        f"{ours.layout_ties} of layouts.",
        f"In {ours.too_close} of the other {ours.library_pairs} pairs of libraries our stated intervals overlap: too "
        "close to call, though the table counts the smaller prediction.",
        f"95 % intervals, by drawing workloads again: faster library {between('library_accuracy')}, faster layout "
        f"{between('layout_accuracy')}, regret at 95 % {between('regret_p95')}, worst {between('regret_worst')}.",
        f"{made.extrapolating} cells lie outside the trained range.",
    ]
    if made.unpredicted:
        parts.append(f"Our model refused {len(made.unpredicted)} cells; their layouts count for no model.")
    parts += [f"{name} was not fitted: {reason}." for name, reason in made.skipped.items()]
    return " ".join(parts)


def _title(name: str) -> str:
    if name == PAPER.name:
        return "paper's formulas, our counts"
    return "half of the passes, by the other half" if name == "measured again" else name


def _row(name: str, scores: Scores) -> tuple[str, ...]:
    return (
        name,
        _of(scores.library_accuracy, scores.library_pairs),
        _of(scores.zarr_recall, scores.zarr_wins),
        _of(scores.layout_accuracy, scores.layout_pairs),
        f"{scores.rmse_log10:.3f}",
        "" if scores.coverage is None else _percent(scores.coverage),
        _percent(scores.regret_median),
        _percent(scores.regret_p95),
        _percent(scores.regret_worst),
    )


def _worst(made: Generated) -> tuple[tuple[str, ...], ...]:
    asked = sorted(questions(made.outcomes), key=lambda group: -regret(group, EXTENDED.name))[:MOST_REGRETTED]
    rows = []
    for group in asked:
        lost = regret(group, EXTENDED.name)
        if lost > 0:
            chosen = min(group, key=lambda one: one.predicted[EXTENDED.name])
            best = min(group, key=lambda one: one.seconds)
            names = (f"{one.library} {one.layout}" for one in (chosen, best))
            rows.append((group[0].question, _percent(lost), *names))
    return tuple(rows)


def _of(share: float | None, count: int) -> str:
    return "" if share is None else f"{round(share * count)}/{count} ({_percent(share)})"


def _percent(share: float) -> str:
    return f"{100 * share:.3g} %"
