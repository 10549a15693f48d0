"""`hyperslab trace` records what a program reads and writes; `hyperslab trace show` says what that was."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from hyperslab.errors import NoSuchFile, UsageError, printable
from hyperslab.needed import need

if TYPE_CHECKING:
    from hyperslab.report.trace_words import Told
    from hyperslab.trace.trace import Trace

RUN = "run-program"


class _ProgramOrCommand(TyperGroup):
    """What is not a command of ours is the program to run."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:  # noqa: ARG002
        name = args[0] if args else ""
        return (name, self.commands[name], args[1:]) if name in self.commands else (RUN, self.commands[RUN], args)


app: typer.Typer = typer.Typer(
    cls=_ProgramOrCommand,
    help="Record what a program reads and writes: hyperslab trace -o run.trace -- python analysis.py",
    subcommand_metavar="[-- PROGRAM [ARGS]...] | COMMAND [ARGS]...",
)


@app.callback()
def _output(
    context: typer.Context,
    output: Annotated[Path, typer.Option("-o", "--output", help="The trace to write.")] = Path("run.trace"),
    posix: Annotated[
        bool, typer.Option("--posix", help="Also record reads of array files by programs that use no library for them.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print nothing about the trace.")] = False,
) -> None:
    context.obj = (output, posix, quiet)


@app.command(
    RUN,
    hidden=True,
    context_settings={
        "ignore_unknown_options": True, "allow_extra_args": True, "allow_interspersed_args": False,
        "help_option_names": [],
    },
)  # fmt: skip
def run_program(context: typer.Context) -> None:
    """Run a program, and record what it reads and writes."""
    from hyperslab.running.command import end_by, library
    from hyperslab.running.programs import obstacle
    from hyperslab.trace.starting import run_traced

    need("hyperslab trace", "pyarrow")
    output, records_bytes, is_quiet = context.obj
    if not context.args:
        raise UsageError("name the program to run: hyperslab trace -o run.trace -- python analysis.py")
    done = run_traced(context.args, output, library(), records_bytes)
    problem = obstacle(context.args[0], "its accesses are not recorded")
    lines = [] if is_quiet and not done.is_lost else [*done.messages, *([problem] if problem is not None else [])]
    if done.trace is not None and not is_quiet:
        from hyperslab.archive.views.display import counted

        count, arrays = len(done.trace), len({(one.file, one.array) for one in done.trace.arrays})
        words = f"{counted(count, 'access', 'accesses')} to {counted(arrays, 'array', 'arrays')}"
        what = words if count else "no access to an array was seen"
        lines += [f"{done.path}: {what}", *done.trace.notes]
        if count:
            lines.append(f"look at it: hyperslab trace show {done.path}")
    for line in lines:
        typer.echo(printable(f"hyperslab trace: {line}"), err=True)
    if done.status < 0:
        end_by(-done.status)
    sys.exit(done.status or int(done.is_lost))


@app.command("import")
def import_log(
    context: typer.Context,
    log: Annotated[Path, typer.Argument(help="The Darshan log.")],
    output: Annotated[Path | None, typer.Option("-o", "--output", help="The trace to write.")] = None,
) -> None:
    """Make a trace of a Darshan log, for which PyDarshan must be installed.

    Example: hyperslab trace import job.darshan -o run.trace
    """
    from hyperslab.archive.views.display import counted
    from hyperslab.trace.darshan_logs import read_darshan
    from hyperslab.trace.storing import write

    try:
        log_trace = read_darshan(log)
    except FileNotFoundError as error:
        raise NoSuchFile(f"there is no Darshan log {log}") from error
    path = output or context.obj[0]
    write(log_trace, path)
    arrays = counted(len(log_trace.arrays), "array", "arrays")
    for line in [f"{path}: {counted(len(log_trace), 'access', 'accesses')} to {arrays}", *log_trace.notes]:
        typer.echo(printable(f"hyperslab trace: {line}"), err=True)
    typer.echo(printable(f"look at it: hyperslab trace show {path}"), err=True)


@app.command("show")
def show(
    trace: Annotated[Path, typer.Argument(help="The trace to look at.")],
    html: Annotated[
        Path | None, typer.Option(help="Write a page with heat maps and a timeline into this file.")
    ] = None,
    store_profile: Annotated[
        Path | None, typer.Option("--profile", help="Store profile (default: the one from `calibrate`).")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Say what a program did, and what would make it faster.

    Example: hyperslab trace show run.trace --html trace.html
    """
    from hyperslab.advise.counsel import counsels_on
    from hyperslab.advise.traced_demands import open_trace
    from hyperslab.model.store_profile import profile_if_any
    from hyperslab.report.trace_words import headline

    summarized = open_trace(trace)
    told = list(counsels_on(summarized, profile_if_any(store_profile)))
    if html is not None:
        from hyperslab.report.trace_page import write_trace_page

        write_trace_page(html, summarized.trace, told)
    if as_json:
        typer.echo(json.dumps(_document(summarized.trace, told), indent=1))
        return
    _print(headline(summarized.trace, summarized.summaries), summarized.trace.notes, told)


def _document(trace: Trace, told: list[Told]) -> dict[str, Any]:
    from hyperslab.report.trace_words import parts_of, ranked_tips
    from hyperslab.trace.summaries import busy_seconds

    return {
        "program": trace.program, "seconds": trace.seconds, "io_seconds": busy_seconds(trace),
        "accesses": len(trace), "notes": trace.notes,
        "advice": [each.tip_dict(tip) for each, tip in ranked_tips(told)],
        "arrays": [
            {
                **one.to_dict(),
                "predicted_seconds": None if isinstance(each, str) else each.now.known_seconds,
                "predicted_parts": parts_of(each),
                "counsel": None if isinstance(each, str) else each.to_dict(),
            }
            for one, each in told
        ],
    }  # fmt: skip


def _print(said: str, notes: list[str], told: list[Told]) -> None:
    from hyperslab.cli.output import console, line
    from hyperslab.report.trace_words import advice_lines, facts

    out = console()
    lines = advice_lines(told)
    if lines:
        out.print("Without rewriting any data:", soft_wrap=True)
    for place, (text, call) in enumerate(lines, start=1):
        out.print(line(f"{place}. {text}"), soft_wrap=True)
        if call:
            out.print(line(f"   {call}"), soft_wrap=True)
    out.print(line(said), soft_wrap=True)
    for note in notes:
        out.print(line(f"warning: {note}"), soft_wrap=True)
    for one, each in told:
        out.print()
        out.print(line(one.array.title), soft_wrap=True)
        for name, text in facts(one, each):
            out.print(line(f"  {name:<14}{text}"), soft_wrap=True)
