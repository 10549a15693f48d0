"""`hyperslab versions merge` merges a version into a branch."""

from __future__ import annotations

import json
from typing import Annotated, Literal

import typer

from hyperslab.cli.output import console, line
from hyperslab.cli.signals import as_signalled
from hyperslab.cli.versions.opening import VERSION_HELP, AsJson, FileArgument, Timeout, name_of, opened, refused


def merge(
    file: FileArgument,
    version: Annotated[str, typer.Argument(help=VERSION_HELP)],
    into: Annotated[
        str | None, typer.Option(help="The branch that gets the new version (default: the one checked out).")
    ] = None,
    conflict: Annotated[
        Literal["raise", "ours", "theirs"],
        typer.Option(
            help="Where both changed the same: merge nothing (raise), or take the branch (ours) or the other (theirs)."
        ),
    ] = "raise",
    name: Annotated[str | None, typer.Option(help="The name of the new version.")] = None,
    message: Annotated[str | None, typer.Option("--message", "-m", help="Why you merge.")] = None,
    author: Annotated[str | None, typer.Option(help="Who you are.")] = None,
    timeout: Timeout = 1.0,
    as_json: AsJson = False,
) -> None:
    """Merge a branch, a tag or another version into a branch: a new version with what both changed.

    Example: hyperslab versions merge survey.h5 recalibrated --into main --name june
    """
    with as_signalled(), opened(file, "r+", timeout) as versions, refused():
        other = name_of(versions, version)
        done = versions.merge(other, into, conflict=conflict, name=name, message=message, author=author)
    conflicts = [str(one) for one in done.conflicts]
    if as_json:
        found = {"version": done.version, "merged": done.merged, "base": done.base, "how": done.how}
        typer.echo(json.dumps({"file": file, **found, "conflicts": conflicts}, indent=1))
        return
    how = {
        "merged": f"{done.merged} merged, {done.version} is the new version",
        "moved": f"the branch moved on to {done.version}",
        "nothing": f"nothing to merge: {done.merged} is in {done.version} already",
    }[done.how]
    console().print(line(f"{file}: {how}"), soft_wrap=True)
    for one in conflicts:
        console().print(line(f"settled: {one}"), soft_wrap=True)
