"""`hyperslab versions bundle` writes versions to a file that can be carried, and applied to another file."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from hyperslab.cli.output import console, line
from hyperslab.cli.signals import as_signalled
from hyperslab.cli.versions.opening import AsJson, FileArgument, refused


def bundle(
    file: FileArgument,
    output: Annotated[Path, typer.Option("--output", "-o", help="The bundle.")],
    names: Annotated[
        list[str] | None, typer.Argument(help="Branches, tags and versions (default: all branches and tags).")
    ] = None,
    since: Annotated[
        list[str] | None,
        typer.Option(help="What the other file has: a version, branch or tag, with all before it. Repeatable."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Write versions to a bundle, without the chunks that the other file has: the difference of two versions, as a
    file.

    Example: hyperslab versions bundle survey.h5 main --since march -o april.bundle
    """
    from hyperslab import versions

    with as_signalled(), refused():
        done = versions.bundle(file, output, names or (), since=since or ())
    if as_json:
        typer.echo(json.dumps(asdict(done), indent=1))
        return
    from hyperslab.archive.views.display import counted
    from hyperslab.quantities import nbytes_text

    what = f"{counted(len(done.versions), 'version', 'versions')}, {counted(done.chunk_count, 'chunk', 'chunks')}"
    needs = f"; it needs {', '.join(done.needs)}" if done.needs else ""
    console().print(line(f"{done.path}: {what}, {nbytes_text(done.nbytes)}{needs}"), soft_wrap=True)
