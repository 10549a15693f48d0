"""Print the answers and verdicts of a run, and the comparison of two runs, in the terminal."""

from __future__ import annotations

from collections import defaultdict

from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from hyperslab.archive.views.display import counted
from hyperslab.bench.compare import Comparison, ComparisonRow, Outcome
from hyperslab.bench.rankings import Ranking
from hyperslab.bench.results import Run
from hyperslab.quantities import digits, names_text, seconds_text
from hyperslab.report.answer_words import (
    answering,
    answering_method,
    avoid_text,
    headline,
    leads_text,
    open_text,
    recommendation_text,
)
from hyperslab.report.citations import citation
from hyperslab.report.tables import Table, ranking_table
from hyperslab.report.unmeasured import unmeasured_lines
from hyperslab.report.views import Arrays, case_named
from hyperslab.report.wording import arrays_text, cache_title, contender_title, operation_title

# Every verdict with the words that count it.
VERDICTS = {
    "holds": ("holds", "hold"),
    "reverses": ("reverses", "reverse"),
    "depends": ("depends on the case", "depend on the case"),
    "undecided": ("is undecided", "are undecided"),
}
STYLES = {
    "holds": "green",
    "reverses": "red",
    "depends": "cyan",
    "undecided": "yellow",
    "faster": "green",
    "slower": "red",
    "no difference": "dim",
    "unknown": "yellow",
}


def print_answers(run: Run, console: Console) -> None:
    """Print who leads each comparison of the largest arrays and what to use, case by case; the page has everything."""
    if not run.rankings:
        if run.description.cases:
            console.print("There is no answer, because no trial was accepted; trials.csv has all of them.")
        print_unmeasured(run, console)
        return
    until_decided = run.description.until_decided
    recommendations = answering(run)
    if len({ranking.case for ranking in run.rankings}) == 1:
        _print_largest(run, console)
    for case in dict.fromkeys(r.case for r in run.rankings):
        own = [each for each in recommendations if each.case == case]
        method = own[0].method if own else next(r.method for r in run.rankings if r.case == case)
        rankings = [r for r in run.rankings if (r.case, r.method) == (case, method)]
        largest = max((Arrays(r.shape, r.count) for r in rankings), key=lambda arrays: arrays.size)
        console.print(_overview(run, [r for r in rankings if Arrays(r.shape, r.count) == largest]))
        for each in own:
            _print_line(recommendation_text(each, until_decided), console)
        console.print()
    if len(recommendations) > 1:
        _print_line(headline(run), console)
    _print_open(run, console)
    print_unmeasured(run, console)


def print_unmeasured(run: Run, console: Console) -> None:
    """Print what the run did not measure, and why."""
    for said in unmeasured_lines(run):
        console.print(Text(said, style="yellow"), soft_wrap=not console.is_terminal)


def print_unfinished(run: Run, console: Console) -> None:
    """Print what an interrupted run has found so far, in few lines."""
    if run.recommendations:
        console.print(Text(f"so far: {headline(run)}"), soft_wrap=not console.is_terminal)
    print_unmeasured(run, console)


def _print_largest(run: Run, console: Console) -> None:
    """The full tables of the largest arrays, if they are few enough to be read."""
    largest = max((Arrays(r.shape, r.count) for r in run.rankings), key=lambda arrays: arrays.size)
    for ranking in run.rankings:
        if Arrays(ranking.shape, ranking.count) == largest and len(ranking.entries) > 1:
            print_table(ranking_table(ranking), console)


def _print_line(text: str, console: Console) -> None:
    console.print(Text(text, style="bold"), soft_wrap=not console.is_terminal)  # logs wrap lines as they like


def _overview(run: Run, rankings: list[Ranking]) -> RichTable:
    first = rankings[0]
    case = case_named(run, first.case)
    titled = f"{first.case}: {case.title}" if case and case.title else first.case
    dtype = first.entries[0].dtype
    title = Text(f"{titled}; {arrays_text(first.shape, first.count, dtype)}, {first.method} method", style="bold")
    shown = RichTable(title=title, title_justify="left", header_style="dim", box=None, pad_edge=False)
    shown.add_column("", overflow="fold", ratio=3)
    shown.add_column("who leads", overflow="fold", ratio=5)
    shown.add_column("avoid", overflow="fold", ratio=4)
    for r in rankings:
        processes = f", {r.processes} processes" if r.processes > 1 else ""
        style = "green" if r.judged.is_decided else "yellow"
        shown.add_row(
            Text(f"{operation_title(r.operation)}, {r.conditions}, {cache_title(r.cache)}{processes}"),
            Text(leads_text(r), style=style),
            Text(avoid_text(r).removeprefix("avoid ")),
        )
    return shown


def _print_open(run: Run, console: Console) -> None:
    compared = [r for r in run.rankings if len(r.entries) > 1 and r.method == answering_method(run)]
    if not compared:
        return
    undecided = [r for r in compared if not r.judged.is_decided]
    text = f"{len(compared) - len(undecided)} of {len(compared)} comparisons are decided (95 %, round by round)."
    if undecided:
        text += f" {open_text(undecided, run.description.until_decided)}"
    console.print(Text(text, style="dim"))


def print_verdicts(run: Run, console: Console) -> None:
    """Print the verdicts on published conclusions as sentences, study by study; the page has the figures."""
    if not run.verdicts:
        return
    for study in dict.fromkeys(v.study for v in run.verdicts):
        own = [v for v in run.verdicts if v.study == study and v.verdict != "undecided"]
        if not own:
            continue
        console.print(Text(f"What became of the conclusions of {citation(study)}", style="bold"))
        for verdict in own:
            text = Text(f"  {verdict.verdict}", style=STYLES[verdict.verdict])
            console.print(text.append(Text(f": {verdict.reason or verdict.conclusion}", style="default")))
        console.print()
    counts = {name: sum(v.verdict == name for v in run.verdicts) for name in VERDICTS}
    said = ", ".join(counted(counts[name], *words) for name, words in VERDICTS.items() if counts[name])
    decided = len(run.verdicts) - counts["undecided"]
    judged = counted(len(run.verdicts), "published conclusion is", "published conclusions are")
    console.print(f"{decided} of {judged} decided: {said}. The report has the figures.")


def print_comparison(comparison: Comparison, console: Console) -> None:
    """Print, cell by cell, how the second run differs from the first."""
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
    _print_line(comparison_text(comparison), console)
    for difference in comparison.differences:
        console.print(Text(f"unlike: {difference}", style="yellow"))
    if comparison.only_a or comparison.only_b:
        console.print(f"{len(comparison.only_a)} cells are only in A, {len(comparison.only_b)} are only in B")


def comparison_text(comparison: Comparison) -> str:
    """What became of each format in the second run, in sentences."""
    if not comparison.rows:
        return "The runs have no cell in common, so there is nothing to compare."
    groups: dict[str, list[str]] = defaultdict(list)
    for name, counts in comparison.formats.items():
        decided: list[Outcome] = [outcome for outcome in ("slower", "faster") if counts.get(outcome)]
        count = sum(counts.values())
        if not decided:
            all_unknown = counts.get("unknown", 0) == count
            groups["too few rounds to say" if all_unknown else "no certain change"].append(name)
        for outcome in decided:
            groups[f"{outcome} in B in {counts[outcome]} of {counted(count, 'cell', 'cells')}"].append(name)
    parts = [f"{names_text(map(contender_title, names))}: {said}" for said, names in groups.items()]
    if comparison.drift is not None:
        parts.append(
            f"All formats took {digits(comparison.drift)} times as long in B, which is a sign that the machine changed "
            "rather than the formats"
        )
    return " ".join(f"{part}." for part in parts)


def _compared(row: ComparisonRow) -> tuple[str | Text, ...]:
    reach = f" [{digits(row.low)} to {digits(row.high)}]" if row.low is not None else " [too few rounds]"
    processes = f", {row.processes} processes" if row.processes > 1 else ""
    size = f"{row.count} × [{row.shape}]{processes}"
    return (
        Text(f"{row.operation} {size}, {row.conditions}, {row.cache}"),
        contender_title(row.format),
        f"{seconds_text(row.a_seconds)} (n = {row.a_n})",
        f"{seconds_text(row.b_seconds)} (n = {row.b_n})",
        Text(f"{digits(row.ratio)}{reach}"),
        Text(row.outcome, style=STYLES[row.outcome]),
    )


def print_table(table: Table, console: Console) -> None:
    """Print a table with its note below; an empty table prints nothing."""
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
