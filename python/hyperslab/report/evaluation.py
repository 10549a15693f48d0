"""Show an evaluation in the terminal and in figures."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console
from rich.text import Text

from hyperslab.model.accuracy import PAPER_EXPERIMENTS, PAPER_RIGHT, PAPER_RMSE, Accuracy
from hyperslab.model.evaluation_session import Done
from hyperslab.model.terms import EXTENDED, IO_ONLY
from hyperslab.report.prediction_figures import draw_accuracy_bars, draw_scatter
from hyperslab.report.tables import Table
from hyperslab.report.terminal import print_table

HEADER = (
    "model",
    "faster library predicted",
    "where intervals do not overlap",
    "RMSE log10",
    "relative",
    "seconds",
    "rank correlation",
    "regret median",
    "worst",
)


def print_evaluation(done: Done, console: Console) -> None:
    """Print the accuracy of every model, the phases, and the verdicts."""
    for text in (*done.notes, *(f"warning: {reason}" for reason in done.warnings)):
        console.print(Text(text, style="dim"))
    for table in tables(done):
        print_table(table, console)


def tables(done: Done) -> list[Table]:
    """All tables of an evaluation."""
    evaluation = done.serial
    paper = (
        "the paper, on three clusters",
        f"{PAPER_RIGHT}/{PAPER_EXPERIMENTS} ({_percent(PAPER_RIGHT / PAPER_EXPERIMENTS)})",
    )
    rows = [_row(name, each) for name, each in (*evaluation.models.items(), *evaluation.baselines.items())]
    if evaluation.measured_again is not None:
        rows.append(_row("half of the passes, by the other half", evaluation.measured_again))
    rows.append((*paper, "", f"{PAPER_RMSE} (the paper does not say of what)", *[""] * 5))
    always = ", ".join(f"{library} wins {_percent(share)}" for library, share in evaluation.always_one().items())
    note = (
        f"Of the experiments, {always}: always choosing one library is right this often, but chooses no layout. "
        f"Regret: how much longer the choice takes than the best of all layouts and libraries. {_held_out(done)}"
    )
    phases = tuple(
        (phase, _percent(said["largest_share"]), _percent(said["median_error"]), _percent(said["worst_error"]))
        for phase, said in evaluation.phase_summary().items()
    )
    return [
        Table("How good predictions are", HEADER, tuple(rows), note),
        Table(
            "Our model without one of its extensions",
            HEADER,
            tuple(_row(f"without {name}", each) for name, each in evaluation.ablations.items()),
            "; ".join(f"{name}: not fitted ({reason})" for name, reason in evaluation.skipped.items()),
        ),
        Table("Phases of reads", ("phase", "largest share of a read", "median error", "worst"), phases, ""),
        Table(
            "Takeaways",
            ("verdict", "conclusion", "here"),
            tuple((v.verdict, v.conclusion, v.by_fair_method) for v in done.verdicts),
            "",
        ),
    ]


def draw_evaluation(done: Done, directory: Path) -> list[Path]:
    """Draw figures 11 and 12 of the paper as PNG and SVG, and return their paths."""
    directory.mkdir(parents=True, exist_ok=True)
    evaluation = done.serial
    caption = " ".join(f"{note}." for note in done.notes)
    clouds = [name for name in (EXTENDED.name, IO_ONLY.name) if name not in evaluation.skipped]
    bars = {**evaluation.models, **evaluation.baselines}
    return [
        *draw_scatter(evaluation.outcomes, clouds, caption, directory / "predicted-measured"),
        *draw_accuracy_bars(bars, caption, directory / "accuracy"),
    ]


def _row(name: str, accuracy: Accuracy) -> tuple[str, ...]:
    return (
        name,
        _share(accuracy.fastest_accuracy, accuracy.experiments),
        _share(accuracy.fastest_accuracy_decided, accuracy.decided_experiments),
        f"{accuracy.rmse_log10:.3f}",
        f"{accuracy.rmse_relative:.3g}",
        f"{accuracy.rmse_seconds:.3g}",
        "" if accuracy.rank_correlation is None else f"{accuracy.rank_correlation:.3f}",
        "" if accuracy.regret_median is None else _percent(accuracy.regret_median),
        "" if accuracy.regret_worst is None else _percent(accuracy.regret_worst),
    )


def _held_out(done: Done) -> str:
    left = [f"{error:.3f} with each {what} left out" for what, error in done.serial.held_out.items()]
    return f"RMSE of log10 within the training: {', '.join(left)}." if left else ""


def _share(share: float | None, count: int) -> str:
    return "" if share is None else f"{round(share * count)}/{count} ({_percent(share)})"


def _percent(share: float) -> str:
    return f"{100 * share:.3g} %"
