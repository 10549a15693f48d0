"""A run's rankings and verdicts, and two runs' comparison, in the terminal."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from hyperslab.bench.compare import Comparison, ComparisonRow
from hyperslab.bench.rankings import Ranking
from hyperslab.bench.results import Run
from hyperslab.report.tables import Table, lead, outcome, ranking_table
from hyperslab.report.views import Arrays
from hyperslab.report.wording import digits, seconds_text

STYLES = {
    "holds": "green",
    "reverses": "red",
    "undecided": "yellow",
    "faster": "green",
    "slower": "red",
    "no difference": "dim",
    "unknown": "yellow",
}


def print_rankings(run: Run, console: Console) -> None:
    """One line for each ranking; for a single case also the full tables of its largest arrays."""
    if not run.description.cases:
        return
    if not run.rankings:
        console.print("No ranking: no trial was accepted. The reasons are in trials.csv.")
        return
    for case, method in dict.fromkeys((r.case, r.method) for r in run.rankings):
        console.print(_overview(run.rankings, case, method))
        console.print()
    console.print("≈ intervals overlap, so no winner is named", style="dim")
    if len({ranking.case for ranking in run.rankings}) == 1:
        largest = max((Arrays(r.shape, r.count) for r in run.rankings), key=lambda arrays: arrays.size)
        for ranking in run.rankings:
            if Arrays(ranking.shape, ranking.count) == largest and len(ranking.entries) > 1:
                print_table(ranking_table(ranking), console)


def _overview(rankings: list[Ranking], case: str, method: str) -> RichTable:
    title = Text(f"{case}, {method} method", style="bold")
    shown = RichTable(title=title, title_justify="left", header_style="dim", box=None, pad_edge=False)
    shown.add_column("", overflow="fold", ratio=2)
    shown.add_column("fastest", overflow="fold", ratio=1)
    shown.add_column("median", no_wrap=True)
    shown.add_column("ahead of the next", overflow="fold", ratio=1)
    for r in rankings:
        if (r.case, r.method) == (case, method):
            size = f"{r.count} × [{r.shape}]" + (f", {r.processes} processes" if r.processes > 1 else "")
            shown.add_row(Text(f"{r.operation} {size}, {r.conditions}, {r.cache}"), *_result(r))
    return shown


def _result(ranking: Ranking) -> tuple[Text, str, Text | str]:
    if ranking.winner is None:
        is_tie = outcome(ranking).endswith("overlap")
        text = " ≈ ".join(ranking.tied) if is_tie else outcome(ranking).partition(" for ")[0]
        return Text(text, style="yellow"), "", ""
    ahead = lead(ranking)
    next_one = f"{digits(ahead)} × {ranking.entries[1].format}" if ahead else ""
    return Text(ranking.winner, style="bold green"), seconds_text(ranking.entries[0].median_seconds), Text(next_one)


def print_verdicts(run: Run, console: Console) -> None:
    """The published conclusions that this run decides, and how many it leaves open; the page has the figures."""
    if not run.verdicts:
        return
    decided = [v for v in run.verdicts if v.verdict != "undecided"]
    rows = tuple((v.verdict, v.conclusion, v.id) for v in decided)
    print_table(Table("Published conclusions, here", ("verdict", "conclusion", "id"), rows), console)
    counts = {name: sum(v.verdict == name for v in run.verdicts) for name in ("holds", "reverses", "undecided")}
    console.print(
        f"{len(run.verdicts)} conclusions: {counts['holds']} hold, {counts['reverses']} reverse, "
        f"{counts['undecided']} undecided; report.html shows the figures and the reasons"
    )


def print_comparison(comparison: Comparison, console: Console) -> None:
    """Cell by cell, how the second run differs from the first."""
    for case, method in dict.fromkeys((row.case, row.method) for row in comparison.rows):
        title = Text(f"{case}, {method} method: B against A", style="bold")
        shown = RichTable(title=title, title_justify="left", header_style="dim", box=None, pad_edge=False)
        for name in ("", "format", "A", "B", "B / A [95 %]", "B is"):
            shown.add_column(Text(name), overflow="fold")
        for row in comparison.rows:
            if (row.case, row.method) == (case, method):
                shown.add_row(*_compared(row))
        console.print(shown)
        console.print()
    for difference in comparison.differences:
        console.print(Text(f"unlike: {difference}", style="yellow"))
    if comparison.only_a or comparison.only_b:
        console.print(f"{len(comparison.only_a)} cells are only in A, {len(comparison.only_b)} only in B")


def _compared(row: ComparisonRow) -> tuple[str | Text, ...]:
    reach = f" [{digits(row.low)} to {digits(row.high)}]" if row.low is not None else " [too few trials]"
    processes = f", {row.processes} processes" if row.processes > 1 else ""
    size = f"{row.count} × [{row.shape}]{processes}"
    return (
        Text(f"{row.operation} {size}, {row.conditions}, {row.cache}"),
        row.format,
        f"{seconds_text(row.a_seconds)} (n = {row.a_n})",
        f"{seconds_text(row.b_seconds)} (n = {row.b_n})",
        Text(f"{digits(row.ratio)}{reach}"),
        Text(row.outcome, style=STYLES[row.outcome]),
    )


def print_table(table: Table, console: Console) -> None:
    """Any table, with its note below; nothing for an empty one."""
    if not table.rows:
        return
    shown = RichTable(title=Text(table.title), title_justify="left", header_style="bold", box=None, pad_edge=False)
    for name in table.header:
        shown.add_column(Text(name), overflow="fold")
    for row in table.rows:
        shown.add_row(*[Text(cell, style=STYLES.get(cell.partition(":")[0], "")) for cell in row])
    console.print(shown)
    if table.note:
        console.print(Text(table.note, style="dim"))
    console.print()
