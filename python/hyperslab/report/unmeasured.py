"""What a run did not measure, and why: trials were rejected, failed or never begun, or the machine was overloaded."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from hyperslab.archive.views.display import counted
from hyperslab.bench.histories.trials import planned
from hyperslab.bench.rankings import UNRANKED
from hyperslab.bench.records import WARM_UP, Cell, Trial
from hyperslab.bench.results import Run
from hyperslab.bench.runner import expand
from hyperslab.lab.paired import LEAST_ROUNDS
from hyperslab.quantities import digits, names_text
from hyperslab.report.answer_words import answering, answering_method
from hyperslab.report.wording import cache_title, contender_title, operation_title, without_folders

MOST_NAMED = 4
# A processor is overloaded if this many programs besides the measured one want it: trials then wait for them.
OVERLOADED = 0.75

Known = Mapping[str, Sequence[Trial]]


def unmeasured_lines(run: Run) -> list[str]:
    """What is missing from a run and why, in sentences; none if nothing is missing and the machine was quiet."""
    known: dict[str, list[Trial]] = defaultdict(list)
    for trial in run.trials:
        known[trial.cell_key].append(trial)
    groups = expand(run.description.cases, run.description.methods)
    cells = [cell for group in groups for cell in group.cells if cell.format not in UNRANKED]
    cells = [cell for cell in cells if all(trial.status != "refused" for trial in known[cell.key])]
    reasons = [_begun(cells, known), _rejected(cells, known), _nowhere(cells, known), _incomplete(run, cells)]
    return [*filter(None, reasons), *_histories(run), *_overloaded(run)]


def _accepted(cell: Cell, known: Known) -> int:
    return sum(trial.status == "ok" and trial.trial > WARM_UP for trial in known[cell.key])


def _begun(cells: Sequence[Cell], known: Known) -> str:
    """What the run had no time for: cells without any timed trial, and some with so few that nothing is certain."""
    idle = [cell for cell in cells if all(trial.status == "ok" and trial.trial == WARM_UP for trial in known[cell.key])]
    if not idle:
        return ""
    few = sum(0 < _accepted(cell, known) < LEAST_ROUNDS for cell in cells)
    said = (
        f"Not measured: {len(idle)} of {counted(len(cells), 'cell', 'cells')}, because the run ended before their turn"
    )
    also = f"; {few} more have fewer than {LEAST_ROUNDS} trials" if few else ""
    return f"{said} ({_listed(contender_title(cell.format) for cell in idle)}){also}."


def _rejected(cells: Sequence[Cell], known: Known) -> str:
    """The cells whose trials were all rejected or failed, with the reason that is most frequent."""
    lost = [cell for cell in cells if not _accepted(cell, known)]
    reasons = Counter(
        f"{trial.status}: {without_folders(trial.reason or 'unknown')}"
        for cell in lost
        for trial in known[cell.key]
        if trial.status != "ok"
    )
    count = sum(any(trial.status != "ok" for trial in known[cell.key]) for cell in lost)
    if not count:
        return ""
    (reason, _), *others = reasons.most_common()
    more = f"; and {counted(len(others), 'other reason', 'other reasons')}" if others else ""
    return f"Without an accepted trial: {count} of {counted(len(cells), 'cell', 'cells')} ({reason}{more})."


def _nowhere(cells: Sequence[Cell], known: Known) -> str:
    """The operations that no format has an accepted trial of, so that no answer counts them."""
    by_operation: dict[str, int] = defaultdict(int)
    for cell in cells:
        name = f"{operation_title(cell.operation.label)}, {cell.conditions}, {cache_title(cell.cache)}"
        by_operation[name] += _accepted(cell, known)
    empty = [name for name, accepted in by_operation.items() if not accepted]
    if not empty or len(empty) == len(by_operation):
        return ""  # if it is all of them, there is no answer
    shown = "; ".join(empty[:MOST_NAMED]) + (f"; and {len(empty) - MOST_NAMED} more" if len(empty) > MOST_NAMED else "")
    return f"No answer counts these, because no format was measured: {shown}."


def _incomplete(run: Run, cells: Iterable[Cell]) -> str:
    """The cases without a recommendation, although something of them was measured."""
    answered = {each.case for each in answering(run)}
    method = answering_method(run)
    begun = dict.fromkeys(r.case for r in run.rankings if r.method == method)
    missing = [name for name in begun if name not in answered and sum(cell.case == name for cell in cells) > 1]
    if not missing:
        return ""
    return f"No recommendation for {names_text(missing)}: no format has accepted trials of every operation."


def _histories(run: Run) -> list[str]:
    """How many histories of the run were made."""
    asked = {one.key for case in run.description.histories for group in planned(case) for one in group}
    made = {one.key for one in run.histories if one.status == "ok"}
    left = len(asked - made)
    if not left:
        return []
    why = Counter(one.status for one in run.histories if one.status != "ok").most_common(1)
    reason = f"most often because: {without_folders(why[0][0])}" if why else "because the run ended before their turn"
    return [f"Not measured: {left} of {counted(len(asked), 'history', 'histories')}, {reason}."]


def _overloaded(run: Run) -> list[str]:
    """Whether other programs kept the processors busy, by the load before the trials."""
    loads = [trial.load - trial.processes for trial in run.trials if trial.load is not None]
    cores = run.description.environment.cpu_count
    others = float(np.median(loads)) if loads else 0.0
    if others < OVERLOADED * cores:
        return []
    processors = counted(cores, "processor", "processors")
    return [
        f"The machine was overloaded: besides the trials, {digits(others)} other programs wanted {processors} "
        "(median). Times are longer and scatter more than on a quiet machine, so fewer comparisons are certain."
    ]


def _listed(names: Iterable[str]) -> str:
    distinct = list(dict.fromkeys(names))
    left = len(distinct) - MOST_NAMED
    return names_text(distinct if left <= 1 else [*distinct[:MOST_NAMED], f"{left} other formats"])
