"""`hyperslab versions pull` gets versions from another file: only what this one lacks."""

from __future__ import annotations

from typing import Annotated

import typer

from hyperslab.cli.arguments import Options
from hyperslab.cli.output import console
from hyperslab.cli.progress import live
from hyperslab.cli.signals import as_signalled
from hyperslab.cli.versions.opening import AsJson, FileArgument, Timeout, refused
from hyperslab.cli.versions.taken_output import print_taken


def pull(
    file: FileArgument,
    source: Annotated[str, typer.Argument(help="The file to get them from, or a URL to which they were pushed.")],
    names: Annotated[
        list[str] | None, typer.Argument(help="Branches, tags and versions (default: all branches and tags).")
    ] = None,
    option: Options = None,
    timeout: Timeout = 1.0,
    as_json: AsJson = False,
) -> None:
    """Get branches and tags from another file, with all versions before them and the chunks that this one lacks.

    A branch that has versions of its own here stays where it is, and the status is 1: merge the version that is named.

    Example: hyperslab versions pull survey.h5 /archive/survey.h5

    Example: hyperslab versions pull survey.h5 s3://bucket/survey main
    """
    from hyperslab import versions
    from hyperslab.cli.archives import storage_options

    reached = storage_options(option or [])
    with as_signalled(), refused(), live(console(stderr=True), unit="versions") as progress:
        taken = versions.pull(file, source, names or (), storage_options=reached, timeout=timeout, progress=progress)
    print_taken(taken, as_json=as_json)
