"""`hyperslab versions apply` adds the versions of a bundle to a file."""

from __future__ import annotations

from typing import Annotated

import typer

from hyperslab.cli.arguments import Options
from hyperslab.cli.output import console
from hyperslab.cli.progress import live
from hyperslab.cli.signals import as_signalled
from hyperslab.cli.versions.opening import AsJson, FileArgument, Timeout, refused
from hyperslab.cli.versions.taken_output import print_taken


def apply(
    file: FileArgument,
    bundle: Annotated[str, typer.Argument(help="A bundle, as `hyperslab versions bundle` writes it, or its URL.")],
    option: Options = None,
    timeout: Timeout = 1.0,
    as_json: AsJson = False,
) -> None:
    """Add the versions, branches and tags of a bundle to a file, which is created if it does not exist.

    Every chunk is hashed before it is stored.

    Example: hyperslab versions apply survey.h5 april.bundle
    """
    from hyperslab import versions
    from hyperslab.cli.archives import storage_options

    reached = storage_options(option or [])
    with as_signalled(), refused(), live(console(stderr=True), unit="versions") as progress:
        taken = versions.apply(file, bundle, storage_options=reached, timeout=timeout, progress=progress)
    print_taken(taken, as_json=as_json)
