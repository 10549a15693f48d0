"""`Inspected`: what a file with versions says of them: log, differences, proof, sizes, copies."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from hyperslab.versions.layout.table import VersionKey, VersionTable

if TYPE_CHECKING:
    from hyperslab.progress import Progress
    from hyperslab.versions.inspect.diff import VersionDiff
    from hyperslab.versions.inspect.exported import Exported
    from hyperslab.versions.inspect.log import LogEntry
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
    def _said(self) -> VersionTable:
        """All versions that say that they were committed."""
        raise NotImplementedError

    def _check_whole(self) -> None:
        """Refuse what cannot be asked now."""
        raise NotImplementedError

    def difference_of(self, root: StagedGroup) -> VersionDiff:
        """What a version that is being made changes."""
        from hyperslab.versions.inspect.staged_diff import staged_difference

        return staged_difference(root, self)

    def log(self, progress: Progress | None = None) -> list[LogEntry]:
        """All versions, oldest first, with their sizes and what each changed of its parent. No chunk is read.

        Args:
            progress: Called with a version's name, how many are done, and how many there are.
        """
        from hyperslab.versions.inspect.log import log

        self._check_whole()
        return log(self.path, self.table, progress)

    def diff(self, before: VersionKey, after: VersionKey = None) -> VersionDiff:
        """What differs between two versions, the second the current one by default; also while another is made.

        Which chunks differ is known from the mappings. Elements are read when they are asked for, and only where
        chunks differ: `file.diff("v1", "v2")["depth"].elements().boxes`.

        Raises:
            KeyError: There is no such version.
        """
        from hyperslab.versions.inspect.diff import diff

        self._check_whole()
        return diff(self.path, self.table.find(before), self.table.find(after))

    def verify(self, *versions: VersionKey, progress: Progress | None = None) -> Verification:
        """Check that versions are what was committed, all by default: every chunk is read and hashed again, once.

        Args:
            versions: Those to check.
            progress: Called with an array's path, how many chunks are hashed, and how many will be.

        Raises:
            KeyError: There is no such version.
            DamagedFile: Not even what versions there are can be read.
        """
        from hyperslab.versions.inspect.verify import verify

        self._check_whole()
        said = self._said  # of a damaged file too
        names = [said.find(version) for version in versions] if versions else None
        return verify(self.path, said, names, progress)

    def stats(self, progress: Progress | None = None) -> Stats:
        """How many bytes each version has, shares with its parent, and has alone; and what no version has any more.

        Args:
            progress: Called with a version's name, how many are counted, and how many there are.
        """
        from hyperslab.versions.inspect.stats import stats

        self._check_whole()
        return stats(self.path, self.table, progress)

    def export(
        self,
        version: VersionKey,
        target: str | os.PathLike[str],
        *,
        skip_unsupported: bool = False,
        progress: Progress | None = None,
    ) -> Exported:
        """Write a version as a file of its own, its chunks as they are stored: neither decoded nor encoded.

        Args:
            version: Which.
            target: Where to; a file is replaced, if all goes well. Its ending chooses the format: `.h5` is HDF5,
                `.zarr` a new folder of Zarr 3, `.json` and `.parquet` kerchunk references, which lead into this file.
            skip_unsupported: Leave out arrays that the format cannot express, instead of refusing them.
            progress: Called with an array's path, how many of its chunks are copied, and how many it has.

        Raises:
            KeyError: There is no such version.
            UsageError: The ending is not known, or `target` cannot be written.
            Refused: The format cannot express an array; the message has its name and the reason.
        """
        from hyperslab.versions.inspect.export import export

        self._check_whole()
        return export(
            self.path, self.table.find(version), Path(target), skip_unsupported=skip_unsupported, progress=progress
        )
