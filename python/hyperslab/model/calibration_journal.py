"""What a calibration has measured so far, beside its store profile: a killed one goes on with it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hyperslab import __version__
from hyperslab.errors import UsageError
from hyperslab.lab.environment import Environment
from hyperslab.lab.journal import Journal, load_lines
from hyperslab.model.measuring import Measured, key_of


def journal_beside(store_profile: Path) -> Path:
    """Where the journal of a store profile is."""
    return store_profile.with_name(f"{store_profile.name}.measured.jsonl")


@contextmanager
def calibration_journal(
    path: Path, asked: Mapping[str, Any], environment: Environment, *, resume: bool
) -> Iterator[Journal[Measured]]:
    """The journal of measured cells; its first line says what was asked, and where. One without cells is removed.

    Raises
    ------
    UsageError
        The file cannot be written; without `resume` it holds cells already; with it, it holds none, or those of another
        request or machine.
    """
    header = {"version": __version__, "asked": dict(asked), "environment": environment.to_dict()}
    try:
        _check(path, load_lines(path), json.loads(json.dumps(header)), environment, resume)
        if not resume:
            path.unlink(missing_ok=True)
        path.parent.mkdir(parents=True, exist_ok=True)
        opened = Journal(path, Measured.from_dict, Measured.to_dict, lambda measured: key_of(measured.cell), header)
    except UsageError:
        raise
    except IsADirectoryError as error:
        raise UsageError(f"{path} is no journal of a calibration ({error}); remove it") from error
    except OSError as error:
        raise UsageError(
            f"{path} cannot be written ({error.strerror}); choose another store profile with -o"
        ) from error
    except (KeyError, TypeError, ValueError) as error:
        raise UsageError(f"{path} is no journal of a calibration ({error!r}); remove it") from error
    try:
        with opened as journal:
            yield journal
    finally:
        if not len(opened):
            path.unlink(missing_ok=True)


def _check(path: Path, lines: list[dict[str, Any]], header: dict[str, Any], here: Environment, resume: bool) -> None:
    if not resume and len(lines) > 1:
        raise UsageError(
            f"{path} holds {len(lines) - 1} cells of an interrupted calibration; "
            "go on with it by --resume, or remove it"
        )
    if not resume:
        return
    if not lines:
        raise UsageError(f"{path} is not there: nothing was interrupted; leave --resume out")
    before, there = lines[0], Environment(**lines[0]["environment"])
    reasons = there.differences(here)
    reasons += [name for name in ("version", "asked") if before[name] != header[name]]
    reasons += ["versions of libraries"] if there.libraries != here.libraries else []
    if reasons:
        raise UsageError(f"{path} was begun otherwise ({'; '.join(reasons)}): remove it, and leave --resume out")
