"""`--verify`: the traced program itself runs on copies of its file if that is possible; else its calls are replayed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from hyperslab.advise.rerunning import Obstacle, Unproved, run_again, why_not_run
from hyperslab.advise.results import ArrayAdvice
from hyperslab.advise.verifying import MOST_NBYTES, Verification, measured_options, verify
from hyperslab.model.store_profile import StoreProfile
from hyperslab.progress import Progress

ASKED = "--replay asks for it"


def prove(
    advice: ArrayAdvice,
    profile: StoreProfile,
    count: int,
    directory: Path,
    *,
    library: str | None = None,
    obstacle: Obstacle = lambda *_: None,
    replays: bool = False,
    most_nbytes: int = MOST_NBYTES,
    storage_options: Mapping[str, Any] | None = None,
    progress: Progress = lambda *_: None,
    say: Callable[[str], None] = lambda _: None,
) -> Verification:
    """Measure the best options and today's layout, and say in `words` whether the program ran or was replayed.

    Parameters
    ----------
    advice : ArrayAdvice
        The advice to prove.
    profile : StoreProfile
        By which replayed calls are predicted.
    count : int
        How many of the best options to measure.
    directory : Path
        Files are written below it, and removed at the end.
    library : str | None
        The library to preload into the program, if this installation has it.
    obstacle : Obstacle
        Says why nothing can be preloaded into a program; None if it can.
    replays : bool
        Whether to replay the calls even if the program could run.
    most_nbytes : int
        A larger file is not copied, and of a larger array, a part is replayed.
    storage_options : Mapping[str, Any] | None
        How to reach the file, as in `open`.
    progress : Progress
        Called before each run or pass.
    say : Callable[[str], None]
        Called with what could not be measured.

    Returns
    -------
    Verification
        Measured and predicted seconds.

    Raises
    ------
    UsageError
        The disk or the memory is too small.
    """
    options = measured_options(advice, count)
    why = ASKED if replays else why_not_run(advice, options, most_nbytes, library, obstacle)
    if why is None and library is not None:
        try:
            return run_again(advice, options, directory, library, progress=progress, say=say)
        except Unproved as error:
            why = str(error)
    measured = verify(advice, profile, count, directory, most_nbytes=most_nbytes, storage_options=storage_options,
                      progress=progress, say=say)  # fmt: skip
    is_traced = any(demand.summary is not None for demand in advice.demands)
    because = f" (not on the program itself: {why})" if is_traced else ""
    return replace(measured, words=f"a replay of the calls{because}: {measured.words}")
