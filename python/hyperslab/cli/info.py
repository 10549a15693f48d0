"""`hyperslab info` shows what an archive contains, how it is chunked and stored, and whether that suits the cloud."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hyperslab.cli.arguments import FILE_HELP, Allowed, Concat, Options
from hyperslab.cli.contents import show


def info(
    files: Annotated[
        list[str],
        typer.Argument(metavar="file...", show_default=False, help=f"{FILE_HELP} Several files are shown one by one."),
    ],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    every: Annotated[bool, typer.Option("-v", "--verbose", help="Show every attribute, in full.")] = False,
    advise: Annotated[
        bool,
        typer.Option("--advise", help="Audit the file: how well it suits reading from a server, and what to change."),
    ] = False,
    trace: Annotated[
        Path | None,
        typer.Option(help="Also show how long a traced program's accesses take, and what makes them faster."),
    ] = None,
    store_profile: Annotated[
        Path | None, typer.Option("--profile", help="Store profile (default: the one from `calibrate`).")
    ] = None,
    option: Options = None,
    allowed: Allowed = None,
    concat: Concat = None,
) -> None:
    """Show the content of a file: groups, arrays, chunks, codecs, sizes, and attributes.

    Example: hyperslab info ocean.nc
    """
    show(
        files, as_json=as_json, every=every, advise=advise, options=option, allowed=allowed, concat=concat, trace=trace,
        store_profile=store_profile,
    )  # fmt: skip
