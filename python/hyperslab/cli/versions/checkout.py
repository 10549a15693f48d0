"""`hyperslab versions checkout` makes the head of a branch the current version."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from hyperslab.cli.output import console, line
from hyperslab.cli.signals import as_signalled
from hyperslab.cli.versions.opening import AsJson, FileArgument, Timeout, opened, refused


def checkout(
    file: FileArgument,
    branch: Annotated[str, typer.Argument(help="A branch.")],
    timeout: Timeout = 1.0,
    as_json: AsJson = False,
) -> None:
    """Check out a branch: its head becomes the current version, for versioned-hdf5 too, and new versions go on it.

    Example: hyperslab versions checkout survey.h5 main
    """
    with as_signalled(), opened(file, "r+", timeout) as versions, refused():
        current = versions.checkout(branch)
    if as_json:
        typer.echo(json.dumps({"file": file, "checked_out": branch, "current": current}, indent=1))
        return
    console().print(line(f"{file}: branch {branch} is checked out, {current} is current"), soft_wrap=True)
