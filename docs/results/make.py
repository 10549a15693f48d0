"""Write what a run found into docs/results/verdicts.md: what became of published conclusions, and on which machine.

python docs/results/make.py RUN_DIRECTORY           of `hyperslab bench`
                                                    and of `hyperslab bench versioned-histories`
python docs/results/make.py EVALUATION_DIRECTORY    of `hyperslab evaluate`: figures and outcomes go beside the page

The run's section replaces the one of the same publications; the other sections stay as they are.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from hyperslab.bench.histories.trials import JOURNAL, load_histories
from hyperslab.bench.histories.verdicts import judge
from hyperslab.bench.results import Run, load_run
from hyperslab.lab.environment import Environment, observe
from hyperslab.lab.verdict import Verdict

PAGE = Path(__file__).with_name("verdicts.md")
MARK = "\n## "
# What was published, by the number that the IDs of its conclusions begin with; docs/studies.md has the full titles.
PUBLISHED = {
    "0": "Common I/O operations (Ambatipudi, Peng and Byna, 2023)",
    "1": "The cost model (Kang, Rübel, Byna and Blanas, 2020)",
    "2": "Five formats (Pourmal, 2002)",
    "3": "HDF5 in the cloud (Signell, Jelenak and Readey, 2020)",
    "4": "Files with versions (the article on versioned-hdf5)",
}
COST_MODEL = PUBLISHED["1"]
KEPT = ("outcomes.csv", "figures/predicted-measured.svg", "figures/accuracy.svg")
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
        "Another machine can say otherwise. To ask yours, run `hyperslab bench 'common-io-*' 'formats-2002-*'\n"
        "--method both`. `docs/results/make.py` makes this page.\n"
        + "".join(MARK + heading + text for heading, text in sorted(sections.items()))
    )


def sections(text: str) -> dict[str, str]:
    """The sections of a page, by their headings."""
    return {part.splitlines()[0]: part[len(part.splitlines()[0]) :] for part in text.split(MARK)[1:]}


def section(run: Run) -> tuple[str, str]:
    """A run's heading, and its section: how it was measured, then one row for each conclusion."""
    numbers = sorted({verdict.id.partition("-")[0].removeprefix("S") for verdict in run.verdicts})
    statuses = Counter(trial.status for trial in run.trials)
    return "; ".join(PUBLISHED[number] for number in numbers), (
        f"\n\n{_environment(run)}\n"
        f"Scale {run.description.scale}; {statuses['ok']} trials accepted, {statuses['rejected']} rejected because "
        f"their cache state was not proved, {statuses['failed']} failed.\n\n" + _table(run.verdicts)
    )


def cost_model(found: dict[str, Any]) -> str:
    """The section of the cost model, of an `evaluation.json`."""
    serial = found["serial"]
    judged = {"ours": serial, **serial["models"], **serial["baselines"]}
    if serial["measured_again"]:
        judged["half of the passes, by the other half"] = serial["measured_again"]
    without = {f"ours without {name}": each for name, each in serial["ablations"].items()}
    rows = "".join(_accuracy_row(name, each) for name, each in (judged | without).items())
    profile, here = found["profile"], found["environment"]
    libraries = "; ".join(library for _, library in sorted(here["libraries"].items()))
    phases = "; ".join(
        f"{name}: {said['largest_share']:.0%} of a read at most, error {said['median_error']:.1%} in the middle, "
        f"{said['worst_error']:.0%} at worst"
        for name, said in serial["phases"].items()
    )
    left_out = ", ".join(
        f"{error:.3f} with each {what} left out" for what, error in serial["held_out_rmse_log10"].items()
    )
    always = ", ".join(f"{name} wins {share:.0%}" for name, share in serial["always_one_library"].items())
    return (
        "\n\n"
        f"`hyperslab evaluate --{found['scale']}` with a store profile of `hyperslab calibrate --{profile['scale']}`, "
        f"{profile['made_at'][:10]}, {here['cpu']}, {here['cpu_count']} cores; {libraries}. {serial['cells']} cells, "
        f"{found['rejected_passes']} passes rejected. {'. '.join(found['scaled'])}.\n\n"
        "| model | faster library predicted | where intervals do not overlap | RMSE log10 | rank correlation | "
        "regret: median, worst |\n"
        f"|---|---|---|---|---|---|\n{rows}\n"
        f"Of the experiments {always}: who always names one library is right so often, but says nothing of layouts. "
        f"The paper: 97 of 111 (87 %), RMSE 0.29. Within the training, RMSE of log10: {left_out}. "
        f"{serial['extrapolating_cells']} cells lie outside the trained range somewhere. "
        f"Phases: {phases or 'not isolated'}.\n"
        "[Every cell](outcomes.csv).\n\n"
        "![Predicted against measured time](predicted-measured.svg)\n\n![Accuracy of each model](accuracy.svg)\n\n"
        + _table([Verdict(**each) for each in found["verdicts"]])
    )


def _accuracy_row(name: str, found: dict[str, Any]) -> str:
    def share(key: str, count: str) -> str:
        return "" if found[key] is None else f"{round(found[key] * found[count])}/{found[count]} ({found[key]:.0%})"

    def plain(key: str, form: str) -> str:
        return "" if found[key] is None else format(found[key], form)

    cells = (
        name,
        share("fastest_accuracy", "experiments"),
        share("fastest_accuracy_decided", "decided_experiments"),
        plain("rmse_log10", ".3f"),
        plain("rank_correlation", ".3f"),
        f"{plain('regret_median', '.1%')}, {plain('regret_worst', '.0%')}",
    )
    return "| " + " | ".join(cells) + " |\n"


def _table(verdicts: list[Verdict]) -> str:
    return (
        "| id | conclusion | published | by the published method | by the fair method | verdict |\n"
        "|---|---|---|---|---|---|\n" + "".join(map(_row, verdicts))
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


def history_section(directory: Path) -> tuple[str, str]:
    """The heading and section of a run of histories."""
    histories = load_histories(directory)
    times = datetime.fromtimestamp((directory / JOURNAL).stat().st_mtime, UTC)
    here = observe(directory, [])
    libraries = {name: version(name) for name in ("h5py", "versioned-hdf5", "icechunk")}
    most = max((history.count for history in histories), default=0)
    return PUBLISHED["4"], (
        f"\n\n{_machine(replace(here, libraries=libraries), str(times))}\n"
        f"{len(histories)} files, of up to {most} versions each; only hyperslab syncs every version. versioned-hdf5's\n"
        "figure is judged, ours stands beside it.\n\n" + _table(judge(histories))
    )


def _environment(run: Run) -> str:
    return _machine(run.description.environment, run.description.started_at)


def _machine(here: Environment, when: str) -> str:
    memory = f"{here.memory_nbytes / 1e9:.0f} GB of memory" if here.memory_nbytes else "memory unknown"
    device = f"read-ahead {here.read_ahead_kib} KiB" if here.read_ahead_kib is not None else "read-ahead unknown"
    libraries = "; ".join(f"{name}: {library}" for name, library in sorted(here.libraries.items()))
    return (
        f"Machine: {here.cpu or 'CPU unknown'}, {here.cpu_count} cores, {memory}, {here.file_system} with {device}, "
        f"Linux {here.kernel}, Python {here.python}, {when[:10]}. A virtual machine: cold means "
        f"cold to the guest. Libraries: {libraries}.\n"
    )


def write(directory: Path) -> None:
    """Renew the section that a directory's results are about."""
    evaluation = directory / "evaluation.json"
    if evaluation.exists():
        heading, made = COST_MODEL, cost_model(json.loads(evaluation.read_text()))
        for name in KEPT:
            shutil.copyfile(directory / name, PAGE.parent / Path(name).name)
    elif (directory / JOURNAL).exists():
        heading, made = history_section(directory)
    else:
        heading, made = section(load_run(directory))
    PAGE.write_text(page(sections(PAGE.read_text()) | {heading: made}))


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    write(Path(sys.argv[1]))
    print(PAGE)
