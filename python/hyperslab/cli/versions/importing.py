"""`hyperslab versions import` makes files the versions of one file, in which equal chunks are stored once."""

from __future__ import annotations

import glob
import json
import os
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from hyperslab.cli.output import console, line
from hyperslab.cli.progress import live
from hyperslab.cli.signals import as_signalled
from hyperslab.cli.versions.opening import AsJson, Timeout, refused
from hyperslab.errors import UsageError


def import_files(
    files: Annotated[list[str], typer.Argument(help="Files, oldest first, or patterns; or a file with versions.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The file with the versions; it may exist.")],
    time: Annotated[
        str, typer.Option(help="The time of each version: mtime, or attribute:NAME of the file's root.")
    ] = "mtime",
    chunks: Annotated[
        list[str] | None,
        typer.Option(help="Chunk shape of new arrays: 100,100; PATH:100,100 for one array. Repeatable."),
    ] = None,
    skip_unsupported: Annotated[
        bool,
        typer.Option("--skip-unsupported", help="Leave out what a version cannot hold, such as arrays without axes."),
    ] = False,
    verify: Annotated[
        bool, typer.Option("--verify/--no-verify", help="Read the new versions again and hash their chunks.")
    ] = True,
    timeout: Timeout = 1.0,
    as_json: AsJson = False,
) -> None:
    """Make each file a version. Chunks that a version has already are neither decoded nor stored again.

    If it is interrupted, run the same command again: it continues after the last version.

    Example: hyperslab versions import "2024-*.h5" -o all.h5 --time mtime
    """
    from hyperslab.versions import import_files as importing

    named = [path for said in files for path in _matching(said)]
    cut = dict(map(_chunks, chunks or ()))
    with as_signalled(), refused(), live(console(stderr=True), unit="files") as progress:
        done = importing(
            named, output, time=time, chunks=cut, skip_unsupported=skip_unsupported, verify=verify, timeout=timeout,
            progress=progress,
        )  # fmt: skip
    if as_json:
        typer.echo(json.dumps({**asdict(done), "saved_nbytes": done.saved_nbytes}, indent=1))
        return
    from hyperslab.archive.views.display import counted
    from hyperslab.quantities import nbytes_text

    out = console()
    present = f", {len(done.present)} were there already" if done.present else ""
    out.print(line(f"{done.path}: {counted(len(done.versions), 'version', 'versions')} made{present}"), soft_wrap=True)
    new = f"{done.new_count:,} of {done.chunk_count:,} chunks stored, {done.same_count + done.found_count:,} found"
    sizes = f"{nbytes_text(done.source_nbytes)} of files → {nbytes_text(done.file_nbytes)}"
    out.print(line(f"{new}; {sizes}"), soft_wrap=True)
    for path, reason in done.left_out.items():
        out.print(line(f"left out: {path}: {reason}"), soft_wrap=True)
    for note in done.notes:
        out.print(line(f"note: {note}"), soft_wrap=True)


def _matching(said: str) -> list[str]:
    """The files that a path or a pattern names."""
    if os.path.exists(said) or not glob.has_magic(said):  # noqa: PTH110
        return [said]
    found = sorted(glob.glob(said))  # noqa: PTH207
    if not found:
        raise UsageError(f"no file matches {said}")
    return found


def _chunks(said: str) -> tuple[str, tuple[int, ...]]:
    path, _, lengths = said.rpartition(":")
    try:
        shape = tuple(int(one) for one in lengths.split(","))
    except ValueError:
        shape = (0,)
    if min(shape) < 1:
        raise UsageError(f"--chunks {said} is no chunk shape: use 100,100, or PATH:100,100")
    return path, shape
