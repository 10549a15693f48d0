"""A journal records what a calibration or an evaluation has measured, so that you can resume it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hyperslab._core import __version__
from hyperslab.errors import ReadError, UsageError
from hyperslab.lab.environment import Environment
from hyperslab.lab.journal import Journal, load_lines
from hyperslab.model.measuring import CellTimings, key_of


def journal_beside(store_profile: Path) -> Path:
    """The path of the journal that belongs to a store profile."""
    return store_profile.with_name(f"{store_profile.name}.measured.jsonl")


@contextmanager
def calibration_journal(
    path: Path, asked: Mapping[str, Any], environment: Environment, *, resume: bool, what: str = "a calibration"
) -> Iterator[Journal[CellTimings]]:
    """Open the journal of measured cells. `what` is measured: messages say it.

    Its first line records the request and the machine. It is removed if it stays empty.

    Raises
    ------
    UsageError
        The file cannot be written. Without `resume`, it already holds cells. With `resume`, it holds none, or cells of
        another request or machine.
    """
    header = {"version": __version__, "asked": dict(asked), "environment": environment.to_dict()}
    try:
        _check(path, load_lines(path), json.loads(json.dumps(header)), environment, resume, what)
        if not resume:
            path.unlink(missing_ok=True)
        path.parent.mkdir(parents=True, exist_ok=True)
        opened = Journal(path, CellTimings.from_dict, CellTimings.to_dict, lambda timings: key_of(timings.cell), header)
    except UsageError:
        raise
    except (IsADirectoryError, ReadError) as error:
        raise UsageError(f"{path} is not the journal of {what} ({error}): remove it") from error
    except OSError as error:
        raise UsageError(f"{path} cannot be written ({error.strerror}): choose another path with -o") from error
    except (KeyError, TypeError, ValueError) as error:
        raise UsageError(f"{path} is not the journal of {what} ({error!r}): remove it") from error
    try:
        with opened as journal:
            yield journal
    finally:
        if not len(opened):
            path.unlink(missing_ok=True)


def _check(
    path: Path, lines: list[dict[str, Any]], header: dict[str, Any], here: Environment, resume: bool, what: str
) -> None:
    if not resume and len(lines) > 1:
        raise UsageError(
            f"{path} holds {len(lines) - 1} cells of {what} that was interrupted: continue it with --resume, or "
            "remove the file"
        )
    if not resume:
        return
    if not lines:
        raise UsageError(f"{path} does not exist, so there is nothing to continue: leave --resume out")
    before, there = lines[0], Environment(**lines[0]["environment"])
    reasons = there.differences(here)
    reasons += [name for name in ("version", "asked") if before[name] != header[name]]
    reasons += ["versions of libraries"] if there.libraries != here.libraries else []
    if reasons:
        raise UsageError(
            f"{path} belongs to {what} that differs ({'; '.join(reasons)}): remove it, and leave --resume out"
        )
