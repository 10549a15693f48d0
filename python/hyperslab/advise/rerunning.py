"""Prove advice by running the traced program itself: on today's files, and on copies that are opened in their place.

The preloaded library records the seconds of the program's reads, so that they are compared with what was predicted for
them, and shows which file they came from. Each run has cold files, and must print what the program prints today.
"""

from __future__ import annotations

import hashlib
import os
import shlex
import shutil
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from hyperslab.advise.candidate import Candidate
from hyperslab.advise.demand import RecordedProgram
from hyperslab.advise.results import ArrayAdvice, Option
from hyperslab.advise.verifying import Verification, Verified
from hyperslab.conversion import convert
from hyperslab.conversion.advice import AdviceFile
from hyperslab.errors import HyperslabError
from hyperslab.lab import cache
from hyperslab.lab.room import check_room, full, says_if_full
from hyperslab.lab.rounds import Rounds, StopRule, Tally, trial_count
from hyperslab.preloading import preloading
from hyperslab.progress import Progress
from hyperslab.quantities import nbytes_text, seconds_text
from hyperslab.replacing import FULL
from hyperslab.scratch import remove, scratch_below
from hyperslab.timers import Timers
from hyperslab.trace.changed import stamp_of
from hyperslab.trace.raw_logs import read_logs, say_program

PASSES, FEWER_PASSES = 6, 4  # fewer than four cannot be told apart by a test
LONG_SECONDS, TOO_LONG_SECONDS = 120.0, 900.0  # of all runs together: then there are fewer of them, or none
LEAST_TIMEOUT_SECONDS = 60.0
RUNNING = "running the program on copies"
PROBE_NBYTES = 1 << 16  # what a program prints and what is recorded of it take less, as a rule
COLUMNS = ("hdf5", "hyperslab")
"""Who reads in a run: the program's own library, or our engine under `hyperslab run`."""


class Unproved(Exception):
    """Running the program proves nothing; the message says why."""


def why_not_run(
    advice: ArrayAdvice, options: Sequence[Option], most_nbytes: int, library: str | None, obstacle: Obstacle
) -> str | None:
    """Why the traced program cannot be run on copies of its files; None if it can.

    Parameters
    ----------
    advice : ArrayAdvice
        The advice, with the demands of a trace.
    options : Sequence[Option]
        What is to be measured.
    most_nbytes : int
        Larger files are not copied.
    library : str | None
        The library to preload, if this installation has it.
    obstacle : Obstacle
        Says why nothing can be preloaded into a program; None if it can.

    Returns
    -------
    str | None
        The reason, in words.
    """
    recorded = [demand.recorded for demand in advice.demands]
    if library is None:
        return "only Linux has the library that opens a copy in the place of the file"
    for demand, program in zip(advice.demands, recorded, strict=True):
        reason = _why_not(program, demand.library, demand.cache)
        if reason is None and program is not None:
            reason = obstacle(program.arguments[0], "no copy can be opened in the place of its file")
        if reason is not None:
            return reason
    files = list(dict.fromkeys(Path(file) for file, _ in advice.array.members))
    for file in files:
        if not file.is_file():
            return f"{file} is no file on this machine"
    nbytes = sum(file.stat().st_size for file in files)
    if nbytes > most_nbytes:
        what = "the file has" if len(files) == 1 else f"the {len(files)} files have"
        return f"{what} {nbytes_text(nbytes)}, and --sample is {nbytes_text(most_nbytes)}"
    seconds = sum(program.seconds for program in _programs(advice)) * len(options) * FEWER_PASSES
    if seconds > TOO_LONG_SECONDS:
        return f"running it {FEWER_PASSES} times on {len(options)} files would take {seconds_text(seconds)}"
    return None


Obstacle = Callable[[str, str], str | None]


def _programs(advice: ArrayAdvice) -> list[RecordedProgram]:
    """The programs of all demands, each once: one may read arrays that are alike in several ways."""
    return list(dict.fromkeys(demand.recorded for demand in advice.demands if demand.recorded is not None))


def _why_not(program: RecordedProgram | None, library: str | None, state: str) -> str | None:
    """Why one program cannot be run again, as far as its trace says."""
    if program is None or not program.arguments:
        return "nobody recorded how the program is started"
    if program.directory is None:
        return "the trace does not say in which folder the program ran: record it again"
    if not Path(program.directory).is_dir():
        return f"the folder in which the program ran, {program.directory}, is gone"
    if program.exit_status != 0:
        return f"the program ended with status {program.exit_status} when it was traced"
    if program.writes_file:
        return "the program writes to the file that it reads"
    if library != "hdf5":
        return "the program does not read with libhdf5, whose files can be exchanged"
    return None if state == "cold" else f"it would read a file that is {state}"


def run_again(
    advice: ArrayAdvice,
    options: Sequence[Option],
    directory: Path,
    library: str,
    *,
    progress: Progress = lambda *_: None,
    say: Callable[[str], None] = lambda _: None,
) -> Verification:
    """Run the traced program on today's files and on copies for each option, in random order, each time cold.

    Parameters
    ----------
    advice : ArrayAdvice
        The advice to prove.
    options : Sequence[Option]
        What to measure. What the program would have to be changed for is left out, and says so.
    directory : Path
        The copies are written below it, and removed at the end.
    library : str
        The library to preload.
    progress : Progress
        Called before each run.
    say : Callable[[str], None]
        Called with what could not be measured.

    Returns
    -------
    Verification
        The seconds of the program's reads, beside the predicted ones.

    Raises
    ------
    Unproved
        The program prints something else each time, changes its file, or does not read it.
    UsageError
        The disk is too small for the copies.
    NoSpace
        Another program has filled the disk meanwhile.
    """
    verified = [_verified(advice, option) for option in options]
    written = {one.option.candidate.file_key: one.option for one in verified if _is_copied(one)}
    _check_room(advice, list(written.values()), directory)
    with says_if_full(directory, RUNNING), scratch_below(directory) as scratch:
        session = _Session(advice, scratch, library, say)
        session.learn()
        session.write(verified, written)
        rule = StopRule(*[session.pass_count(len(options))] * 2)
        session.measure(verified, rule, progress)
        session.check_unchanged()
        return Verification(session.words(verified), verified, session.weights)


def _verified(advice: ArrayAdvice, option: Option) -> Verified:
    price, reason = option.price, _why_left_out(advice, option.candidate)
    low, high = (max(end - price.seconds + price.call_seconds, 0.0) for end in (price.low, price.high))
    return Verified(option, price.call_seconds, low, high, reason=reason)  # only the calls are recorded


def _why_left_out(advice: ArrayAdvice, candidate: Candidate) -> str | None:
    """Why the program as it is cannot read a candidate; None if it can."""
    today = advice.today.candidate
    if candidate.format not in ("hdf5", "netcdf4") or candidate.order is not None or candidate.reader not in COLUMNS:
        return "the program as it is cannot read it; --replay measures it"
    if candidate.reader == "hdf5" and candidate.chunk_cache != today.chunk_cache:
        return "the program would have to open the file in another way; --replay measures it"
    return None


def _is_copied(one: Verified) -> bool:
    return one.reason is None and not one.option.candidate.is_today


def _check_room(advice: ArrayAdvice, copies: Sequence[Option], directory: Path) -> None:
    """Raise UsageError if the copies do not fit, before anything is written."""
    files = {Path(file) for file, _ in advice.array.members}
    others = sum(file.stat().st_size for file in files) - advice.today.stored_nbytes
    nbytes = sum(max(others, 0) + option.stored_nbytes for option in copies)
    check_room(RUNNING, nbytes, 0, directory, None,
               "verify fewer layouts, or give another --scratch")  # fmt: skip


@dataclass(frozen=True)
class _Reads:
    """The reads of the arrays in one run of the program."""

    seconds: float
    array_count: int
    files: frozenset[Path]  # of today, or in whose place copies were read


@dataclass
class _Run:
    """What one run of the program printed, and how long it took."""

    output: bytes
    reads: _Reads | None  # None: it read none of the arrays
    seconds: float
    status: int = 0


@dataclass
class _Session:
    """The copies, and the runs of the programs on them."""

    advice: ArrayAdvice
    scratch: Path
    library: str
    say: Callable[[str], None]
    programs: list[RecordedProgram] = field(init=False)
    arrays: dict[Path, set[str]] = field(init=False)  # of each of today's files that the programs read
    copies: dict[Any, dict[Path, Path]] = field(default_factory=dict)  # of today's files, by the candidates' keys
    printed: list[bytes] = field(default_factory=list)  # by each program today
    weights: list[float] = field(default_factory=list)  # how often each program counts
    whole: dict[Any, list[float]] = field(default_factory=dict)  # the seconds of whole runs, by the candidates' keys
    stamps: dict[Path, list[int] | None] = field(default_factory=dict)
    seconds: float = 0.0  # of all programs once, today

    def __post_init__(self) -> None:
        """All files that have the arrays may be read."""
        self.programs, self.arrays = _programs(self.advice), {}
        for file, name in self.advice.array.members:
            self.arrays.setdefault(Path(file).resolve(), set()).add(_plain(name))

    def learn(self) -> None:
        """Run each program twice on today's files: it must print the same. Files that none reads are left out."""
        today = {file: file for file in self.arrays}
        self.stamps |= {file: stamp_of(file) for file in today}
        read: set[Path] = set()
        for place, program in enumerate(self.programs):
            first, second = (self._run(place, today, "hdf5") for _ in range(2))
            if first.status or second.status:
                raise Unproved(f"the program ended with status {first.status or second.status}")
            if first.output != second.output:
                raise Unproved("the program printed something else when it ran again on the same file")
            if first.reads is None:
                raise Unproved("the program did not read the array when it ran again")
            read |= first.reads.files
            asked = sum(demand.weight for demand in self.advice.demands if demand.recorded == program)
            self.weights.append(asked / first.reads.array_count)
            self.printed.append(first.output)
            self.seconds += second.seconds
        self.check_unchanged()
        self.arrays = {file: names for file, names in self.arrays.items() if file in read}

    def check_disk(self) -> None:
        """Raise NoSpace if nothing can be written any more: then a program fails too, and is not to blame."""
        try:
            (self.scratch / "probe").write_bytes(bytes(PROBE_NBYTES))
        except OSError as error:
            if error.errno in FULL:
                raise full(self.scratch.parent, RUNNING) from error
            raise
        finally:
            remove(self.scratch / "probe")

    def pass_count(self, option_count: int) -> int:
        """How often each file is read: less often if the program takes long."""
        return PASSES if self.seconds * option_count * PASSES <= LONG_SECONDS else FEWER_PASSES

    def write(self, verified: Sequence[Verified], written: Mapping[Any, Option]) -> None:
        """Write the copies, as `convert --like` does."""
        for number, (key, option) in enumerate(written.items()):
            copies = {
                file: self.scratch / f"copy-{number}-{place}{file.suffix}" for place, file in enumerate(self.arrays)
            }
            try:
                for file, path in copies.items():
                    self._write(file, path, option)
            except HyperslabError as error:
                for path in copies.values():
                    remove(path)
                for one in verified:
                    if one.option.candidate.file_key == key:
                        one.reason = f"not written: {error}"
                        self.say(f"{one.option.candidate.title}: {one.reason}")
                continue
            self.copies[key] = copies
            self.stamps |= {path: stamp_of(path) for path in copies.values()}

    def _write(self, file: Path, path: Path, option: Option) -> None:
        advised = option.candidate.advised("", self.advice.append_axis)
        like = self.scratch / "advice.json"
        AdviceFile(source=str(file), arrays=dict.fromkeys(self.arrays[file], advised)).save(like)
        convert(file, path, like=like, format=str(option.candidate.format))
        cache.make_durable(path)

    def measure(self, verified: Sequence[Verified], rule: StopRule, progress: Progress) -> None:
        """Run the programs on all files, in random order."""
        places = range(len(self.programs))
        points = [(one, place) for one in verified for place in places if one.reason is None]
        Rounds(rule, 0, progress, trial_count(len(points), rule)).run(
            points,
            self._pass,
            lambda point: Tally(
                point[0].passes.get(point[1], ()), point[0].rejected.get(point[1], 0), point[0].reason is not None
            ),
            name=lambda point: point[0].option.candidate.title,
            is_cold=lambda _: True,
        )

    def _pass(self, point: tuple[Verified, int]) -> None:
        one, place = point
        candidate = one.option.candidate
        copies = {file: file for file in self.arrays} if candidate.is_today else self.copies[candidate.file_key]
        paths = list(copies.values())
        cache.evict(paths, others=False)
        resident = cache.resident_fraction(paths)
        ran = self._run(place, copies, candidate.reader)
        if ran.status or ran.output != self.printed[place]:
            said = f"ended with status {ran.status}" if ran.status else "printed something else"
            one.reason = f"the program {said} with this layout"
        elif ran.reads is None:
            one.reason = "the program did not read the copy that was opened in the place of its file"
        if one.reason is not None or ran.reads is None:
            one.passes.clear()
            self.say(f"{candidate.title}: not measured: {one.reason}")
            return
        reason = cache.why_not("cold", resident, 1, 1)
        if reason is not None:
            one.rejected[place], one.last_rejection = one.rejected.get(place, 0) + 1, reason
            return
        one.passes.setdefault(place, []).append(ran.reads.seconds)
        self.whole.setdefault(candidate.key, []).append(ran.seconds)

    def _run(self, place: int, copies: Mapping[Path, Path], reader: str) -> _Run:
        """Run a program once, with copies in the place of today's files. Whatever happens, nothing of it is left."""
        program = self.programs[place]
        folder = self.scratch / "run"
        shutil.rmtree(folder, ignore_errors=True)
        logs = folder / "logs"
        logs.mkdir(parents=True)
        environment = self._environment(folder, copies, reader)
        timers = Timers()
        with timers("program"):
            status = _started(program, environment, folder)
        seconds = sum(timers.seconds.values())
        if status:
            self.check_disk()
        say_program(logs, {})
        arrays = {(copies[file], name): file for file, names in self.arrays.items() for name in names}
        return _Run(_digest(folder), _reads_of(logs, arrays), seconds, status)

    def _environment(self, folder: Path, copies: Mapping[Path, Path], reader: str) -> dict[str, str]:
        made = os.environ | {"HYPERSLAB_TRACE_FOLDER": str(folder / "logs")}
        if reader == "hyperslab":
            (folder / "counts").mkdir()
            made["HYPERSLAB_RUN_FOLDER"] = str(folder / "counts")
        pairs = [os.fsencode(one) + b"\0" for pair in copies.items() if pair[0] != pair[1] for one in pair]
        if pairs:
            listed = folder / "instead"
            listed.write_bytes(b"".join(pairs))
            made["HYPERSLAB_INSTEAD"] = str(listed)
        return made | preloading(made, self.library)

    def check_unchanged(self) -> None:
        """Raise Unproved if a program has changed a file."""
        for path, stamp in self.stamps.items():
            if stamp_of(path) != stamp:
                what = "the copy of its file" if path.is_relative_to(self.scratch) else "its file"
                raise Unproved(f"the program changed {what} when it ran again")

    def words(self, verified: Sequence[Verified]) -> str:
        """What was measured."""
        named = " and ".join(f"`{shlex.join(program.arguments)}`" for program in self.programs)
        medians = {key: float(np.median(took)) for key, took in self.whole.items()}
        today = medians.get(self.advice.today.candidate.key)
        known = medians.keys() - {self.advice.today.candidate.key}
        others = [one for one in verified if one.option.candidate.key in known]
        best = min(others, key=lambda one: medians[one.option.candidate.key], default=None)
        said = f"the program itself, {named}: the seconds of its reads, with the same output each time"
        if today is None or best is None:
            return said
        took = f"{seconds_text(today)} today, {seconds_text(medians[best.option.candidate.key])}"
        return f"{said}; as a whole it takes {took} with {best.option.candidate.title}"


def _started(program: RecordedProgram, environment: Mapping[str, str], folder: Path) -> int:
    """Run a program to its end: its status. It is killed, with all that it started, if it takes far too long."""
    most = max(LEAST_TIMEOUT_SECONDS, 10 * program.seconds)
    with open(folder / "output", "wb") as output, open(folder / "errors", "wb") as errors:
        try:
            process = subprocess.Popen(
                program.arguments, cwd=program.directory, env=environment, stdin=subprocess.DEVNULL, stdout=output,
                stderr=errors, start_new_session=True,
            )  # fmt: skip
        except OSError as error:
            raise Unproved(f"{program.arguments[0]} cannot be started: {error.strerror}") from error
        try:
            return process.wait(most)
        except subprocess.TimeoutExpired as error:
            raise Unproved(f"the program took more than {most:.0f} s when it ran again") from error
        finally:
            if process.poll() is None:  # Ctrl-C, or it takes too long
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()


def _digest(folder: Path) -> bytes:
    """What the program printed, in short."""
    made = hashlib.sha256()
    for name in ("output", "errors"):
        with open(folder / name, "rb") as file:
            made.update(hashlib.file_digest(file, "sha256").digest())
    return made.digest()


def _plain(name: str) -> str:
    return name.strip("/")


def _reads_of(logs: Path, arrays: Mapping[tuple[Path, str], Path]) -> _Reads | None:
    """The reads of arrays by their files and names; None if there were none, or if not all are known."""
    try:
        table = read_logs(logs)
    except (HyperslabError, OSError) as error:
        raise Unproved(f"the reads of the program were not recorded: {error}") from error
    resolved = {one.file: Path(one.file).resolve() for one in table.arrays}
    found = {
        number: arrays[key]
        for number, one in enumerate(table.arrays)
        if (key := (resolved[one.file], _plain(one.array))) in arrays
    }
    rows = np.isin(table.columns["array"], list(found))
    if not rows.any():
        return None
    read = np.unique(table.columns["array"][rows]).tolist()
    seconds = float(table.columns["duration_ns"][rows].sum()) / 1e9
    return _Reads(seconds, len(read), frozenset(found[number] for number in read))
