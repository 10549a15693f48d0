"""Arguments and options that several commands have."""

from __future__ import annotations

from typing import Annotated, TypeAlias

import typer

FILE_HELP = "An HDF5, NetCDF, FITS or HDF4 file, a Zarr folder, a URL (https, s3, gs, az), or a quoted pattern."
FileArgument: TypeAlias = Annotated[str, typer.Argument(help=FILE_HELP)]
Concat: TypeAlias = Annotated[
    str | None,
    typer.Option("--concat", help="Concatenate several files along this dimension (its name, or an axis number)."),
]
Options: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--option", help="A storage option for URLs, as key=value (JSON for mappings). Repeatable."),
]
Allowed: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--allowed", help="A folder or URL to which the file may lead (docs/security.md); '' means none. Repeatable."
    ),
]
