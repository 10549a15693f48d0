"""`SourceFiles`: the files that a source consists of, and what tells one version of them from another."""

from __future__ import annotations

import hashlib
import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hyperslab.archive.tree.array import Array
from hyperslab.errors import FileChanged, HyperslabError, Refused, printable
from hyperslab.versions.layout.version_group import VersionGroup

if TYPE_CHECKING:
    from hyperslab.archive.tree.group import Group


class SourceFiles:
    """The files of a source on this machine: those that were opened, and those that their arrays lead to.

    Parameters
    ----------
    group : Group
        The source.
    before : os.stat_result | None
        What its file was before it was opened, if you looked.
    """

    def __init__(self, group: Group, before: os.stat_result | None = None) -> None:
        self._version_group = group if isinstance(group, VersionGroup) and not group.opened.is_remote else None
        self._before = before
        self._opened = group.opened
        named = dict.fromkeys(self._opened.opened_paths)
        if not any(Path(path).is_dir() for path in named):  # each chunk of a folder is a file
            group.visititems(lambda _, node: named.update(_files_of(node)))
        self.paths: list[Path] = [Path(path) for path in named if "://" not in path and Path(path).exists()]

    def version(self) -> str:
        """What changes when any of the files does.

        Raises
        ------
        FileChanged
            A file that references lead to has changed since they were made.
        """
        if self._version_group is not None:
            return self._version_of_version(self._version_group)
        core = self._opened.core
        core.check_sources()
        told = [str(core.version), *(f"{path} {_version(path)}" for path in self.paths)]
        return hashlib.blake2b("\n".join(told).encode("utf-8", "surrogateescape"), digest_size=16).hexdigest()

    def _version_of_version(self, group: VersionGroup) -> str:
        """What changes when the file is replaced. Other versions may be committed: what this one needs stays."""
        now = os.stat(group.filename)  # noqa: PTH116
        if self._before is not None and not os.path.samestat(self._before, now):
            raise FileChanged(f"{group.filename} was replaced by another file meanwhile: try again")
        return f"{now.st_dev}-{now.st_ino} {group.name} {group.attrs.get('timestamp')}"


def missing_sources(array: Any) -> str | None:
    """What to say of a virtual array whose sources are not all there: HDF5 and we read fill values in their place."""
    mapped = dict.fromkeys(file for file, *_ in array.virtual_sources() if file != "." and "%b" not in file)
    if not mapped:
        return None
    names = {Path(path).name for path in array.file_paths() if path is not None}
    folder = Path(array.filename).parent
    gone = [one for one in mapped if Path(one).name not in names and not (folder / one).exists()]
    if not gone:
        return None
    more = f" and {len(gone) - 1} more" if len(gone) > 1 else ""
    return f"it shows {printable(gone[0])!r}{more}, which is missing: the copy would have fill values there"


def check_external(array: Any) -> None:
    """Check that the external raw files of an HDF5 array are there: neither HDF5 nor we can read it without them.

    Raises
    ------
    Refused
        One of them is missing.
    """
    if array.format != "hdf5":
        return
    paths = array.file_paths()  # of all arrays of the file
    gone = {number for number, path in enumerate(paths) if number and "://" not in path and not Path(path).exists()}
    used = {int(number) for segment in array.segments() for number in segment.files()} if gone else set()
    for number in sorted(gone & used):
        raise Refused(f"its elements are in {printable(paths[number])}, which is missing")


def _files_of(node: Any) -> dict[str, None]:
    """The files that hold the chunks of an array; none for a group."""
    if isinstance(node, Array):
        with suppress(HyperslabError):
            return dict.fromkeys(path for path in node.file_paths() if path is not None)
    return {}


def _version(path: Path) -> str:
    try:
        if path.is_dir():
            return "-".join(map(str, _version_of_folder(path)))
        status = path.stat()
    except OSError:  # a file may vanish from a folder meanwhile
        return "gone"
    return f"{status.st_size}-{status.st_mtime_ns}"


def _version_of_folder(folder: str | Path) -> tuple[int, int, int]:
    """How many files a folder has, their bytes, and the newest change of any file or folder in it."""
    count, nbytes, newest = 0, 0, Path(folder).stat().st_mtime_ns
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                inner = _version_of_folder(entry.path)
                count, nbytes, newest = count + inner[0], nbytes + inner[1], max(newest, inner[2])
            else:
                status = entry.stat(follow_symlinks=False)
                count, nbytes, newest = count + 1, nbytes + status.st_size, max(newest, status.st_mtime_ns)
    return count, nbytes, newest
