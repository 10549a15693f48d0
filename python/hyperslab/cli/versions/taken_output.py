"""How what a file took over is printed."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING

import typer

from hyperslab.cli.output import console, line

if TYPE_CHECKING:
    from hyperslab.versions.transfer.ref_moves import Taken

DIVERGED = 1  # the status if a branch or tag stayed where it was


def print_taken(taken: Taken, *, as_json: bool) -> None:
    """Say what a file took over; the command fails if a branch or tag could not move."""
    if as_json:
        typer.echo(json.dumps(asdict(taken), indent=1))
    else:
        from hyperslab.archive.views.display import counted

        out = console()
        versions = counted(len(taken.versions), "new version", "new versions")
        chunks = counted(taken.chunk_count, "new chunk", "new chunks")
        out.print(line(f"{taken.path}: {versions}, {chunks}"), soft_wrap=True)
        for kind, named in (("branch", taken.branches), ("tag", taken.tags)):
            for name, version in named.items():
                out.print(line(f"{kind} {name} is at {version}"), soft_wrap=True)
        for name, reason in taken.diverged.items():
            out.print(line(f"{name} stays where it is: {reason}"), soft_wrap=True)
        if not taken.is_guarded:
            said = "this store cannot compare and swap: let only one push go there at a time"
            console(stderr=True).print(line(said), soft_wrap=True)
    if taken.diverged:
        raise typer.Exit(DIVERGED)
