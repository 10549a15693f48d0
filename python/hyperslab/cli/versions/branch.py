"""`hyperslab versions branch` lists, makes, moves and deletes branches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from hyperslab.cli.signals import as_signalled
from hyperslab.cli.versions.opening import VERSION_HELP, AsJson, FileArgument, Timeout, name_of, opened, refused
from hyperslab.cli.versions.ref_output import print_all, print_one
from hyperslab.errors import UsageError
from hyperslab.versions.layout.refs import Branch

COLUMNS = ("branch", "version", "")


def branch(
    file: FileArgument,
    name: Annotated[str | None, typer.Argument(help="A branch. Without it, all branches are listed.")] = None,
    at: Annotated[str | None, typer.Option(help=VERSION_HELP + " (default: the current one)")] = None,
    move: Annotated[bool, typer.Option("--move", help="Move the branch if it exists.")] = False,
    delete: Annotated[bool, typer.Option("--delete", help="Delete the branch. Its versions stay.")] = False,
    timeout: Timeout = 1.0,
    as_json: AsJson = False,
) -> None:
    """List the branches of a file, or make, move or delete one.

    `*` marks the branch that is checked out.

    Example: hyperslab versions branch survey.h5 recalibrated --at march
    """
    if name is None:
        if at is not None or move or delete:
            raise UsageError("name the branch")
        with opened(file) as versions:
            known = list(versions.branches.values())
        print_all(file, "branches", known, COLUMNS, _cells, as_json=as_json)
        return
    with as_signalled(), opened(file, "r+", timeout) as versions, refused():
        if delete:
            versions.delete_branch(name)
        else:
            versions.create_branch(name, name_of(versions, at), move=move)
        found = None if delete else versions.branches[name]
    print_one(file, "branch", name, found, "is at", as_json=as_json)


def _cells(one: Branch) -> Sequence[str]:
    return (f"{one.name} *" if one.is_checked_out else one.name, one.version or "–", one.problem or "")
