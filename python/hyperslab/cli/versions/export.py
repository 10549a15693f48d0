"""`hyperslab versions export` writes one version to a separate file."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from hyperslab.cli.output import console, line
from hyperslab.cli.progress import live
from hyperslab.cli.versions.opening import VERSION_HELP, AsJson, FileArgument, name_of, opened
from hyperslab.errors import HyperslabError, UsageError


def export(
    file: FileArgument,
    version: Annotated[str, typer.Argument(help=VERSION_HELP)],
    output: Annotated[
        Path,
        typer.Option("--output", "-o", help="Target: .h5, .nc, .zarr (a folder), .json or .parquet (kerchunk's)."),
    ],
    format: Annotated[
        str | None, typer.Option(help="hdf5, netcdf4, zarr2 or zarr3; by default that of the target's suffix.")
    ] = None,
    skip_unsupported: Annotated[
        bool, typer.Option("--skip-unsupported", help="Leave out arrays that the format cannot express.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Write one version to a separate archive: a conversion that copies chunks as they are stored, where it can.

    Example: hyperslab versions export survey.h5 march -o march.zarr
    """
    try:
        with opened(file) as versions, live(console(stderr=True), unit="chunks") as progress:
            name = name_of(versions, version)
            done = versions.export(name, output, format=format, skip_unsupported=skip_unsupported, progress=progress)
    except HyperslabError:
        raise
    except OSError as error:
        raise UsageError(f"{error.filename or output}: {error.strerror or error}") from error
    if as_json:
        typer.echo(json.dumps(asdict(done), indent=1))
        return
    from hyperslab.archive.views.display import counted

    out = console()
    copied = f"{counted(done.chunk_count, 'chunk', 'chunks')} copied as stored"
    arrays = counted(done.array_count, "array", "arrays")
    out.print(line(f"{done.path}: {done.version}, {arrays}, {copied}"), soft_wrap=True)
    for path in done.encoded_again:
        out.print(line(f"encoded again: {path}"), soft_wrap=True)
    for path, reason in done.left_out.items():
        out.print(line(f"left out: {path}: {reason}"), soft_wrap=True)
