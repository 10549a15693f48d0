"""Calibrate: measure the cells of the training design on this machine and fit the coefficients to them."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack, closing
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path

from hyperslab._core import __version__
from hyperslab.errors import MissingLibrary, TooFewCells, UsageError
from hyperslab.formats import availability
from hyperslab.lab.environment import Environment, observe, throttle_of
from hyperslab.lab.other_load import BUSY, OtherLoad, share_text
from hyperslab.meant import meant_or_choose
from hyperslab.model.calibration_journal import calibration_journal
from hyperslab.model.costs import Coefficients
from hyperslab.model.counting import count_operations
from hyperslab.model.fit import Observation, fit, repeated_on
from hyperslab.model.libraries import LIBRARIES, Caches
from hyperslab.model.measuring import CellTimings, disk_nbytes, key_of, measure
from hyperslab.model.netcdf_calls import calls_beyond
from hyperslab.model.store_profile import StoreProfile, caches_of
from hyperslab.model.terms import EXTENDED
from hyperslab.model.training import SIZES, Scale, TrainingSize, design, nbytes, smaller
from hyperslab.progress import Progress, watched

# The format of the bench that measures each library.
FORMATS = {"hdf5": "hdf5", "zarr": "zarr3", "hyperslab": "hyperslab", "flat": "npy"}
# Training may use at most this share of memory for one array, which is held three times, and of the free disk.
SHARE_OF_MEMORY, SHARE_OF_DISK = 0.2, 0.5


@watched("passes")
def calibrate(
    directory: Path,
    scale: Scale | TrainingSize = "quick",
    libraries: Iterable[str] | None = None,
    *,
    seed: int = 0,
    progress: Progress = lambda *_: None,
    journal: Path | None = None,
    resume: bool = False,
    ready: Callable[[], None] = lambda: None,
) -> StoreProfile:
    """Measure this machine and the file system of `directory`. No files are left there, even after Ctrl-C.

    Libraries that are not installed are left out, and arrays are made smaller if memory or disk are small. The notes of
    the profile say so.

    Parameters
    ----------
    directory : Path
        A directory on the file system to measure.
    scale : Scale | TrainingSize
        `quick` (about 3 minutes), `full` (under 20), or the exact sizes.
    libraries : Iterable[str] | None
        Names of libraries to measure; None means all of them.
    seed : int
        Seed of the order in which cells are measured.
    progress : Progress
        Called after each trial. Without it, notebooks show a bar after two seconds.
    journal : Path | None
        A file that records each cell once it is measured. Remove it when you have saved the profile.
    resume : bool
        Continue from `journal`: the cells in it are not measured again.
    ready : Callable
        Called when everything is checked and the first cell is about to be measured.

    Returns
    -------
    StoreProfile
        The coefficients of each library, with the cells that they were fitted to.

    Raises
    ------
    UsageError
        A library is unknown, or the disk is too small for the smallest design. `journal` holds cells without `resume`,
        or cells of another request, machine or version.
    TooFewCells
        Too few cells were measured to fit a library.
    """
    environment = observe(directory, list(FORMATS.values()))
    chosen, notes = _installed(libraries)
    size = _that_fits(SIZES[scale] if isinstance(scale, str) else scale, chosen, directory, environment)
    if isinstance(scale, str) and size.row_count < SIZES[scale].row_count:
        notes.append(f"arrays of {size.row_count} rows instead of {SIZES[scale].row_count}: memory or disk is small")
    caches = caches_of(environment)
    planned = design(size, chosen)
    asked = {"size": asdict(size), "libraries": chosen, "seed": seed}
    with ExitStack() as ended:
        path = journal or Path(ended.enter_context(tempfile.TemporaryDirectory())) / "journal"
        kept = ended.enter_context(calibration_journal(path, asked, environment, resume=resume))
        if len(kept):
            notes.append(f"{len(kept)} of {len(planned)} cells were measured before an interruption")
        missing = [cell for cell in planned if not kept.of(key_of(cell))]
        if missing:
            ready()
        load = OtherLoad()
        measuring = measure(missing, directory, size.repeats, seed=seed, progress=progress, say=notes.append)
        for timings in ended.enter_context(closing(measuring)):
            kept.append(timings)
        busy_share = load.share() or 0.0
        cells = [observation_of(measured, caches) for cell in planned for measured in kept.of(key_of(cell))]
    least = size.repeats.least
    if few := sum(cell.trials < least for cell in cells):
        why = "there was no time for more, or passes were rejected"
        notes.append(f"{few} of {len(cells)} cells have fewer than {least} passes ({why}): --full takes more time")
    if busy_share >= BUSY:
        said = f"other programs used {share_text(busy_share)} meanwhile"
        notes.append(f"{said}, so intervals are wider: calibrate again on a quiet machine")
    netcdf4 = calls_beyond(directory) if "hdf5" in chosen else None
    if netcdf4 is None and "hdf5" in chosen:
        notes.append("netCDF4 is not installed: what it takes beyond h5py is not known")
    name = scale if isinstance(scale, str) else "own"
    made = profile_of(cells, environment, store_of(directory), name, notes, busy_share=busy_share)
    return replace(made, netcdf4=netcdf4)


def profile_of(
    cells: Sequence[Observation],
    environment: Environment,
    store: str,
    scale: str,
    notes: list[str],
    *,
    is_far: bool = False,
    busy_share: float = 0.0,
) -> StoreProfile:
    """Build a store profile by fitting coefficients to observations. The notes list what is missing."""
    fits = fitted(cells, notes, busy_share)
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
        busy_share=busy_share,
    )


def store_of(directory: Path) -> str:
    """A description of the disk that holds a directory."""
    limits = throttle_of(directory)
    return "local disk" if limits is None else f"throttled disk, {limits}"


def fitted(cells: Sequence[Observation], notes: list[str], busy_share: float = 0.0) -> tuple[Coefficients, ...]:
    """The coefficients of everything measured, while other programs used a share of the processors.

    A library that cannot be fitted gets a note, unless none can be fitted.
    """
    coefficients = []
    failures: list[TooFewCells] = []
    for library, operation in dict.fromkeys((cell.library, cell.operation) for cell in cells):
        try:
            coefficients.append(fit(cells, library, operation, EXTENDED, repeated=repeated_on(busy_share)))
        except TooFewCells as error:
            failures.append(error)
            notes.append(str(error))
    if not coefficients:
        raise (
            failures[0] if failures else TooFewCells("no cell could be measured: another program may be using the disk")
        )
    return tuple(coefficients)


def observation_of(measured: CellTimings, caches: Caches) -> Observation:
    """The observation that a fit uses. The cell must only read or only write."""
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
            raise UsageError(f"library {name!r} cannot be calibrated{meant_or_choose(name, LIBRARIES)}")
    installed, notes = [], []
    for name in asked:
        library = availability(FORMATS[name])
        if isinstance(library, MissingLibrary):
            notes.append(f"without {name}: {library}")
        else:
            installed.append(name)
    if not installed:
        raise UsageError(f"nothing to calibrate: {'; '.join(notes)}")
    return installed, notes


def _that_fits(size: TrainingSize, libraries: list[str], directory: Path, environment: Environment) -> TrainingSize:
    room = shutil.disk_usage(directory).free * SHARE_OF_DISK
    for divisor in (1, 2, 4, 8, 16, 32, 64):
        smaller_size = smaller(size, divisor)
        fits_memory = (environment.memory_nbytes or 1 << 62) * SHARE_OF_MEMORY >= nbytes(smaller_size)
        if fits_memory and disk_nbytes(design(smaller_size, libraries)) <= room:
            return smaller_size
    raise UsageError(f"{directory} has too little free space to calibrate: choose another directory with --dir")
