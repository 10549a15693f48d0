"""Write what a run found into docs/results/verdicts.md: what became of published conclusions, and on which machine.

python docs/results/make.py RUN_DIRECTORY

The run's section replaces the one of the same documents; the other sections stay as they are.
"""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

from hyperslab.bench.records import Verdict
from hyperslab.bench.results import Run, load_run

PAGE = Path(__file__).with_name("verdicts.md")
MARK = "\n## "
WORDS = ("holds", "reverses", "undecided")


def page(sections: dict[str, str]) -> str:
    """The page of all sections, by their headings."""
    counts = {word: sum(text.count(f"**{word}** |") for text in sections.values()) for word in WORDS}
    tally = ", ".join(f"{count} {word}" for word, count in counts.items())
    return (
        "# What became of the published conclusions\n\n"
        f"{sum(counts.values())} conclusions, judged by their own method and by the fair one: {tally}.\n"
        "The verdict is the fair side's: it holds where every decided group of measurements supports the conclusion,\n"
        "reverses where every one contradicts it, and is undecided where intervals overlap or groups disagree.\n"
        "Another machine can say otherwise; `hyperslab bench 'seed0-*' 'seed2-*' --method both` asks yours. Made by\n"
        "`docs/results/make.py`.\n" + "".join(MARK + heading + text for heading, text in sorted(sections.items()))
    )


def sections(text: str) -> dict[str, str]:
    """The sections of a page, by their headings."""
    return {part.splitlines()[0]: part[len(part.splitlines()[0]) :] for part in text.split(MARK)[1:]}


def section(run: Run) -> tuple[str, str]:
    """A run's heading, and its section: how it was measured, then one row for each conclusion."""
    documents = sorted({verdict.id.partition("-")[0].removeprefix("S") for verdict in run.verdicts})
    statuses = Counter(trial.status for trial in run.trials)
    return f"Documents {' and '.join(documents)}" if len(documents) > 1 else f"Document {documents[0]}", (
        f"\n\n{_environment(run)}\n"
        f"Scale {run.description.scale}; {statuses['ok']} trials accepted, {statuses['rejected']} rejected because "
        f"their cache state was not proved, {statuses['failed']} failed.\n\n"
        "| id | conclusion | published | by the published method | by the fair method | verdict |\n"
        "|---|---|---|---|---|---|\n" + "".join(map(_row, run.verdicts))
    )


def _row(verdict: Verdict) -> str:
    cells = (
        verdict.id,
        verdict.conclusion,
        verdict.published,
        verdict.by_published_method,
        verdict.by_fair_method,
        f"**{verdict.verdict}**",
    )
    return "| " + " | ".join(cell.replace("|", "/") for cell in cells) + " |\n"


def _environment(run: Run) -> str:
    here = run.description.environment
    memory = f"{here.memory_nbytes / 1e9:.0f} GB of memory" if here.memory_nbytes else "memory unknown"
    device = f"read-ahead {here.read_ahead_kib} KiB" if here.read_ahead_kib is not None else "read-ahead unknown"
    libraries = "; ".join(f"{name}: {library}" for name, library in sorted(here.libraries.items()))
    return (
        f"Machine: {here.cpu or 'CPU unknown'}, {here.cpu_count} cores, {memory}, {here.file_system} with {device}, "
        f"Linux {here.kernel}, Python {here.python}, {run.description.started_at[:10]}. A virtual machine: cold means "
        f"cold to the guest. Libraries: {libraries}.\n"
    )


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    heading, made = section(load_run(Path(sys.argv[1])))
    PAGE.write_text(page(sections(PAGE.read_text()) | {heading: made}))
    print(PAGE)
