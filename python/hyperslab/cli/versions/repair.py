"""`hyperslab versions repair`: from a damaged file, a new one with all that can be proved good."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hyperslab.cli.output import console, line
from hyperslab.cli.versions.opening import AsJson, FileArgument
from hyperslab.errors import RunError, UsageError

if TYPE_CHECKING:
    from hyperslab.versions import Repair

MOST_LINES = 50


def repair(
    file: FileArgument,
    output: Annotated[Path, typer.Option("--output", "-o", help="The new file; the damaged one is left as it is.")],
    keep_unproved: Annotated[
        bool, typer.Option("--keep-unproved", help="Keep also what can be read, but of which nothing proves it right.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Write what can be proved good of a damaged file into a new one. The exit status is 1 if something is lost.

    Example: hyperslab versions repair survey.h5 -o repaired.h5
    """
    from hyperslab.versions import repair

    try:
        found = repair(file, output, keep_unproved=keep_unproved)
    except FileNotFoundError as error:
        raise UsageError(f"there is no file {error.filename or file}") from error
    except OSError as error:
        raise UsageError(f"{error.filename or file}: {error.strerror or error}") from error
    if as_json:
        typer.echo(json.dumps({**asdict(found), "is_complete": found.is_complete}, indent=1, default=str))
    else:
        _print(found)
    if not found.is_complete:
        raise RunError(f"{file}: {len(found.lost)} things are lost; {output} has the rest")


def _print(found: Repair) -> None:
    out = console()
    for said, kept in (("lost", found.lost), ("note", found.notes)):
        for one in kept[:MOST_LINES]:
            out.print(line(f"{said}: {one}"), soft_wrap=True)
        if len(kept) > MOST_LINES:
            out.print(line(f"{said}: {len(kept) - MOST_LINES} more"))
    mended = f", {found.mended_chunk_count} chunks were found elsewhere" if found.mended_chunk_count else ""
    out.print(line(f"{found.output}: {len(found.versions)} versions{mended}"), soft_wrap=True)
