"""`hyperslab versions repair` writes everything in a damaged file that it can prove good into a new file."""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hyperslab.cli.output import console, line
from hyperslab.cli.versions.opening import AsJson, FileArgument
from hyperslab.errors import HyperslabError, NoSuchFile, RunError, UsageError

if TYPE_CHECKING:
    from hyperslab.versions import Repair

MOST_LINES = 50


def repair(
    file: FileArgument,
    output: Annotated[Path, typer.Option("--output", "-o", help="The new file; the damaged file stays unchanged.")],
    keep_unproved: Annotated[
        bool, typer.Option("--keep-unproved", help="Also keep data that can be read but not proved correct.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Write what can be proved good in a damaged file into a new file. The exit status is 1 if something is lost.

    Example: hyperslab versions repair survey.h5 -o repaired.h5
    """
    from hyperslab.regular_files import open_regular
    from hyperslab.versions import repair

    try:
        if os.path.exists(file):  # noqa: PTH110 -- it may be a URL, which is refused by name
            open_regular(file).close()  # a pipe would let it wait
        repaired = repair(file, output, keep_unproved=keep_unproved)
    except FileNotFoundError as error:
        raise NoSuchFile(f"there is no file {error.filename or file}: check the path") from error
    except HyperslabError:
        raise
    except OSError as error:
        raise UsageError(f"{error.filename or file}: {error.strerror or error}") from error
    if as_json:
        typer.echo(json.dumps({**asdict(repaired), "is_complete": repaired.is_complete}, indent=1, default=str))
    else:
        _print(repaired)
    if not repaired.is_complete:
        items = "item is" if len(repaired.lost) == 1 else "items are"
        raise RunError(f"{file}: {len(repaired.lost)} {items} lost; {output} has the rest")


def _print(repaired: Repair) -> None:
    out = console()
    for said, kept in (("lost", repaired.lost), ("note", repaired.notes)):
        for one in kept[:MOST_LINES]:
            out.print(line(f"{said}: {one}"), soft_wrap=True)
        if len(kept) > MOST_LINES:
            out.print(line(f"{said}: {len(kept) - MOST_LINES} more"))
    mended = (
        f", {repaired.mended_chunk_count} chunks were recovered from elsewhere in the file"
        if repaired.mended_chunk_count
        else ""
    )
    out.print(line(f"{repaired.output}: {len(repaired.versions)} versions{mended}"), soft_wrap=True)
