"""The figures and verdicts of versioned-hdf5's article as a page: file size, creation, versions, reading."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np

from hyperslab.bench.histories.edits import EDIT_PATTERNS
from hyperslab.bench.histories.trials import History
from hyperslab.bench.histories.verdicts import STUDY
from hyperslab.lab.verdict import Verdict
from hyperslab.report.citations import citation

PAGE = "histories.md"
Value = Callable[[History], float | None]
FIGURES: dict[str, tuple[str, Value]] = {
    "sizes": ("size of the file, MB", lambda one: None if one.stored_nbytes is None else one.stored_nbytes / 1e6),
    "creation": ("creation, s", lambda one: one.creation_seconds),
    "read-all": ("all versions read, s", lambda one: one.read_all_seconds),
    "read-latest": ("latest version read, ms", lambda one: float(np.median(one.read_latest_seconds)) * 1e3),
}


def make_page(histories: list[History], verdicts: list[Verdict], output: Path) -> Path:
    """Write the page and its pictures, and return the page's path."""
    done = [history for history in histories if history.status == "ok"]
    plain = [history for history in done if history.compression == "none"]
    claims = [verdict for verdict in verdicts if verdict.study == STUDY]
    parts = [f"# Files with versions: {citation(STUDY)}\n", _verdicts(claims)]
    for name, (title, value_of) in FIGURES.items():
        _drawn(plain, output / f"{name}.png", title, value_of)
        parts.append(f"## {title}\n\n![{title}]({name}.png)\n")
    _versions_drawn(plain, output / "versions.png")
    parts.append("## time of each new version\n\n![time of each version](versions.png)\n")
    parts += ["## all figures\n", _table(histories)]
    page = output / PAGE
    page.write_text("\n".join(parts))
    return page


def _verdicts(verdicts: Iterable[Verdict]) -> str:
    rows = "".join(
        f"| {one.id} | {one.conclusion} | {one.published} | {one.by_fair_method} | **{one.verdict}** |\n"
        for one in verdicts
    )
    return f"| id | claim | published | here | verdict |\n|---|---|---|---|---|\n{rows}"


def _axes(title: str) -> tuple[Any, dict[str, Any]]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(4 * len(EDIT_PATTERNS), 3.4), layout="constrained")
    axes = dict(zip(EDIT_PATTERNS, figure.subplots(1, len(EDIT_PATTERNS)), strict=True))
    for name, one in axes.items():
        one.set_title(name, fontsize=8)
        one.set_xlabel("versions")
        one.grid(alpha=0.3)
    axes[next(iter(EDIT_PATTERNS))].set_ylabel(title)
    return figure, axes


def _drawn(histories: list[History], path: Path, title: str, value_of: Value) -> None:
    """Draw a line for each contender and chunk length over the number of versions."""
    figure, axes = _axes(title)
    lines: dict[tuple[str, str, int], list[tuple[int, float]]] = {}
    for history in histories:
        value = value_of(history)
        if value is not None:
            key = (history.workload, history.format, history.chunk_length)
            lines.setdefault(key, []).append((history.count, value))
    for (workload, contender, length), points in lines.items():
        axes[workload].plot(*zip(*sorted(points), strict=True), "o-", ms=3, label=f"{contender}, {length}")
    for one in axes.values():
        one.legend(fontsize=5)
    figure.savefig(path, dpi=110)


def _versions_drawn(histories: list[History], path: Path) -> None:
    figure, axes = _axes("one version, ms (logarithmic)")
    for workload, one in axes.items():
        own = [history for history in histories if history.workload == workload]
        most = max((history.count for history in own), default=0)
        shown: set[str] = set()
        for history in own:
            if history.count == most and history.format not in shown:
                shown.add(history.format)
                one.semilogy(np.array(history.version_seconds) * 1e3, lw=0.8, label=history.format)
        one.legend(fontsize=5)
    figure.savefig(path, dpi=110)


def _table(histories: Iterable[History]) -> str:
    head = (
        "| workload | contender | versions | chunk | compression | MB | creation s | version ms | latest ms | all s |\n"
    )
    body = ""
    for one in histories:
        first = f"| {one.workload} | {one.format} | {one.count} | {one.chunk_length} | {one.compression} | "
        if one.status != "ok":
            body += f"{first}{one.status} | | | | |\n"
            continue
        every = "" if one.read_all_seconds is None else f"{one.read_all_seconds:.3f}"
        version, latest = np.median(one.version_seconds), np.median(one.read_latest_seconds)
        body += (
            f"{first}{(one.stored_nbytes or 0) / 1e6:.2f} | {one.creation_seconds:.2f} | {version * 1e3:.2f} |"
            f" {latest * 1e3:.2f} | {every} |\n"
        )
    return head + "|---" * 10 + "|\n" + body
