"""`hyperslab trace`: start a program so that its accesses are recorded, and make its trace when it has ended."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hyperslab.errors import HyperslabError, UsageError
from hyperslab.lab.environment import machine_text
from hyperslab.preloading import preloading
from hyperslab.trace.byte_ranges import mapped
from hyperslab.trace.changed import known_files, with_stored_nbytes
from hyperslab.trace.raw_logs import UNWRITTEN, read_logs, say_program
from hyperslab.trace.recording.log import clock
from hyperslab.trace.storing import logs_of, write
from hyperslab.trace.table import AccessTable

PASSED_ON = (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)
NOT_EXECUTABLE, NOT_FOUND = 126, 127
START = Path(__file__).parent / "recording" / "start"


@dataclass
class Traced:
    """What became of a program, and of its trace."""

    status: int
    """The program's exit status; minus the signal that ended it."""
    trace: AccessTable | None = None
    path: Path | None = None
    messages: list[str] = field(default_factory=list)
    is_lost: bool = False
    """Whether accesses could not be recorded, or not be saved under the trace's name."""


def run_traced(program: Sequence[str], path: Path, library: str | None = None, records_bytes: bool = False) -> Traced:
    """Run a program to its end and write its trace. If the trace fails, the program runs all the same.

    Parameters
    ----------
    program : Sequence[str]
        The program and its arguments.
    path : Path
        The trace.
    library : str | None
        The library that records what is done with libhdf5, to be preloaded. Without it, only Python is recorded.
    records_bytes : bool
        Whether reads of files by libc are recorded too, for programs that use no library. The library does that.

    Raises
    ------
    UsageError
        A trace of this name is being recorded, or was cut short.
    """
    folder = logs_of(path)
    done = Traced(0)
    environment = dict(os.environ)
    try:
        folder.mkdir()
        environment |= _recording(environment, folder, library)
        environment |= {"HYPERSLAB_TRACE_POSIX": "1"} if records_bytes else {}
    except FileExistsError as error:
        remedy = f"look at it with `hyperslab trace show {path}`, then remove the folder, or choose another name"
        raise UsageError(f"{folder} has the raw logs of a trace that is not finished: {remedy}") from error
    except OSError as error:
        done.messages.append(f"nothing is recorded: {folder}: {error.strerror}")
        done.is_lost = True
    begun = clock()
    done.status, failure = _run(program, environment)
    facts = {
        "arguments": list(program), "begun_ns": begun, "seconds": (clock() - begun) / 1e9, "exit_status": done.status,
        "machine": machine_text(),
    }  # fmt: skip
    with contextlib.suppress(OSError):  # the folder was removed
        facts["directory"] = str(Path.cwd())
    if failure is not None:
        done.messages.append(failure)
        shutil.rmtree(folder, ignore_errors=True)
    elif folder.is_dir():
        say_program(folder, facts)
        _finish(done, folder, path, facts)
    return done


def _finish(done: Traced, folder: Path, path: Path, facts: dict[str, Any]) -> None:
    try:
        done.trace = mapped(read_logs(folder))
        done.trace.program = {name: value for name, value in facts.items() if name != "begun_ns"}
        done.trace.program["files"] = known_files(done.trace)
        done.trace.arrays = with_stored_nbytes(done.trace.arrays)
        done.trace.notes = [note for note in done.trace.notes if "was killed" not in note or note.startswith("process")]
        write(done.trace, path)
    except (HyperslabError, OSError, MemoryError) as error:
        done.path = folder
        done.messages.append(f"{error}; the raw logs are in {folder}, and `hyperslab trace show` reads them")
        done.is_lost = True
        return
    done.is_lost = any(UNWRITTEN in note for note in done.trace.notes)
    done.path = path
    shutil.rmtree(folder, ignore_errors=True)


def _recording(environment: Mapping[str, str], folder: Path, library: str | None) -> dict[str, str]:
    """The variables that make the system and Python load our recorders before the program."""
    variables = {
        "HYPERSLAB_TRACE_FOLDER": str(folder.absolute()),
        "PYTHONPATH": os.pathsep.join(filter(None, [str(START), environment.get("PYTHONPATH")])),
    }
    if library is not None:
        variables |= preloading(environment, _named_plainly(library, folder))
    return variables


def _named_plainly(library: str, folder: Path) -> str:
    """A path without spaces and colons, which separate libraries."""
    if not any(letter in library for letter in " :"):
        return library
    link = folder.absolute() / Path(library).name
    if any(letter in str(link) for letter in " :"):
        link = Path(tempfile.mkdtemp(prefix="hyperslab-trace-"), link.name)
    link.symlink_to(library)
    return str(link)


def _run(program: Sequence[str], environment: Mapping[str, str]) -> tuple[int, str | None]:
    """Run a program: its status, and why it could not be started."""
    process: subprocess.Popen[bytes] | None = None

    def pass_on(number: int, _: object) -> None:
        if process is not None:
            process.send_signal(number)

    # Ctrl-C and Ctrl-\ reach the program by the terminal; we wait for what it does.
    handlers = {number: signal.signal(number, pass_on) for number in PASSED_ON}
    handlers |= {number: signal.signal(number, lambda *_: None) for number in (signal.SIGINT, signal.SIGQUIT)}
    try:
        process = subprocess.Popen(program, env=environment)
        return process.wait(), None
    except OSError as error:
        status = NOT_FOUND if isinstance(error, FileNotFoundError) else NOT_EXECUTABLE
        return status, f"{program[0]} cannot be started: {error.strerror}"
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
