"""Calibrate: measure the training's cells on this machine, and fit the coefficients to them."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterable, Sequence
from contextlib import ExitStack, closing
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

from hyperslab import __version__
from hyperslab.errors import MissingLibrary, TooFewCells, UsageError
from hyperslab.formats import availability
from hyperslab.lab.environment import Environment, observe, throttle_of
from hyperslab.lab.rounds import Progress
from hyperslab.model.calibration_journal import calibration_journal
from hyperslab.model.costs import Coefficients
from hyperslab.model.counting import count_operations
from hyperslab.model.fit import Observation, fit
from hyperslab.model.libraries import Caches
from hyperslab.model.measuring import CellTimings, disk_nbytes, key_of, measure
from hyperslab.model.store_profile import StoreProfile
from hyperslab.model.terms import EXTENDED
from hyperslab.model.training import LIBRARIES, SIZES, Scale, TrainingSize, design, nbytes, smaller

# The bench's format by which each library is measured.
FORMATS = {"hdf5": "hdf5", "zarr": "zarr3", "hyperslab": "hyperslab", "flat": "npy"}
# The training may use so much of memory for one array, which is held three times, and of the free disk.
SHARE_OF_MEMORY, SHARE_OF_DISK = 0.2, 0.5


def caches_of(environment: Environment) -> Caches:
    """What the machine may cache."""
    read_ahead_nbytes = (environment.read_ahead_kib or 0) * 1024
    if environment.memory_nbytes is None:
        return Caches(read_ahead_nbytes=read_ahead_nbytes)
    return Caches(int(environment.memory_nbytes * 0.8), read_ahead_nbytes)


def calibrate(
    directory: Path,
    scale: Scale | TrainingSize = "quick",
    libraries: Iterable[str] | None = None,
    *,
    seed: int = 0,
    progress: Progress = lambda *_: None,
    journal: Path | None = None,
    resume: bool = False,
) -> StoreProfile:
    """Measure this machine and the file system of `directory`; nothing is left there, not even after Ctrl-C.

    `scale` is `quick` (under 3 minutes), `full` (under 40), or how much exactly. Libraries that are not installed are
    left out, and a note says so. An array is made smaller where memory or disk are small, with a note too. Cells go to
    the file `journal` as they are measured: with `resume` those that it holds are not measured again. Whoever has the
    store profile removes it.

    Raises
    ------
    UsageError
        A library is unknown, or the disk is too small for the least design; `journal` holds cells and `resume` is not
        said, or those of another request, machine or version.
    TooFewCells
        Too little was measured for a library to be fitted.
    """
    environment = observe(directory, list(FORMATS.values()))
    chosen, notes = _installed(libraries)
    size = _that_fits(SIZES[scale] if isinstance(scale, str) else scale, chosen, directory, environment)
    if isinstance(scale, str) and size.row_count < SIZES[scale].row_count:
        notes.append(f"arrays of {size.row_count} rows instead of {SIZES[scale].row_count}: little memory or disk")
    caches = caches_of(environment)
    planned = design(size, chosen)
    asked = {"size": asdict(size), "libraries": chosen, "seed": seed}
    with ExitStack() as ended:
        path = journal or Path(ended.enter_context(tempfile.TemporaryDirectory())) / "journal"
        kept = ended.enter_context(calibration_journal(path, asked, environment, resume=resume))
        if len(kept):
            notes.append(f"{len(kept)} of {len(planned)} cells were measured before an interruption")
        missing = [cell for cell in planned if not kept.of(key_of(cell))]
        measuring = measure(missing, directory, size.repeats, seed=seed, progress=progress, say=notes.append)
        for found in ended.enter_context(closing(measuring)):
            kept.append(found)
        cells = [observation_of(measured, caches) for cell in planned for measured in kept.of(key_of(cell))]
    return profile_of(cells, environment, store_of(directory), scale if isinstance(scale, str) else "own", notes)


def profile_of(
    cells: Sequence[Observation],
    environment: Environment,
    store: str,
    scale: str,
    notes: list[str],
    *,
    is_far: bool = False,
) -> StoreProfile:
    """The store profile that observations make: coefficients are fitted to them, and notes say what is not there."""
    fits = fitted(cells, notes)
    made_at = datetime.now(UTC).isoformat(timespec="seconds")
    return StoreProfile(
        environment=environment,
        store=store,
        made_at=made_at,
        scale=scale,
        hyperslab_version=__version__,
        cells=tuple(cells),
        fits=fits,
        notes=tuple(notes),
        is_far=is_far,
    )


def store_of(directory: Path) -> str:
    """The disk under a directory in words."""
    limits = throttle_of(directory)
    return "local disk" if limits is None else f"throttled disk, {limits}"


def fitted(cells: Sequence[Observation], notes: list[str]) -> tuple[Coefficients, ...]:
    """The coefficients of all that was measured; of what cannot be fitted a note, as long as anything can."""
    found = []
    failures: list[TooFewCells] = []
    for library, operation in dict.fromkeys((cell.library, cell.operation) for cell in cells):
        try:
            found.append(fit(cells, library, operation, EXTENDED))
        except TooFewCells as error:
            failures.append(error)
            notes.append(str(error))
    if not found:
        raise failures[0] if failures else TooFewCells("no cell could be measured; is another program busy here?")
    return tuple(found)


def observation_of(measured: CellTimings, caches: Caches) -> Observation:
    """What a fit is told of a measured cell, which only reads or only writes."""
    cell = measured.cell
    ((operation, variables),) = count_operations(cell, caches).items()
    return Observation(
        cell.library.name,
        operation,
        cell.cache,
        cell.pattern,
        str(cell.layout),
        cell.layout.codec,
        variables,
        measured.median_seconds,
        len(measured.passes),
        cell.workload.model_dump_json(exclude_defaults=True),
    )


def _installed(libraries: Iterable[str] | None) -> tuple[list[str], list[str]]:
    asked = list(libraries) if libraries is not None else list(LIBRARIES)
    for name in asked:
        if name not in LIBRARIES:
            raise UsageError(f"library {name!r} cannot be calibrated; these can: {', '.join(LIBRARIES)}")
    found, notes = [], []
    for name in asked:
        library = availability(FORMATS[name])
        if isinstance(library, MissingLibrary):
            notes.append(f"without {name}: {library}")
        else:
            found.append(name)
    if not found:
        raise UsageError(f"nothing to calibrate: {'; '.join(notes)}")
    return found, notes


def _that_fits(size: TrainingSize, libraries: list[str], directory: Path, environment: Environment) -> TrainingSize:
    room = shutil.disk_usage(directory).free * SHARE_OF_DISK
    for divisor in (1, 2, 4, 8, 16, 32, 64):
        smaller_size = smaller(size, divisor)
        fits_memory = (environment.memory_nbytes or 1 << 62) * SHARE_OF_MEMORY >= nbytes(smaller_size)
        if fits_memory and disk_nbytes(design(smaller_size, libraries)) <= room:
            return smaller_size
    raise UsageError(f"{directory} has too little room to calibrate; give another with --dir")
