"""The command line. Each command is one file; this file lists them."""

from __future__ import annotations

import signal
import sys

import typer

import hyperslab
from hyperslab.cli import (
    bench,
    calibrate,
    compare,
    evaluate,
    formats,
    index,
    info,
    predict,
    read,
    report,
    run,
    studies,
    verify,
    versions,
)
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
app.command("calibrate")(calibrate.calibrate_machine)
app.command("predict")(predict.predict_costs)
app.command("evaluate")(evaluate.evaluate)
app.add_typer(versions.app, name="versions")


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"hyperslab {hyperslab.__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: bool = typer.Option(False, "--version", callback=_version, is_eager=True, help="Print the version."),
) -> None: ...


# Messages for exit statuses: typer makes the first from Ctrl-C, `_end` the second from SIGTERM.
STOPPED = {128 + signal.SIGINT: "interrupted", 128 + signal.SIGTERM: "terminated"}


def _end(number: int, _: object) -> None:
    """Exit as after Ctrl-C, so that temporary files are removed; a second signal does not interrupt that."""
    signal.signal(number, signal.SIG_IGN)
    sys.exit(128 + number)


def _run() -> None:
    """Run the command. h5py's compiled code turns the exception of a signal into a SystemError: raise what it was."""
    try:
        app()
    except SystemError as error:
        if isinstance(error.__cause__, KeyboardInterrupt | SystemExit):
            raise error.__cause__ from None
        raise


def main() -> None:
    """Run the command line. An error prints one line; the exit status is 2 for a wrong request, 1 for a failure."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) == signal.SIG_DFL:  # nohup ignores SIGHUP
            signal.signal(number, _end)
    try:
        _run()
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
