"""`hyperslab versions tag` lists, makes and deletes tags."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from hyperslab.cli.signals import as_signalled
from hyperslab.cli.versions.opening import VERSION_HELP, AsJson, FileArgument, Timeout, name_of, opened, refused
from hyperslab.cli.versions.ref_output import print_all, print_one
from hyperslab.errors import UsageError
from hyperslab.versions.layout.refs import Tag

COLUMNS = ("tag", "version", "time (UTC)", "author", "message")


def tag(
    file: FileArgument,
    name: Annotated[str | None, typer.Argument(help="A tag. Without it, all tags are listed.")] = None,
    at: Annotated[str | None, typer.Option(help=VERSION_HELP + " (default: the current one)")] = None,
    message: Annotated[str | None, typer.Option("--message", "-m", help="Why you tag it.")] = None,
    author: Annotated[str | None, typer.Option(help="Who you are.")] = None,
    delete: Annotated[bool, typer.Option("--delete", help="Delete the tag. Its version stays.")] = False,
    timeout: Timeout = 1.0,
    as_json: AsJson = False,
) -> None:
    """List the tags of a file, or give a version a name for good.

    Tags never move. `delete` deletes a version that has a tag only with --force.

    Example: hyperslab versions tag survey.h5 paper --at march --message "Figure 3"
    """
    if name is None:
        if (at, message, author, delete) != (None, None, None, False):
            raise UsageError("name the tag")
        with opened(file) as versions:
            known = list(versions.tags.values())
        print_all(file, "tags", known, COLUMNS, _cells, as_json=as_json)
        return
    with as_signalled(), opened(file, "r+", timeout) as versions, refused():
        if delete:
            versions.delete_tag(name)
        else:
            versions.create_tag(name, name_of(versions, at), message=message, author=author)
        found = None if delete else versions.tags[name]
    print_one(file, "tag", name, found, "is", as_json=as_json)


def _cells(one: Tag) -> Sequence[str]:
    return (one.name, one.version or "–", one.time[:19], one.author or "–", one.problem or one.message or "")
