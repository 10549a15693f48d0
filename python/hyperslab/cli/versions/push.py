"""`hyperslab versions push` sends versions to another file, which gets only what it lacks."""

from __future__ import annotations

from typing import Annotated

import typer

from hyperslab.cli.arguments import Options
from hyperslab.cli.output import console
from hyperslab.cli.progress import live
from hyperslab.cli.signals import as_signalled
from hyperslab.cli.versions.opening import AsJson, FileArgument, Timeout, refused
from hyperslab.cli.versions.taken_output import print_taken


def push(
    file: FileArgument,
    target: Annotated[
        str,
        typer.Argument(
            help="The file to send them to, or a URL of an object store; it is created if it does not exist."
        ),
    ],
    names: Annotated[
        list[str] | None, typer.Argument(help="Branches, tags and versions (default: all branches and tags).")
    ] = None,
    option: Options = None,
    timeout: Timeout = 1.0,
    as_json: AsJson = False,
) -> None:
    """Send branches and tags to another file, with all versions before them and the chunks that it lacks.

    At a URL (s3, gs, az) the versions become a folder of bundles. If two pushes meet, one comes first, and the other
    continues from there.

    A branch that has versions of its own there stays where it is, and the status is 1: pull and merge first.

    Example: hyperslab versions push survey.h5 /archive/survey.h5 main paper

    Example: hyperslab versions push survey.h5 s3://bucket/survey
    """
    from hyperslab import versions
    from hyperslab.cli.archives import storage_options

    reached = storage_options(option or [])
    with as_signalled(), refused(), live(console(stderr=True), unit="versions") as progress:
        taken = versions.push(file, target, names or (), storage_options=reached, timeout=timeout, progress=progress)
    print_taken(taken, as_json=as_json)
