"""The tables of a run as plain data, which the terminal and the page render in their own ways."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, fields

import numpy as np

from hyperslab.bench.rankings import Ranking, headline_metric
from hyperslab.bench.records import BOUNDARIES, METRICS, Summary, Trial
from hyperslab.bench.results import Run
from hyperslab.lab.verdict import Verdict
from hyperslab.quantities import UNKNOWN, digits, interval_text, nbytes_text, seconds_text
from hyperslab.report.answer_words import avoid_text, leads_text
from hyperslab.report.captions import statistic_text
from hyperslab.report.citations import citation
from hyperslab.report.ratios import heading, range_text, ratio_tables
from hyperslab.report.views import case_named
from hyperslab.report.wording import (
    cache_title,
    contender_title,
    dtype_text,
    known,
    metric_title,
    operation_title,
    trials_text,
    without_folders,
)

# If there are more cases than this, only their number is shown.
MOST_LISTED = 4
PLACES = {"leads": "leads", "alike": "as fast", "open": "perhaps as fast", "behind": "slower"}


@dataclass(frozen=True)
class Table:
    """Rows of text; the note explains how to read them."""

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""


def ranking_table(ranking: Ranking) -> Table:
    """One ranking, fastest first."""
    rows = [
        (
            contender_title(entry.format),
            seconds_text(entry.median_seconds),
            interval_text(entry.low_seconds, entry.high_seconds),
            digits(entry.throughput_mbps),
            f"{digits(place.ratio)} ×",
            UNKNOWN if place.low is None else f"{digits(place.low)} to {digits(place.high)}",
            PLACES[place.place],
            str(entry.n),
        )
        for entry, place in zip(ranking.entries, ranking.standings, strict=True)
    ]
    header = ("format", "median", "95 % interval", "decoded MB/s", "time / leader", "95 % interval", "place", "n")
    return Table(ranking_title(ranking), header, tuple(rows), outcome(ranking))


def ranking_title(ranking: Ranking) -> str:
    """The heading of a ranking: what was ranked, and under which conditions."""
    size = f"{ranking.count} × [{ranking.shape.replace('x', ' × ')}]"
    processes = f", {ranking.processes} processes" if ranking.processes > 1 else ""
    return (
        f"{ranking.case}: {operation_title(ranking.operation)}, {size}, {ranking.conditions}, "
        f"{cache_title(ranking.cache)}, {ranking.method} method{processes}"
    )


def outcome(ranking: Ranking) -> str:
    """Who leads, how surely, and what to avoid."""
    return "; ".join(part for part in (leads_text(ranking), avoid_text(ranking)) if part)


def boundaries_table() -> Table:
    """The table that says where every timer starts and stops."""
    rows = tuple((phase, text) for phase, text in BOUNDARIES.items())
    return Table("The timers of the fair method", ("phase", "what its timer includes"), rows)


def metrics_table() -> Table:
    """The table of the sums of phases that are compared."""
    rows = [(name, metric_title(name), " + ".join(phases)) for name, phases in METRICS.items() if len(phases) > 1]
    note = "If an operation lacks a phase, the sum leaves it out."
    return Table("What is compared", ("metric", "in words", "phases"), tuple(rows), note)


def methods_table(run: Run) -> Table:
    """The table of the published methods that were replayed, with their statistic and faults."""
    from hyperslab.report.captions import faults_of

    replayed = {case.replay: case for case in run.description.cases if case.replay}
    rows = [
        (citation(case.family or case.name), statistic_text(case), text)
        for case in replayed.values()
        for text in faults_of(case)
    ]
    wanted = "published" in run.description.methods
    title = "Faults of the published methods, which their figures contain"
    return Table(title, ("study", "statistic", "fault"), tuple(rows if wanted else ()))


def environment_table(run: Run) -> Table:
    """The table of the machine, the libraries and the request; unknown values are shown as unknown."""
    seen, asked = run.description.environment, run.description
    rows = [
        ("run started", asked.started_at),
        ("hyperslab", asked.version),
        ("scale", asked.scale),
        ("methods", ", ".join(asked.methods)),
        ("seed of the order", str(asked.seed)),
    ]
    for field in fields(seen):
        if field.name == "libraries":
            continue
        value = getattr(seen, field.name)
        is_size = field.name.endswith("_nbytes") and value is not None
        name = field.name.removesuffix("_nbytes").replace("_", " ").replace(" kib", " (KiB)")
        rows.append((name, nbytes_text(value) if is_size else without_folders(known(value))))
    rows += [(contender_title(name), library) for name, library in seen.libraries.items()]
    return Table("Machine and libraries", ("", ""), tuple((name, value) for name, value in rows))


def losses_table(run: Run) -> Table:
    """The table of trials without figures: refused, failed or rejected, with the reasons."""
    groups: dict[tuple[str, str, str], list[Trial]] = defaultdict(list)
    for trial in run.trials:
        if trial.status != "ok":
            groups[trial.status, trial.format, trial.reason or "unknown"].append(trial)
    rows = [
        (
            status,
            contender_title(name),
            _listed([t.operation for t in lost]),
            _listed([t.case for t in lost]),
            str(len(lost)),
            without_folders(why),
        )
        for (status, name, why), lost in sorted(groups.items())
    ]
    header = ("status", "format", "operations", "cases", "trials", "reason")
    note = (
        "Refused: the format cannot do it, and this was known before anything ran. Failed: the trial ran, but raised "
        "an error. Rejected: the trial could not prove its cache state, so it does not count."
    )
    return Table("Refused, failed and rejected", header, tuple(rows), note)


def _listed(names: list[str]) -> str:
    distinct = list(dict.fromkeys(names))
    return ", ".join(distinct) if len(distinct) <= MOST_LISTED else f"{len(distinct)} different"


def conversions_table(run: Run) -> Table:
    """The table of formats whose reads differ from what was written, and by how much."""
    groups: dict[tuple[str, str, str, str], list[Trial]] = defaultdict(list)
    for t in run.trials:
        if t.status == "ok" and _is_converted(t):
            groups[t.format, dtype_text(t.dtype), t.returned_dtype or "unknown", _exact(t)].append(t)
    rows = [
        (
            contender_title(name),
            *how,
            _largest(trials),
            _listed([t.case for t in trials]),
            str(len(trials)),
        )
        for (name, *how), trials in sorted(groups.items())
    ]
    header = ("format", "written", "returned", "equal", "largest error", "cases", "trials")
    note = (
        "The timer of a read includes the conversion to native elements. Formats that are not listed returned exactly "
        "what was written."
    )
    return Table("Conversions", header, tuple(rows), note)


def _is_converted(trial: Trial) -> bool:
    if trial.verified is False or trial.max_abs_error:
        return True
    return trial.returned_dtype is not None and not _same_dtype(trial.returned_dtype, trial.dtype)


def _same_dtype(returned: str, written: str) -> bool:
    try:
        return np.dtype(returned) == np.dtype(written)
    except TypeError:
        # NumPy cannot parse the text of a compound dtype.
        return returned == written


def _exact(trial: Trial) -> str:
    return "unknown" if trial.verified is None else known(trial.verified)


def _largest(trials: list[Trial]) -> str:
    errors = [t.max_abs_error for t in trials if t.max_abs_error is not None]
    return f"{max(errors):.2g}" if errors else UNKNOWN


def overhead_table(run: Run) -> Table:
    """The table of the harness's own cost: the times of the null format, which does nothing."""
    groups: dict[tuple[str, str, str], list[Summary]] = defaultdict(list)
    for s in run.summaries:
        if s.format == "null" and s.metric == headline_metric(s.operation):
            groups[s.case, s.operation, s.cache].append(s)
    rows = [
        (case, operation, cache_title(cache), seconds_text(worst.median_seconds), _interval(worst), str(worst.n))
        for (case, operation, cache), group in groups.items()
        for worst in [max(group, key=lambda s: s.median_seconds)]
    ]
    header = ("case", "operation", "cache", "median", "95 % interval", "n")
    note = "The largest value over each case's sizes and conditions; every figure of the run includes this cost."
    return Table("Harness overhead (null)", header, tuple(rows), note)


def _interval(summary: Summary) -> str:
    return interval_text(summary.low_seconds, summary.high_seconds)


def verdict_tables(run: Run) -> list[tuple[Table, list[str]]]:
    """The verdicts on the conclusions of each study: a table, and the verdicts in one word for its filter."""
    studies: dict[str, list[Verdict]] = defaultdict(list)
    for verdict in run.verdicts:
        studies[citation(verdict.study)].append(verdict)
    header = ("conclusion", "published", "by the published method here", "by the fair method here", "verdict")
    return [
        (
            Table(
                study,
                header,
                tuple((v.conclusion, v.published, v.by_published_method, v.by_fair_method, v.sentence) for v in own),
            ),
            [v.verdict for v in own],
        )
        for study, own in studies.items()
    ]


def ratio_sheets(run: Run) -> list[Table]:
    """The ratio tables of the 2002 study, as measured on this machine."""
    sheets = []
    for table in ratio_tables(run):
        rows = [(name, range_text(a), range_text(b), str(len(a))) for name, (a, b) in table.rows.items()]
        shown = [s for s in run.summaries if (s.case, s.method) == (table.case, table.method)]
        case = case_named(run, table.case)
        statistic = statistic_text(case) if table.method == "published" else "median of the trials"
        note = f"Ratio = LIB seconds / HDF5 seconds, {statistic}, from lowest to highest over the sizes; "
        note += f"{trials_text(s.n for s in shown)} trials each. The range is over sizes; it is not an interval."
        header = ("LIB", "HDF5/LIB, total time", f"HDF5/LIB, {table.operation.partition('-')[0]} alone", "sizes")
        sheets.append(Table(heading(table), header, tuple(rows), note))
    return sheets
