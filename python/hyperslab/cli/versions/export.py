"""`hyperslab versions export` writes one version to a separate file."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hyperslab.cli.output import console, line
from hyperslab.cli.progress import live
from hyperslab.cli.versions.opening import VERSION_HELP, AsJson, FileArgument, name_of, opened
from hyperslab.errors import HyperslabError, UsageError

if TYPE_CHECKING:
    from hyperslab.conversion.exporting import Exported
    from hyperslab.versions import VersionedFile

SUFFIX_OF = {"hdf5": ".h5", "netcdf4": ".nc", "zarr2": ".zarr", "zarr3": ".zarr"}


def export(
    file: FileArgument,
    version: Annotated[
        str, typer.Argument(help=VERSION_HELP + " Or FIRST..LAST: each on the way from one to the other.")
    ],
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            help="Target: .h5, .nc, .zarr (a folder), .json or .parquet (kerchunk's); for FIRST..LAST a folder.",
        ),
    ],
    format: Annotated[
        str | None, typer.Option(help="hdf5, netcdf4, zarr2 or zarr3 (default: that of the target's suffix).")
    ] = None,
    skip_unsupported: Annotated[
        bool, typer.Option("--skip-unsupported", help="Leave out arrays that the format cannot express.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Write one version to a separate archive: a conversion that copies chunks as they are stored, where it can.

    Several versions, as in march..june, become files in a folder, which are called like them.

    Example: hyperslab versions export survey.h5 march -o march.zarr
    """
    written = []
    try:
        with opened(file) as versions, live(console(stderr=True), unit="chunks") as progress:
            for name, target in _targets(versions, version, output, format):
                options = {"format": format, "skip_unsupported": skip_unsupported, "progress": progress}
                written.append(versions.export(name, target, **options))  # type: ignore[arg-type]
    except HyperslabError:
        raise
    except OSError as error:
        raise UsageError(f"{error.filename or output}: {error.strerror or error}") from error
    if as_json:
        said = [asdict(done) for done in written]
        typer.echo(json.dumps(said if _is_range(version) else said[0], indent=1))
        return
    for done in written:
        _print(done)


def _is_range(version: str) -> bool:
    return ".." in version


def _targets(file: VersionedFile, version: str, output: Path, format: str | None) -> list[tuple[str, Path]]:
    """The versions to export, each with its target."""
    if not _is_range(version) or version in file:
        return [(name_of(file, version), output)]
    first, _, last = version.partition("..")
    start, at = name_of(file, first), name_of(file, last or None)
    names = [at]
    while at != start:
        parent = file.table[at].parent
        if parent is None or parent not in file or parent in names:
            raise UsageError(f"{names[0]!r} does not come from {start!r}: name a version before it")
        names.append(at := parent)
    suffix = SUFFIX_OF.get(format or "hdf5")
    if suffix is None:
        raise UsageError(f"{format!r} is no format: use one of {', '.join(SUFFIX_OF)}")
    if output.exists() and not output.is_dir():
        raise UsageError(f"{output} is a file: name a folder for {len(names)} versions")
    output.mkdir(parents=True, exist_ok=True)
    return [(name, output / f"{name}{suffix}") for name in reversed(names)]


def _print(done: Exported) -> None:
    from hyperslab.archive.views.display import counted

    out = console()
    copied = f"{counted(done.chunk_count, 'chunk', 'chunks')} copied as stored"
    arrays = counted(done.array_count, "array", "arrays")
    out.print(line(f"{done.path}: {done.version}, {arrays}, {copied}"), soft_wrap=True)
    for path in done.encoded_again:
        out.print(line(f"encoded again: {path}"), soft_wrap=True)
    for path, reason in done.left_out.items():
        out.print(line(f"left out: {path}: {reason}"), soft_wrap=True)
