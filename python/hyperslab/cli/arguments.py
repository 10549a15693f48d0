"""Arguments and options that several commands have."""

from __future__ import annotations

import re
from typing import Annotated, TypeAlias

import typer

from hyperslab.errors import UsageError

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

UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "ki": 2**10, "mi": 2**20, "gi": 2**30}


def stripe_of(text: str) -> tuple[int, int | None]:
    """The bytes and the count of a stripe such as `1MiB:4`.

    Raises
    ------
    UsageError
        The text is not a stripe.
    """
    match = re.fullmatch(r"(\d+)\s*(|[kmg]i?)b?(?::(\d+))?", text.strip().lower())
    size = int(match[1]) * UNITS[match[2]] if match else 0
    if not match or size < 1 or match[3] == "0":
        raise UsageError(f"--stripe {text} is not a stripe: write SIZE:COUNT, such as 1MiB:4, or SIZE alone")
    return size, None if match[3] is None else int(match[3])
