"""The steps of a conversion: create the objects, refuse what would be lost, fill the arrays, verify."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from hyperslab.archive.opening import open as open_archive
from hyperslab.archive.tree.array import Array
from hyperslab.conversion.cluster import Cluster, cluster_of
from hyperslab.conversion.filling import Filler, Filling
from hyperslab.conversion.journal import ConversionJournal
from hyperslab.conversion.meter import Meter
from hyperslab.conversion.predicting import WORTH_PREDICTING_NBYTES, predicted_seconds
from hyperslab.conversion.reading import check_readable
from hyperslab.conversion.settings import Conversion, Settings, check_losses, verified
from hyperslab.conversion.wishes import Wish, advised_for_others
from hyperslab.errors import (
    DamagedFile,
    HyperslabError,
    NotAllowed,
    Refused,
    TooLargeForMemory,
    Unsupported,
    UsageError,
)
from hyperslab.journal.signals import defer_signals
from hyperslab.versions.layout.version_group import VersionGroup

if TYPE_CHECKING:
    from hyperslab.archive.tree.group import Group
    from hyperslab.conversion.from_hdf5 import FromHdf5
    from hyperslab.conversion.index_room import Indexed
    from hyperslab.conversion.partial_file import PartialFile
    from hyperslab.conversion.to_hdf5 import ToHdf5
    from hyperslab.conversion.zarr_target import ToZarr


def write(
    group: Group, journal: ConversionJournal, settings: Settings, done: Conversion, meter: Meter | None = None
) -> None:
    """Write the target into the journal's folder."""
    is_local = isinstance(getattr(group.opened, "location", None), str)
    is_local_hdf5 = is_local and group.format == "hdf5" and group.name == "/"
    if settings.relayout and not (is_local_hdf5 and settings.format in ("hdf5", "netcdf4")):
        raise UsageError("--relayout is for HDF5 and NetCDF4 files on this machine: convert other sources without it")
    if settings.relayout and settings.wish != Wish():
        said = "--relayout copies all chunks as they are stored, so --chunks, --codec and --like contradict it"
        raise UsageError(f"{said}: leave them out, or convert first and put the metadata in front afterwards")
    with cluster_of(settings.scheduler) as cluster:
        work = Work(group, journal, settings, done, cluster, meter or Meter(settings.progress))
        if settings.format in ("zarr2", "zarr3"):
            _zarr(work)
        elif is_local_hdf5 or (isinstance(group, VersionGroup) and is_local and settings.format == "hdf5"):
            _hdf5_again(work)
        else:
            _hdf5(work)


W = TypeVar("W", bound="ToHdf5 | FromHdf5")


@dataclass
class Work:
    """What all ways to write a target share."""

    group: Group
    journal: ConversionJournal
    settings: Settings
    done: Conversion
    cluster: Cluster | None
    meter: Meter

    def __post_init__(self) -> None:
        memory = self.settings.memory
        if self.cluster is not None:
            memory = max(1, memory // self.cluster.thread_count)
        # The journal numbers slabs, so an interrupted conversion goes on with slabs of the same size.
        each = self.journal.settled("slab memory", memory)
        if self.cluster is not None:
            self.cluster.most_at_once = max(1, min(self.cluster.thread_count, self.settings.memory // each))
        self.filler = Filler(self.journal, each, self.meter, self.cluster)

    def begin(self, writing: ToZarr | ToHdf5 | FromHdf5, copied_nbytes: int = 0) -> None:
        """Refuse losses, and say how long it will take."""
        settings, done = self.settings, self.done
        done.notes = writing.notes
        done.notes += advised_for_others(settings.wish, settings.format)
        try:
            check_losses(writing.losses, settings, done)
        except Refused as refused:
            raise self._reason_of_all(writing.losses)(*refused.args) from refused
        self._check_memory(writing.fillings)
        done.nbytes = sum(filling.nbytes for filling in writing.fillings)
        passes = 1 if settings.verify == "none" else 2
        self.meter.expect(passes * (done.nbytes + copied_nbytes))
        if self.cluster is not None:
            self.cluster.check([str(self.journal.folder), *settings.source_paths])
        is_worth_it = done.nbytes + copied_nbytes >= WORTH_PREDICTING_NBYTES
        if settings.predicted is not None and is_worth_it and self.cluster is None:
            done.predicted_seconds = predicted_seconds(
                writing.fillings, self.filler, self.journal, copied_nbytes, is_verified=passes == 2
            )
            settings.predicted(done.predicted_seconds)

    def _check_memory(self, fillings: list[Filling]) -> None:
        """Refuse less memory than the conversion needs, before anything is written; say the least that works."""
        largest = max(fillings, key=self.filler.least_nbytes, default=None)
        if largest is None:
            return
        each = self.filler.least_nbytes(largest)
        least = each * (1 if self.cluster is None else self.cluster.thread_count)
        if self.settings.memory < least:
            said = f"{largest.path} has chunks or shards of {each // 2} bytes, and each is in memory twice"
            told = f"--memory must be at least {least} bytes, but it is {self.settings.memory}"
            raise TooLargeForMemory(f"{said}: {told}")

    def _reason_of_all(self, losses: list[tuple[str, str]]) -> type[HyperslabError]:
        """The class that reading raises, if that is why all of it is lost; `Refused` if the target cannot hold some.

        Raises
        ------
        NotAllowed
            The source may not lead to the elements of an array.
        """
        reasons: set[type[HyperslabError]] = set()
        for path, _ in losses:
            try:
                member = self.group[path.strip("/")]
                if isinstance(member, Array):
                    member.segments()
                    check_readable(member)
                reasons.add(Refused)
            except NotAllowed:
                raise
            except (DamagedFile, Unsupported) as error:
                reasons.add(type(error))
            except (HyperslabError, LookupError, OSError):
                reasons.add(Refused)
        return reasons.pop() if len(reasons) == 1 else Refused


def _zarr(work: Work) -> None:
    from hyperslab.conversion.zarr_target import ToZarr

    journal, settings = work.journal, work.settings
    version = 2 if settings.format == "zarr2" else 3
    writing = ToZarr(work.group, journal.data, version, settings.wish, settings.threads)
    writing.build()
    work.begin(writing, sum(copy.nbytes for copy in writing.copies))
    writing.write_texts(skip_unsupported=settings.skip_unsupported)
    writing.write_documents()
    for copy in writing.copies:
        work.meter.is_copied(copy.path, len(copy.table.positions), copy.nbytes)
        copy.copy(work.meter)
    work.filler.fill(writing.fillings)
    verified(work.filler, writing.fillings, settings, journal.data)
    for copy in writing.copies if settings.verify != "none" else ():
        copy.verify(work.meter)
    if writing.texts and settings.verify != "none":
        with open_archive(journal.data) as again:
            writing.verify_texts(again)


def _hdf5(work: Work) -> None:
    from hyperslab.conversion.hdf5_target import check
    from hyperslab.conversion.partial_file import PartialFile
    from hyperslab.conversion.to_hdf5 import ToHdf5

    journal, settings = work.journal, work.settings
    file = PartialFile(journal.data, is_new=not journal.is_resumed)
    try:
        is_netcdf = settings.format == "netcdf4"
        with _begun(lambda: ToHdf5(work.group, file, settings.wish, settings.threads, is_netcdf=is_netcdf)) as writing:
            _build(writing, file)
            work.begin(writing)
            _reserve(work, writing, file)
            work.filler.fill(writing.fillings)
            check(file)
            file.is_replaying = False
        check(file)
    finally:
        file.close()
    verified(work.filler, writing.fillings, settings, journal.data)


def _hdf5_again(work: Work) -> None:
    from hyperslab.conversion.from_hdf5 import FromHdf5
    from hyperslab.conversion.from_version import FromVersion
    from hyperslab.conversion.hdf5_target import check
    from hyperslab.conversion.partial_file import PartialFile
    from hyperslab.conversion.stored_chunks import StoredChunks, verify_stored

    group, journal, settings = work.group, work.journal, work.settings
    file = PartialFile(journal.data, is_new=not journal.is_resumed)
    try:
        kind = FromVersion if isinstance(group, VersionGroup) else FromHdf5
        with _begun(lambda: kind(group, file, settings.wish, settings.threads)) as writing:
            _build(writing, file)
            stored = StoredChunks(writing.copies)
            work.begin(writing, stored.nbytes)
            _reserve(work, writing, file, stored.indexed())
            work.filler.fill(writing.fillings)
            stored.copy(file, group.filename, work.meter)
            check(file)
            file.is_replaying = False
        check(file)
    finally:
        file.close()
    verified(work.filler, writing.fillings, settings, journal.data)
    if settings.verify != "none":
        verify_stored(writing.copies, group.filename, journal.data, work.meter)


@contextmanager
def _begun(make: Callable[[], W]) -> Iterator[W]:
    """What writes the target by libhdf5, closed at the end.

    Here and below, signals are deferred while libhdf5 calls our functions: it would drop what their handlers raise.
    """
    writing = None
    try:
        with defer_signals():
            writing = make()
        yield writing
    finally:
        if writing is not None:
            with defer_signals():
                writing.close()


@defer_signals()
def _build(writing: ToHdf5 | FromHdf5, file: PartialFile) -> None:
    """Create everything but elements."""
    from hyperslab.conversion.hdf5_target import check

    writing.build()
    check(file)  # a full disk is not a loss


@defer_signals()
def _reserve(work: Work, writing: ToHdf5 | FromHdf5, file: PartialFile, copied: Sequence[Indexed] = ()) -> None:
    """Make room for the chunk indexes, while the file has objects and no chunk yet; then write what is small."""
    from hyperslab.conversion.hdf5_target import check
    from hyperslab.conversion.index_room import Indexed

    filled = [Indexed.of_filling(filling, work.filler) for filling in writing.fillings]
    writing.room.reserve([*writing.small(), *filled, *copied])
    try:
        writing.write_small()
    except (OSError, RuntimeError):
        check(file)
        raise
