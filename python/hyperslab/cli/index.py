"""`hyperslab index` saves where the chunks of files are, so that the files open quickly from then on."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hyperslab.cli.archives import allowed_prefixes, open_archive, storage_options
from hyperslab.cli.arguments import Allowed, Concat, Options
from hyperslab.cli.output import console, line
from hyperslab.cli.progress import live
from hyperslab.errors import HyperslabError, NoSuchFile, UsageError
from hyperslab.needed import need

if TYPE_CHECKING:
    from hyperslab.references import Saved

MOST_NAMES = 20


def index(
    files: Annotated[
        list[str], typer.Argument(help="HDF5, NetCDF, FITS, HDF4 or references files, Zarr folders, URLs, patterns.")
    ],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Target: .json or .parquet (kerchunk's), .hs (our own).")
    ] = None,
    is_embedded: Annotated[bool, typer.Option("--embed", help="Write each index to the end of its HDF5 file.")] = False,
    inline_threshold: Annotated[
        int, typer.Option(help="kerchunk only: store arrays of at most this many bytes as values.")
    ] = 500,
    skip_unsupported: Annotated[
        bool, typer.Option("--skip-unsupported", help="kerchunk only: leave out arrays that it cannot express.")
    ] = False,
    threads: Annotated[int | None, typer.Option(help="Number of files to index at a time.")] = None,
    scheduler: Annotated[
        str | None, typer.Option(help="Index on the workers of the Dask scheduler with this address.")
    ] = None,
    option: Options = None,
    allowed: Allowed = None,
    concat: Concat = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Save where files keep their chunks, so that they open at once. Several files become groups.

    With --concat, they become one archive.

    If you stop it, the same command continues where it was (but starts again with --concat).

    Example: hyperslab index 2019.nc 2020.nc -o ocean.hs
    Example: hyperslab index --embed 2019.nc 2020.nc
    """
    from hyperslab.references import expanded, index

    if is_embedded:
        _embed(files, has_others=bool(output or concat is not None or scheduler or option), as_json=as_json)
        return
    output = _checked(output, scheduler)
    partial = None
    try:
        reached = storage_options(option or [])
        together = concat is not None
        sources = open_archive(files, option or [], concat, allowed) if together else list(expanded(files, reached))
        are_many = concat is None and len(sources) > 1
        partial = output.with_name(f"{output.name}.partial") if are_many else None
        if (
            partial is not None and partial.is_symlink()
        ):  # we chose the name, so we do not follow what somebody put there
            raise UsageError(f"{partial} is a link, but what is found is kept there until the end: remove the link")
        with live(console(stderr=True), "files") as progress:
            references = index(
                sources,
                storage_options=None if concat else storage_options(option or []),
                resume=partial,
                progress=progress,
                threads=threads,
                scheduler=scheduler,
                allowed=allowed_prefixes(allowed),
            )
            saved = references.save(output, inline_threshold=inline_threshold, skip_unsupported=skip_unsupported)
    except FileNotFoundError as error:
        raise NoSuchFile(f"there is no file {error.filename}: check the path or pattern") from error
    except HyperslabError:
        raise
    except OSError as error:
        raise UsageError(f"{error.filename or output}: {error.strerror or error}") from error
    except KeyboardInterrupt:
        if partial is not None and partial.is_dir():
            done = len(list(partial.glob("*.hs")))
            said = f"interrupted with {done} of {len(sources)} files indexed: run the same command again to continue"
            console(stderr=True).print(line(said), soft_wrap=True)
        raise
    if partial is not None:
        shutil.rmtree(partial, ignore_errors=True)
    if as_json:
        typer.echo(json.dumps(vars(saved) | {"left_out": dict(saved.left_out)}, indent=1))
    else:
        _print(saved)


def _embed(files: list[str], *, has_others: bool, as_json: bool) -> None:
    """Write the index of each file to its end. One that fails is named and leaves the others; then the status is 1."""
    from hyperslab.quantities import nbytes_text
    from hyperslab.references.embedding import embed
    from hyperslab.references.index import expanded

    if has_others:
        raise UsageError(
            "--embed writes to the end of each file here: leave out -o, --concat, --scheduler and --option"
        )
    done, failed = [], 0
    for path in expanded(files):
        try:
            one = embed(path)  # type: ignore[arg-type] # no group is among them
        except (HyperslabError, OSError) as error:
            failed += 1
            console(stderr=True).print(line(f"hyperslab: {path} failed: {error}"), soft_wrap=True)
            continue
        done.append(vars(one))
        if not as_json:
            was_there = " was there already" if one.was_there else ""
            console().print(line(f"{one.path}: an index of {nbytes_text(one.nbytes)}{was_there}"), soft_wrap=True)
    if as_json:
        typer.echo(json.dumps(done, indent=1))
    if failed:
        sys.exit(1)


def _checked(output: Path | None, scheduler: str | None) -> Path:
    """The target; refuses what cannot end well, before any file is opened."""
    from hyperslab.references import SUFFIXES

    if output is None:
        raise UsageError("name the target: -o ocean.hs, or --embed to write each index to the end of its file")
    if output.suffix not in SUFFIXES:
        raise UsageError(f"the name {output} does not say which format to write: end it with {', '.join(SUFFIXES)}")
    if not output.absolute().parent.is_dir():
        raise UsageError(f"there is no folder {output.absolute().parent} to write {output.name} to: create it first")
    if output.suffix in (".parquet", ".parq"):
        need("writing references in Parquet", "pyarrow")
    if scheduler is not None:
        need("--scheduler", "distributed")
    return output


def _print(saved: Saved) -> None:
    from hyperslab.archive.views import display
    from hyperslab.quantities import nbytes_text

    out = console()
    each = ((saved.file_count, "file"), (saved.array_count, "array"), (saved.chunk_count, "chunk"))
    counts = ", ".join(display.counted(count, noun, f"{noun}s") for count, noun in each)
    out.print(line(f"{saved.path}: {counts}, {nbytes_text(saved.nbytes)}"), soft_wrap=True)
    for name, reason in list(saved.left_out.items())[:MOST_NAMES]:
        out.print(line(f"left out: {name}: {reason}"), soft_wrap=True)
    if len(saved.left_out) > MOST_NAMES:
        out.print(line(f"left out: {len(saved.left_out) - MOST_NAMES} more"))
