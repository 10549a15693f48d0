"""`Inspected`: the questions that a file with versions answers: log, differences, verification, sizes, export."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from hyperslab.versions.layout.table import VersionKey, VersionTable

if TYPE_CHECKING:
    from hyperslab.conversion.exporting import Exported
    from hyperslab.progress import Progress
    from hyperslab.versions.inspect.diff import VersionDiff
    from hyperslab.versions.inspect.log import VersionLog
    from hyperslab.versions.inspect.stats import Stats
    from hyperslab.versions.inspect.verify import Verification
    from hyperslab.versions.stage.staged_group import StagedGroup


class Inspected:
    """A file with versions that answers questions about them; `VersionedFile` is one."""

    path: str

    @property
    def table(self) -> VersionTable:
        """All versions with their parents and times."""
        raise NotImplementedError

    @property
    def closed(self) -> bool:
        """Whether the file is closed."""
        raise NotImplementedError

    def find(self, key: VersionKey) -> str:
        """The name of the version that a key means."""
        raise NotImplementedError

    @property
    def _said(self) -> VersionTable:
        """All versions whose attributes say that they were committed."""
        raise NotImplementedError

    def _check_whole(self) -> None:
        """Refuse questions that cannot be answered now."""
        raise NotImplementedError

    def __repr__(self) -> str:
        state = "closed" if self.closed else f"{len(self.table)} versions, current {self.table.current!r}"
        return f"<hyperslab.VersionedFile {self.path!r}: {state}>"

    def _repr_html_(self) -> str:
        from hyperslab.archive.views import display_html

        if self.closed:
            return display_html.rows("hyperslab.VersionedFile", str(self.path), [], [], ["closed"])
        current = self.table.current
        cells = (
            (one.name, one.parent or "–", f"{one.time:%Y-%m-%d %H:%M:%S}", "current" if one.name == current else "")
            for one in map(self.table.__getitem__, reversed(list(self.table)))
        )
        titles = ["version", "parent", "time (UTC)", ""]
        name = f"{self.path}: {len(self.table)} versions"
        return display_html.rows("hyperslab.VersionedFile", name, titles, cells, [])

    def difference_of(self, root: StagedGroup) -> VersionDiff:
        """The changes of a version that you are making."""
        from hyperslab.versions.inspect.staged_diff import staged_difference

        return staged_difference(root, self)

    def log(self, progress: Progress | None = None) -> VersionLog:
        """All versions, oldest first, with their sizes and what each changed. No chunk is read.

        Parameters
        ----------
        progress : callable, optional
            Called with the name of a version, the number of versions done so far, and the number of all versions.

        Returns
        -------
        VersionLog
            A list of `LogEntry`, one entry for each version.
        """
        from hyperslab.versions.inspect.log import log

        self._check_whole()
        return log(self.path, self.table, progress)

    def diff(self, before: VersionKey, after: VersionKey = None) -> VersionDiff:
        """Compare two versions; the second is the current one by default. You can also do this while you stage a
        version.

        The mappings tell which chunks differ. Elements are read only when you ask for them, and only where chunks
        differ: `file.diff("v1", "v2")["depth"].elements().boxes`.

        Parameters
        ----------
        before, after : str, int, datetime.datetime, numpy.datetime64 or None
            The versions, as in `file[key]`.

        Returns
        -------
        VersionDiff
            The differences.

        Raises
        ------
        KeyError
            A version does not exist.
        """
        from hyperslab.versions.inspect.diff import diff

        self._check_whole()
        return diff(self.path, self.find(before), self.find(after))

    def verify(self, *versions: VersionKey, progress: Progress | None = None) -> Verification:
        """Check that versions are as they were committed: read and hash every chunk again, once.

        Parameters
        ----------
        *versions : str, int, datetime.datetime or numpy.datetime64
            The versions to check, as in `file[key]`; by default all.
        progress : callable, optional
            Called with the path of an array, the number of chunks hashed so far, and the number of chunks to hash.

        Returns
        -------
        Verification
            What was checked, and what is damaged.

        Raises
        ------
        KeyError
            A version does not exist.
        DamagedFile
            Not even the list of versions can be read.
        """
        from hyperslab.versions.inspect.verify import verify

        self._check_whole()
        said = self._said  # a damaged file has one too
        names = [
            self.find(one) if isinstance(one, str) and one not in said else said.find(one) for one in versions
        ] or None
        return verify(self.path, said, names, progress)

    def stats(self, progress: Progress | None = None) -> Stats:
        """Count the bytes that each version holds, shares with its parent, or holds alone, and those that no version
        uses.

        Parameters
        ----------
        progress : callable, optional
            Called with the name of a version, the number of versions counted so far, and the number of all versions.

        Returns
        -------
        Stats
            The sizes of versions and arrays, in bytes.
        """
        from hyperslab.versions.inspect.stats import stats

        self._check_whole()
        return stats(self.path, self.table, progress)

    def export(
        self,
        version: VersionKey,
        target: str | os.PathLike[str],
        *,
        format: str | None = None,
        skip_unsupported: bool = False,
        progress: Progress | None = None,
    ) -> Exported:
        """Write a version to an archive of its own: a conversion that copies chunks as they are stored, where it can.

        Parameters
        ----------
        version : str, int, datetime.datetime, numpy.datetime64 or None
            The version, as in `file[key]`.
        target : str or os.PathLike
            The file to write; an existing file is replaced after success. Its suffix chooses the format: `.h5` is HDF5,
            `.nc` NetCDF4, `.zarr` a new folder of Zarr 3; `.json` and `.parquet` are kerchunk references, which lead
            into this file.
        format : {"hdf5", "netcdf4", "zarr2", "zarr3"} or None
            The format, if the suffix does not choose it.
        skip_unsupported : bool
            Leave out arrays that the format cannot express, instead of refusing to write.
        progress : callable, optional
            Called with the path of an array, the number of its chunks copied so far, and the number of all its chunks.

        Returns
        -------
        Exported
            What was written.

        Raises
        ------
        KeyError
            The version does not exist.
        UsageError
            The suffix is unknown, or `target` cannot be written.
        Refused
            The format cannot express an array; the message gives its name and the reason.
        """
        from hyperslab.conversion.exporting import export

        self._check_whole()
        name = self.find(version)
        return export(
            self.path, name, Path(target), format=format, skip_unsupported=skip_unsupported, progress=progress
        )
