"""Show an evaluation on a published table in the terminal."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from hyperslab.parallel.published import PublishedEvaluation, PublishedPrediction, PublishedScores
from hyperslab.quantities import UNKNOWN, digits
from hyperslab.report.tables import Table
from hyperslab.report.terminal import print_table

CELLS_HEADER = (
    "cell",
    "measured MiB/s",
    "predicted",
    "95 % interval",
    "log10(predicted / measured)",
    "scatter of runs, log10",
    "file",
)
SCORES_HEADER = ("model", "shared against own file", "growth with processes", "RMSE log10")


def print_published(made: PublishedEvaluation, console: Console) -> None:
    """Print what was predicted, how good it is, and what was assumed."""
    for table in tables(made):
        print_table(table, console)
    for assumption in made.assumptions:
        console.print(Text(f"assumed: {assumption}", style="dim"))


def tables(made: PublishedEvaluation) -> list[Table]:
    """All tables of an evaluation on a published table."""
    rows = [_scored("ours", made.scores), *(_scored(name, scores) for name, scores in made.baselines.items())]
    predicted = [_row(each, made) for each in made.predictions if not each.calibrated]
    scatter = made.scatter_log10
    notes = [
        f"{made.scores.cells} medians predicted, calibrated on the cells with {made.conditions}.",
        "The model predicts medians."
        + (f" Single runs scatter about them by {scatter:.2f} of log10 over all cells." if scatter is not None else ""),
    ]
    if made.left_out_rmse_log10 is not None:
        notes.append(f"Each calibrated cell predicted from the others: RMSE of log10 {made.left_out_rmse_log10:.3f}.")
    return [
        Table(f"{made.path.name}: cells that were not calibrated on", CELLS_HEADER, tuple(predicted), ""),
        Table("How good the predictions are", SCORES_HEADER, tuple(rows), " ".join(notes)),
    ]


def _row(each: PublishedPrediction, made: PublishedEvaluation) -> tuple[str, ...]:
    scatter = each.cell.scatter_log10
    return (
        each.cell.name,
        digits(each.cell.mib_s_median),
        digits(each.mib_s),
        f"{digits(each.low_mib_s)} to {digits(each.high_mib_s)}",
        f"{each.error_log10:+.3f}",
        UNKNOWN if scatter is None else f"{scatter:.2f}",
        made.machine.load(each.cell).path,
    )


def _scored(name: str, scores: PublishedScores) -> tuple[str, ...]:
    return (
        name,
        f"{scores.order_right} of {scores.order_all}",
        f"{scores.growth_right} of {scores.growth_all}",
        f"{scores.rmse_log10:.3f}",
    )
