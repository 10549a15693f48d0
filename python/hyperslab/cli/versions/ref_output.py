"""How branches and tags are printed."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import TypeVar

import typer
from rich.table import Table

from hyperslab.cli.output import console, line
from hyperslab.versions.layout.refs import Branch, Tag

R = TypeVar("R", Branch, Tag)


def print_one(file: str, kind: str, name: str, found: Branch | Tag | None, verb: str, *, as_json: bool) -> None:
    """Say what became of a branch or a tag; `found` is None if it was deleted."""
    if as_json:
        typer.echo(json.dumps({"file": file, kind: None if found is None else asdict(found)}, indent=1))
        return
    said = f"{kind} {name} deleted" if found is None else f"{kind} {name} {verb} {found.version}"
    console().print(line(f"{file}: {said}"), soft_wrap=True)


def print_all(
    file: str,
    kind: str,
    found: Sequence[R],
    columns: Sequence[str],
    cells: Callable[[R], Sequence[str]],
    *,
    as_json: bool,
) -> None:  # fmt: skip
    """List branches or tags; `cells` gives what a row has in each column."""
    if as_json:
        typer.echo(json.dumps({"file": file, kind: [asdict(one) for one in found]}, indent=1))
        return
    table = Table(*columns, box=None)
    for one in found:
        table.add_row(*(line(cell, overflow="fold") for cell in cells(one)))
    console().print(table)
