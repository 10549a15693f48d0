"""Starts the program, waits for it, and ends as it did. Imports little, so that the program starts at once."""

from __future__ import annotations

import errno
import os
import sys
import time

from hyperslab.preloading import preloading, users_folders

TYPE_CHECKING = False  # `typing` takes longer to import than the rest of this module; type checkers take it for true
if TYPE_CHECKING:
    import signal
    from collections.abc import Mapping
else:
    import _signal as signal  # the same functions; `signal` also imports `enum`, which takes milliseconds

LIBRARY = "libhyperslab_preload.so"
USAGE = """Usage: hyperslab run [OPTIONS] [--] PROGRAM [ARGUMENTS]...

Run a program. Our engine serves its HDF5 reads, and those of the programs that it starts, where it can; libhdf5 does
all others. At the end, one line on stderr says how many.

Example: hyperslab run -- python analysis.py

Options:
  --threads N    The most threads of a read; by default one for each processor that the program may use.
                 (HYPERSLAB_THREADS)
  --memory SIZE  The most memory for decoded chunks, such as 512M or 2G; 256M by default. (HYPERSLAB_MEMORY)
  --no-prefetch  Do not read ahead while the program computes. (HYPERSLAB_PREFETCH=0)
  --no-lock      Let threads call libraries at the same time that were not made for it. (HYPERSLAB_LOCK=0)
  --no-urls      Leave names that are URLs to the libraries. (HYPERSLAB_URLS=0)
  --writes       Encode the compressed chunks that the program writes, by all cores. (HYPERSLAB_WRITES=1)
  --quiet        Print nothing.
  --json         Print JSON.
  -h, --help     Show this text.

The exit status is the program's; if a signal ends the program, the same signal ends this command."""
# Passed on if a process sent them. If a terminal did, the program has them already. SIGTSTP and the like stop both.
PASSED_ON = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2,
             signal.SIGALRM, signal.SIGWINCH)  # fmt: skip
_SENT_BY_A_PROCESS = 0
WRONG_USE, NOT_EXECUTABLE, NOT_FOUND = 2, 126, 127
TEMPORARY = ("/tmp", "/var/tmp", "/usr/tmp", ".")  # where `tempfile` looks behind TMPDIR
MOST_PATH_NBYTES = 4000  # of a folder: the system's 4096 must suffice for the files in it
MOST_NAMED = 60  # letters of a folder


class WrongUse(Exception):
    """Options that make no sense."""


class Options:
    """What the command line asks for."""

    def __init__(self) -> None:
        self.is_quiet = False
        self.is_json = False
        self.is_help = False
        self.settings: dict[str, str] = {}
        self.program: list[str] = []


def parse(arguments: list[str]) -> Options:
    """Separate our options from the program and its arguments."""
    options, rest = Options(), list(arguments)
    names = {"--threads": "HYPERSLAB_THREADS", "--memory": "HYPERSLAB_MEMORY"}
    switches = {
        "--no-prefetch": ("HYPERSLAB_PREFETCH", "0"), "--no-lock": ("HYPERSLAB_LOCK", "0"),
        "--no-urls": ("HYPERSLAB_URLS", "0"), "--writes": ("HYPERSLAB_WRITES", "1"),
    }  # fmt: skip
    while rest and rest[0].startswith("-"):
        name, equals, value = rest.pop(0).partition("=")
        if name == "--" and not equals:
            break
        if name in names:
            if not equals and not rest:
                raise WrongUse(f"{name} needs a value")
            options.settings[names[name]] = value if equals else rest.pop(0)
        elif name in switches and not equals:
            setting, value = switches[name]
            options.settings[setting] = value
        elif name in ("--quiet", "--json", "--help", "-h") and not equals:
            options.is_quiet |= name == "--quiet"
            options.is_json |= name == "--json"
            options.is_help |= name in ("--help", "-h")
        else:
            from hyperslab.meant import meant

            near = meant(name, [*names, *switches, "--quiet", "--json", "--help"])
            raise WrongUse(f"there is no option {name}{near}; options of the program come after its name")
    options.program = rest
    for name in names.values():
        _check(name, options.settings.get(name, os.environ.get(name)))
    if not any(rest[:1]) and not options.is_help:
        raise WrongUse("name the program to run: hyperslab run -- PROGRAM")
    return options


def _check(name: str, value: str | None) -> None:
    """Refuse numbers that the library would ignore."""
    if value is None:
        return
    digits = value.strip().upper().removesuffix("IB") if name == "HYPERSLAB_MEMORY" else value.strip()
    number = digits.rstrip("KMG") if name == "HYPERSLAB_MEMORY" else digits
    is_right = number.isascii() and number.isdigit() and len(digits) - len(number) <= 1
    if not is_right or (name == "HYPERSLAB_THREADS" and int(number) == 0):
        what = "a number of bytes such as 512M" if name == "HYPERSLAB_MEMORY" else "a number of threads"
        raise WrongUse(f"{name}={value!r} is not {what}")


def run(arguments: list[str]) -> int:
    """Run a program as the arguments say, and return its exit status. Does not return if a signal ended the program."""
    try:
        options = parse(arguments)
    except WrongUse as problem:
        _print(f"hyperslab run: {problem} [usage-error]")
        return WRONG_USE
    if options.is_help:
        sys.stdout.write(USAGE + "\n")
        return 0
    notes: list[str] = []
    folder = _folder(notes)
    environment = prepared(os.environ | options.settings, folder, notes)
    try:
        status = _status(options.program, environment)
    except OSError as error:
        _print(f"hyperslab run: {options.program[0]} cannot be started: {error.strerror}")
        return NOT_FOUND if isinstance(error, FileNotFoundError) else NOT_EXECUTABLE
    else:
        if not options.is_quiet:
            _summarize(options, folder, notes, status)
    finally:
        if folder is not None:
            _remove(folder)
    return status if status >= 0 else end_by(-status)


def library() -> str | None:
    """The path of the library to preload; None if this installation has none."""
    path = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), LIBRARY)  # noqa: PTH100, PTH118, PTH120
    return path if os.path.exists(path) else None  # noqa: PTH110


def prepared(environment: Mapping[str, str], folder: str | None, notes: list[str]) -> dict[str, str]:
    """The environment in which the dynamic linker preloads our library."""
    made = dict(environment)
    made.setdefault("HYPERSLAB_PYTHON", sys.executable)  # it looks up the credentials of URLs
    path = library()
    if path is None:
        notes.append(f"{LIBRARY} is not installed (only Linux has it), so all reads were libhdf5's")
        return made
    if folder is not None:
        made["HYPERSLAB_RUN_FOLDER"] = folder
        if any(letter in path for letter in " :"):  # which separate libraries
            link = f"{folder}/{LIBRARY}"
            os.symlink(path, link)  # noqa: PTH211
            path = link
    return made | preloading(made, path)


def _folder(notes: list[str]) -> str | None:
    """A new folder for the counts of the program's processes, which nobody else can enter."""
    own = f"hyperslab-run-{os.getpid()}-{time.monotonic_ns()}"
    problem = ""
    for parent in filter(None, (os.environ.get("TMPDIR"), *TEMPORARY)):  # in Python's own order
        path = os.path.abspath(f"{parent}/{own}")  # noqa: PTH100
        try:
            if len(os.fsencode(path)) > MOST_PATH_NBYTES:
                raise OSError(errno.ENAMETOOLONG, os.strerror(errno.ENAMETOOLONG))
            os.mkdir(path, 0o700)  # noqa: PTH102
        except OSError as error:
            problem = problem or f"{parent[:MOST_NAMED]}: {error.strerror}"
            continue
        return path
    notes.append(f"reads could not be counted ({problem}): set TMPDIR to a folder that can be written")
    return None


def _status(program: list[str], environment: dict[str, str]) -> int:
    """Run the program to its end: its exit status, or minus the signal. Raises OSError if it cannot be started."""
    awaited = {*PASSED_ON, signal.SIGCHLD}
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, awaited)
    # What Python ignores, programs expect to end them.
    expected = [signal.SIGPIPE, signal.SIGXFSZ]
    process = os.posix_spawnp(program[0], program, environment, setsigmask=mask, setsigdef=expected)
    while True:
        ended, status = os.waitpid(process, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        caught = signal.sigwaitinfo(awaited)
        if caught.si_signo != signal.SIGCHLD and caught.si_code <= _SENT_BY_A_PROCESS:
            os.kill(process, caught.si_signo)


def _summarize(options: Options, folder: str | None, notes: list[str], status: int) -> None:
    from hyperslab.running.programs import obstacle
    from hyperslab.running.records import Totals, totals
    from hyperslab.running.summary import as_json, line

    sums = totals(folder) if folder is not None else Totals()
    problem = obstacle(options.program[0])
    notes += [problem] if problem is not None else []
    ended_by = _signal_name(-status) if status < 0 else None
    text = as_json(sums, notes, max(status, 0), ended_by) if options.is_json else line(sums, notes)
    _print(text)


def _signal_name(number: int) -> str:
    from signal import Signals

    try:
        return Signals(number).name
    except ValueError:  # most real-time signals have no name
        return f"SIG{number}"


def _print(text: str) -> None:
    """One line on stderr, if anyone still listens. A terminal must not obey what is in names."""
    from hyperslab.errors import printable

    try:
        sys.stderr.write(printable(text) + "\n")
        sys.stderr.flush()
    except (OSError, ValueError):
        pass


def _remove(folder: str) -> None:
    try:
        for one in reversed(users_folders(folder)):
            for entry in os.listdir(one):  # noqa: PTH208
                os.unlink(f"{one}/{entry}")  # noqa: PTH108
            os.rmdir(one)  # noqa: PTH106
    except OSError:
        pass  # a process that outlived the program still writes there


def end_by(number: int) -> int:
    """End by the signal that ended the program, without a core file of our own."""
    import resource

    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    if number not in (signal.SIGKILL, signal.SIGSTOP):
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {number})
    os.kill(os.getpid(), number)
    return 128 + number
