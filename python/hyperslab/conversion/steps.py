"""The steps of a conversion: create the objects, refuse what would be lost, fill the arrays, verify."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hyperslab.conversion.filling import Filler
from hyperslab.conversion.journal import ConversionJournal
from hyperslab.conversion.settings import Conversion, Settings, check_losses, verified
from hyperslab.errors import UsageError

if TYPE_CHECKING:
    from hyperslab.archive.tree import Group


LEAST_FRONT_NBYTES = 4096


def write(group: Group, journal: ConversionJournal, settings: Settings, done: Conversion) -> None:
    """Write the target into the journal's folder."""
    is_local_hdf5 = (
        isinstance(getattr(group.opened, "location", None), str) and group.format == "hdf5" and group.name == "/"
    )
    if settings.relayout and not (is_local_hdf5 and settings.format in ("hdf5", "netcdf4")):
        raise UsageError("--relayout is for HDF5 and NetCDF4 files on this machine: convert other sources without it")
    if settings.format in ("zarr2", "zarr3"):
        _zarr(group, journal, settings, done)
    elif is_local_hdf5:
        _hdf5_again(group, journal, settings, done)
    else:
        _hdf5(group, journal, settings, done)


def _filler(journal: ConversionJournal, settings: Settings) -> Filler:
    return Filler(journal, settings.memory, settings.threads, settings.progress)


def _zarr(group: Group, journal: ConversionJournal, settings: Settings, done: Conversion) -> None:
    from hyperslab.conversion.zarr_target import ToZarr

    writing = ToZarr(group, journal.data, 2 if settings.format == "zarr2" else 3, settings.wish, settings.threads)
    writing.build()
    done.notes = writing.notes
    check_losses(writing.losses, settings, done)
    writing.write_documents()
    filler = _filler(journal, settings)
    filler.fill(writing.fillings)
    writing.write_texts()
    done.array_count = len(writing.fillings) + len(writing.texts)
    done.nbytes = sum(filling.nbytes for filling in writing.fillings)
    verified(filler, writing.fillings, settings, journal.data)


def _hdf5(group: Group, journal: ConversionJournal, settings: Settings, done: Conversion) -> None:
    from hyperslab.conversion.hdf5_target import check
    from hyperslab.conversion.partial_file import PartialFile
    from hyperslab.conversion.to_hdf5 import ToHdf5

    file = PartialFile(journal.data, is_new=not journal.is_resumed)
    try:
        is_netcdf = settings.format == "netcdf4"
        writing = ToHdf5(group, file, settings.wish, settings.threads, is_netcdf=is_netcdf)
        try:
            writing.build()
            done.notes = writing.notes
            check_losses(writing.losses, settings, done)
            filler = _filler(journal, settings)
            filler.fill(writing.fillings)
            check(file)
            file.is_replaying = False
        finally:
            writing.close()
        check(file)
    finally:
        file.close()
    done.array_count = len(writing.fillings)
    done.nbytes = sum(filling.nbytes for filling in writing.fillings)
    verified(filler, writing.fillings, settings, journal.data)


def _hdf5_again(group: Group, journal: ConversionJournal, settings: Settings, done: Conversion) -> None:
    from hyperslab.conversion.from_hdf5 import FromHdf5
    from hyperslab.conversion.hdf5_target import check
    from hyperslab.conversion.partial_file import PartialFile
    from hyperslab.conversion.stored_chunks import copy_stored

    file = PartialFile(journal.data, is_new=not journal.is_resumed)
    try:
        front = _metadata_nbytes(group, journal, settings) if settings.relayout else 0
        writing = FromHdf5(group, file, settings.wish, settings.threads, front, is_relayout=settings.relayout)
        try:
            writing.build()
            done.notes = writing.notes
            check_losses(writing.losses, settings, done)
            filler = _filler(journal, settings)
            filler.fill(writing.fillings)
            copy_stored(writing.copies, file, group.filename, settings.progress)
            check(file)
            file.is_replaying = False
            done.array_count = len(writing.fillings) + len(writing.copies)
        finally:
            writing.close()
        check(file)
    finally:
        file.close()
    done.nbytes = sum(filling.nbytes for filling in writing.fillings)
    verified(filler, writing.fillings, settings, journal.data)


def _metadata_nbytes(group: Group, journal: ConversionJournal, settings: Settings) -> int:
    """How many bytes the metadata of the target take: it is made once without chunks, which leaves a sparse file."""
    from hyperslab.conversion.from_hdf5 import FromHdf5
    from hyperslab.conversion.partial_file import PartialFile
    from hyperslab.conversion.stored_chunks import copy_stored

    path = journal.folder / "measured"
    file = PartialFile(path, is_new=True)
    try:
        trial = FromHdf5(group, file, settings.wish, settings.threads, is_relayout=True)
        try:
            trial.build()
            stored = copy_stored(trial.copies, file, None, None)
        finally:
            trial.close()
    finally:
        file.close()
    nbytes = path.stat().st_size - stored
    path.unlink()
    return max(nbytes, LEAST_FRONT_NBYTES)
