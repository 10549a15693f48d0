"""The speed tables as text: lines for a terminal, and the tables of docs/reading.md and docs/remote.md.

This module uses only the saved results.

    python benchmarks/speed_table.py
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results"
MIB = 1 << 20
PIPELINES = "pipelines-"


def lines(row: dict[str, Any]) -> str:
    """One row for a terminal: a line for each peer and for each absolute target."""
    ours = row.get("seconds", {}).get("hyperslab")
    head = row["work"] if ours is None else f"{row['work']}: {duration(ours)}"
    said = [f"  {head}"]
    wide = "    {:24} {:>10}  {:24} {:12} {}"
    said += [wide.format(*cells).rstrip() for cells in _cells(row)]
    for side, asked in row.get("network", {}).items():
        counts = ", ".join(f"{name} {value:,}" for name, value in asked.items())
        said.append(f"    {side:24} {counts}")
    said += [
        f"    {one['what']} {one['value']:.3g} (≤ {one['target']:.3g}): {one['verdict']}"
        for one in row.get("limits", [])
    ]
    unproved = row.get("cache", {}).get("not_proved")
    if unproved:
        said.append(f"    {unproved}")
    return "\n".join(said)


def markdown(results: dict[str, Any]) -> str:
    """The whole table for the documentation, with its machine and libraries."""
    what = f"{results['megabytes']} MiB of float32 in chunks of 1 MiB, warm, two threads"
    named = results["rows"]
    ours = {key: row for key, row in named.items() if not key.startswith(PIPELINES)}
    beside = [row for key, row in named.items() if key.startswith(PIPELINES)]
    return _made_on(what, results["environment"]) + _table({"rows": ours}) + _pipelines(beside)


def _pipelines(rows: list[dict[str, Any]]) -> str:
    """A line for each row of zarr-python's pipelines, with a column for each peer."""
    if not rows:
        return ""
    names = [found["peer"] for found in rows[0]["comparisons"]]
    ratios = " | ".join(f"hyperslab / {name} [95 %]" for name in names)
    body = f"\n| | hyperslab | {ratios} |\n|---|---|{'---|' * len(names)}\n"
    for row in rows:
        cells = " | ".join(_compared(row, found)[2] for found in row["comparisons"])
        body += f"| {row['work']} | {duration(row['seconds']['hyperslab'])} | {cells} |\n"
    return body


def far_markdown(results: dict[str, Any]) -> str:
    """The table of remote reading, with each side's requests to the server."""
    head = "| work | side | requests | MB | |\n|---|---|---|---|---|\n"
    return _made_on("Warm files, two threads", results["environment"]) + _table(results) + "\n" + head + _asked(results)


def versions_markdown(results: dict[str, Any]) -> str:
    """The table of versioned files."""
    what = f"{results['megabytes']} MiB of float64 where no other is said, warm files, two processors"
    return _made_on(what, results["environment"]) + _table(results)


def _made_on(what: str, environment: dict[str, Any]) -> str:
    libraries = ", ".join(f"{name} {version}" for name, version in environment["libraries"].items())
    machine = f"{environment['cpu']} with {environment['cpu_count']} processors, Python {environment['python']}"
    return f"{what}, {machine}; {libraries}.\n\n"


def _asked(results: dict[str, Any]) -> str:
    body = ""
    for row in results["rows"].values():
        limits = "; ".join(
            f"{one['what']} {one['value']:.3g} (≤ {one['target']:.3g}): {one['verdict']}" for one in row["limits"]
        )
        first = row["work"]
        for side, asked in row["network"].items():
            told = limits if side == "hyperslab" else ""
            body += f"| {first} | {side} | {asked['request_count']:,} | {asked['nbytes'] / 1e6:.1f} | {told} |\n"
            first = ""
    return body


def _table(results: dict[str, Any]) -> str:
    head = (
        "| work | hyperslab | peer | peer's | hyperslab / peer's [95 %] | target | |\n|---|---|---|---|---|---|---|\n"
    )
    body = ""
    for row in results["rows"].values():
        ours = row.get("seconds", {}).get("hyperslab")
        first = [row["work"], "" if ours is None else duration(ours)]
        for cells in _cells(row):
            body += "| " + " | ".join([*first, *cells]) + " |\n"
            first = ["", ""]
        unproved = row.get("cache", {}).get("not_proved")
        if unproved:
            body += f"| | | {unproved} | | | | |\n"
    return head + body


def duration(seconds: float) -> str:
    """Seconds with three digits in a suitable unit."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:#.3g}".rstrip(".") + f" {unit}"
    return f"{seconds * 1e6:.2g} µs"


def _cells(row: dict[str, Any]) -> list[list[str]]:
    """The cells of each comparison and absolute target: peer, its figure, ratio with its interval, target, verdict."""
    made = [_compared(row, found) for found in row["comparisons"]]
    limit = row.get("limit")
    if limit and "nbytes" in limit:
        text = f"{limit['nbytes'] / MIB:.1f} MiB"
        made.insert(0, ["–", "", text, f"≤ {limit['target'] / MIB:.0f} MiB", limit["verdict"]])
    elif limit:
        text = f"{limit['seconds'] * 1e3:.1f} ms{_interval(limit, '.1f', 1e3)}"
        made.insert(0, ["–", "", text, f"≤ {limit['target'] * 1e3:.0f} ms", limit["verdict"]])
    return made


def _compared(row: dict[str, Any], found: dict[str, Any]) -> list[str]:
    target = "" if found["target"] is None else f"≤ {found['target']}"
    if found["status"] != "measured":
        return [found["peer"], "", found["status"], target, ""]
    if "nbytes" in found:
        return [found["peer"], f"{found['nbytes'] / MIB:.1f} MiB", "", target, ""]
    ratio = f"{found['ratio']:.3f}{_interval(found, '.3f')}"
    return [found["peer"], duration(row["seconds"][found["peer"]]), ratio, target, found["verdict"] or ""]


def _interval(found: dict[str, Any], digits: str, unit: float = 1.0) -> str:
    """An interval in brackets, or an empty string if it is unknown."""
    if found["low"] is None:
        return ""
    return f" [{found['low'] * unit:{digits}}, {found['high'] * unit:{digits}}]"


if __name__ == "__main__":
    print(markdown(json.loads((RESULTS / "read_speed.json").read_text())))
    print(far_markdown(json.loads((RESULTS / "remote_speed.json").read_text())))


def references_markdown(results: dict[str, Any]) -> str:
    """The table of references_speed.py."""
    environment = results["environment"]
    libraries = ", ".join(f"{name} {version}" for name, version in results["libraries"].items())
    head = (
        f"{results['chunks']:,} chunks in an order drawn at random; {environment['cpu']} with "
        f"{environment['cpu_count']} processors; {libraries}.\n\n"
        "| references | to the first element | peak memory | hyperslab's .hs / this [95 %] | target | |\n"
        "|---|---|---|---|---|---|\n"
    )
    body = ""
    for name, found in results["sides"].items():
        if found["status"] != "measured":
            body += f"| {name} | | | {found['status']} | | |\n"
            continue
        ratio = f"{found['ratio']:.3f}{_interval(found, '.3f')}" if "ratio" in found else ""
        told = f"{found['seconds']:.3f} s | {found['peak_nbytes'] / (1 << 20):.0f} MiB"
        verdicts = ", ".join(found.get("verdicts", []))
        body += f"| {name} | {told} | {ratio} | {found.get('target', '')} | {verdicts} |\n"
    return head + body
