"""The command line. Each command is one file; `commands.py` lists them."""

from __future__ import annotations

import io
import os
import sys

import typer

import hyperslab
from hyperslab.cli.commands import Commands
from hyperslab.cli.output import is_full
from hyperslab.cli.signals import STOPPED, as_signalled, end_by_signals
from hyperslab.errors import HyperslabError, UsageError

app = typer.Typer(
    cls=Commands,
    help="Predict how fast your array I/O will be, and make it fast.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"hyperslab {hyperslab.__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: bool = typer.Option(False, "--version", callback=_version, is_eager=True, help="Print the version."),
) -> None: ...


def main() -> None:
    """Run the command line. An error prints one line; the exit status is 2 for a wrong request, 1 for a failure."""
    end_by_signals()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # an ASCII terminal shows "?" for what it does not have
    try:
        with as_signalled():
            app()
    except HyperslabError as error:
        typer.echo(f"hyperslab: {error} [{error.code}]", err=True)
        sys.exit(2 if isinstance(error, UsageError) else 1)
    except KeyboardInterrupt:
        typer.echo("hyperslab: interrupted", err=True)
        sys.exit(130)
    except SystemExit as stopped:
        if stopped.code in STOPPED:
            typer.echo(f"hyperslab: {STOPPED[stopped.code]}", err=True)
        raise
    except BrokenPipeError:
        sys.exit(141)
    except OSError as error:
        if not is_full(error):
            raise
        typer.echo(f"hyperslab: nothing more can be written: {error.strerror}", err=True)
        os._exit(1)  # Python would try to write the rest again
