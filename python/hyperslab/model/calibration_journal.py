"""What a calibration has measured so far, beside its store profile: a killed one goes on with it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from hyperslab import __version__
from hyperslab.bench.results import Journal, load_lines
from hyperslab.errors import UsageError
from hyperslab.lab.environment import Environment
from hyperslab.model.cells import Cell
from hyperslab.model.measuring import Measured

Key = tuple[str, str, str, str]


def key_of(cell: Cell) -> Key:
    """What tells cells apart, before and after measuring, which finds the ratio of their codecs."""
    return cell.file_key, cell.workload.model_dump_json(exclude_defaults=True), repr(cell.library), cell.cache


def journal_beside(store_profile: Path) -> Path:
    """Where the journal of a store profile is."""
    return store_profile.with_name(f"{store_profile.name}.measured.jsonl")


class CalibrationJournal:
    """Measured cells, one line each, synced; the first line says what was asked, and where.

    A context: what holds no cell when it ends is removed.

    Raises:
        UsageError: The file cannot be written; without `resume` it holds cells already; with it, it holds none, or
            those of another request or machine.
    """

    def __init__(self, path: Path, asked: Mapping[str, Any], environment: Environment, *, resume: bool) -> None:
        self._path = path
        self._found: dict[Key, Measured] = {}
        header = {"version": __version__, "asked": dict(asked), "environment": environment.to_dict()}
        lines = self._lines()
        if resume:
            self._resume(lines, json.loads(json.dumps(header)), environment)
        elif len(lines) > 1:
            raise UsageError(
                f"{path} holds {len(lines) - 1} cells of an interrupted calibration; "
                "go on with it by --resume, or remove it"
            )
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            if not resume:
                path.unlink(missing_ok=True)
            self._journal = Journal(path)
            if not resume:
                self._journal.append(header)
        except OSError as error:
            raise UsageError(
                f"{path} cannot be written ({error.strerror}); choose another store profile with -o"
            ) from error

    def _lines(self) -> list[dict[str, Any]]:
        try:
            return load_lines(self._path)
        except (OSError, ValueError) as error:
            raise UsageError(f"{self._path} is no journal of a calibration ({error}); remove it") from error

    def _resume(self, lines: list[dict[str, Any]], header: dict[str, Any], here: Environment) -> None:
        if not lines:
            raise UsageError(f"{self._path} is not there: nothing was interrupted; leave --resume out")
        try:
            before, there = lines[0], Environment(**lines[0]["environment"])
            reasons = there.differences(here)
            reasons += [name for name in ("version", "asked") if before[name] != header[name]]
            reasons += ["versions of libraries"] if there.libraries != here.libraries else []
            found = [Measured.from_dict(line) for line in lines[1:]]
        except (KeyError, TypeError, ValueError) as error:
            raise UsageError(f"{self._path} is no journal of a calibration ({error!r}); remove it") from error
        if reasons:
            raise UsageError(
                f"{self._path} was begun otherwise ({'; '.join(reasons)}): remove it, and leave --resume out"
            )
        self._found = {key_of(measured.cell): measured for measured in found}

    @property
    def cell_count(self) -> int:
        """How many cells it holds."""
        return len(self._found)

    def missing(self, cells: Iterable[Cell]) -> list[Cell]:
        """Those that it does not hold."""
        return [cell for cell in cells if key_of(cell) not in self._found]

    def append(self, measured: Measured) -> None:
        """Keep a cell."""
        self._journal.append(measured.to_dict())
        self._found[key_of(measured.cell)] = measured

    def measured(self, cells: Iterable[Cell]) -> list[Measured]:
        """Those of the cells that it holds, in their order."""
        return [found for cell in cells if (found := self._found.get(key_of(cell))) is not None]

    def __enter__(self) -> CalibrationJournal:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._journal.close()
        if not self._found:
            self._path.unlink(missing_ok=True)
