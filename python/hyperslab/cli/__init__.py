"""The command line. Each command is one file; this file lists them."""

from __future__ import annotations

import sys

import typer

import hyperslab
from hyperslab.cli import (
    bench,
    calibrate,
    compare,
    convert,
    evaluate,
    formats,
    index,
    info,
    predict,
    read,
    report,
    run,
    studies,
    trace,
    verify,
    versions,
)
from hyperslab.cli.signals import STOPPED, as_signalled, end_by_signals
from hyperslab.errors import HyperslabError, UsageError

app = typer.Typer(
    help="Predict how fast your array I/O will be, and make it fast.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("bench")(bench.bench)
app.command("studies")(studies.studies)
app.command("formats")(formats.formats)
app.command("compare")(compare.compare_runs)
app.command("report")(report.report)
app.command("info")(info.info)
# A selection may begin with a minus sign: "-1" is the last index, not an option.
app.command("read", context_settings={"ignore_unknown_options": True})(read.read)
# What follows the program's name is the program's.
app.command("run", context_settings={"ignore_unknown_options": True, "allow_extra_args": True,
                                     "allow_interspersed_args": False, "help_option_names": []})(run.run)  # fmt: skip
app.command("verify")(verify.verify)
app.command("index")(index.index)
app.command("convert")(convert.convert)
app.command("calibrate")(calibrate.calibrate_machine)
app.command("predict")(predict.predict_costs)
app.command("evaluate")(evaluate.evaluate)
app.add_typer(trace.app, name="trace")
app.add_typer(versions.app, name="versions")


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
