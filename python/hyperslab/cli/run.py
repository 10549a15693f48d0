"""`hyperslab run` starts a program whose HDF5 reads our engine serves."""

from __future__ import annotations

import sys

import typer

from hyperslab.running import command


def run(context: typer.Context) -> None:
    """Run a program; our engine serves its HDF5 reads.

    Example: hyperslab run -- python analysis.py
    """
    sys.exit(command.run(context.args))
