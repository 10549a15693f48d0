"""`hyperslab index`: where the chunks of files are, saved once, so that opening them again takes no time."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from hyperslab.cli.output import console
from hyperslab.cli.progress import live
from hyperslab.errors import UsageError

if TYPE_CHECKING:
    from hyperslab.references import Saved

MOST_NAMES = 20


def index(
    files: Annotated[list[str], typer.Argument(help="HDF5, NetCDF, FITS or HDF4 files, Zarr folders, references.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="REFS.json, .parquet (kerchunk's) or .hs (our own).")],
    inline_threshold: Annotated[
        int, typer.Option(help="kerchunk: arrays of at most so many bytes are put in as values.")
    ] = 500,
    skip_unsupported: Annotated[
        bool, typer.Option("--skip-unsupported", help="kerchunk: leave out arrays that it cannot express.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
) -> None:
    """Save where the chunks of files are; several files become groups. Stopped, it goes on where it was.

    Example: hyperslab index 2019.nc 2020.nc -o ocean.hs
    """
    from hyperslab.references import SUFFIXES, index

    if output.suffix not in SUFFIXES:
        raise UsageError(f"{output} has none of the endings {', '.join(SUFFIXES)}, which choose the format")
    partial = output.with_name(f"{output.name}.partial") if len(files) > 1 else None
    try:
        with live(console(stderr=True), "files") as progress:
            found = index(files, resume=partial, progress=progress)
            saved = found.save(output, inline_threshold=inline_threshold, skip_unsupported=skip_unsupported)
    except FileNotFoundError as error:
        raise UsageError(f"there is no file {error.filename}") from error
    except OSError as error:
        raise UsageError(f"{error.filename or output}: {error.strerror or error}") from error
    if partial is not None:
        shutil.rmtree(partial, ignore_errors=True)
    if as_json:
        typer.echo(json.dumps(vars(saved) | {"left_out": dict(saved.left_out)}, indent=1))
    else:
        _print(saved)


def _print(saved: Saved) -> None:
    from hyperslab.archive import display

    out = console()
    counts = f"{saved.file_count} files, {saved.array_count} arrays, {saved.chunk_count} chunks"
    out.print(Text(f"{saved.path}: {counts}, {display.nbytes(saved.nbytes)}"), soft_wrap=True)
    for name, reason in list(saved.left_out.items())[:MOST_NAMES]:
        out.print(Text(f"left out: {name}: {reason}"), soft_wrap=True)
    if len(saved.left_out) > MOST_NAMES:
        out.print(Text(f"left out: {len(saved.left_out) - MOST_NAMES} more"))
