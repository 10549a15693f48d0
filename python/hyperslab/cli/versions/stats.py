"""`hyperslab versions stats` shows how many bytes versions hold, and how many of them they share."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING

import typer
from rich.table import Table

from hyperslab.cli.output import console, line
from hyperslab.cli.progress import live
from hyperslab.cli.versions.opening import AsJson, FileArgument, opened

if TYPE_CHECKING:
    from hyperslab.versions.inspect.stats import Stats

TOTALS = ("nbytes", "stored_nbytes", "deduplication_ratio", "unreferenced_nbytes", "uncommitted_nbytes", "other_nbytes")


def stats(file: FileArgument, as_json: AsJson = False) -> None:
    """Count the bytes of each version, those that it shares with its parent, and those that only it uses.

    Example: hyperslab versions stats survey.h5
    """
    with opened(file) as versions, live(console(stderr=True), unit="versions") as progress:
        version_stats = versions.stats(progress)
    if as_json:
        typer.echo(
            json.dumps({**asdict(version_stats), **{name: getattr(version_stats, name) for name in TOTALS}}, indent=1)
        )
    else:
        _print(version_stats)


def _print(version_stats: Stats) -> None:
    from hyperslab.quantities import nbytes_text

    def size(count: int | None) -> str:
        return "?" if count is None else nbytes_text(count)

    out = console()
    table = Table("version", "arrays", "in memory", "chunks", "stored", "shared with parent", "only here", box=None)
    for one in version_stats.versions:
        sizes = [size(one.stored_nbytes), size(one.shared_nbytes), size(one.own_nbytes)]
        cells = [one.name, str(one.array_count), nbytes_text(one.nbytes), str(one.chunk_count), *sizes]
        table.add_row(*(line(cell, overflow="fold") for cell in cells))
    out.print(table)
    ratio = version_stats.deduplication_ratio
    times = "" if ratio is None else f" (without sharing: {ratio:.3g} times as much)"
    parts = [
        f"{nbytes_text(version_stats.file_nbytes)} in the file",
        f"{nbytes_text(version_stats.stored_nbytes)} in chunks of versions{times}",
        f"{nbytes_text(version_stats.unreferenced_nbytes)} in chunks that no version uses",
        f"{nbytes_text(version_stats.uncommitted_nbytes)} left by interrupted commits",
        f"{nbytes_text(version_stats.other_nbytes)} in mappings, tables, text and free space",
    ]
    out.print(line("; ".join(parts)), soft_wrap=True)
    for name, problem in version_stats.problems.items():
        out.print(line(f"{name} was not counted: {problem}"), soft_wrap=True)
