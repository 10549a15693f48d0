"""`push`, `pull`, `bundle` and `apply`: versions go from one file to another, or to a URL and back. Only what is not
there goes.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hyperslab.archive.far.remote import Remote, is_url
from hyperslab.archive.tree.locating import locate
from hyperslab.errors import UsageError
from hyperslab.progress import Progress
from hyperslab.scratch import scratch_below
from hyperslab.versions.branching.ancestry import all_ancestors
from hyperslab.versions.file import TIMEOUT, VersionedFile
from hyperslab.versions.inspect.chunk_stack import chunk_stacks
from hyperslab.versions.layout.refs import target_of
from hyperslab.versions.transfer.applying import Bundle, apply_bundle
from hyperslab.versions.transfer.bundle_folder import BundleFolder
from hyperslab.versions.transfer.bundling import Wanted, write_bundle
from hyperslab.versions.transfer.far_pull import pull_from
from hyperslab.versions.transfer.far_push import push_to
from hyperslab.versions.transfer.ref_moves import Taken


@dataclass(frozen=True)
class Bundled:
    """A bundle that was written.

    Attributes
    ----------
    path
        The bundle.
    versions
        The versions in it, each after its parents.
    needs
        The versions that a file must have to take it.
    chunk_count
        The number of chunks in it.
    nbytes
        Its length.
    """

    path: str
    versions: tuple[str, ...]
    needs: tuple[str, ...]
    chunk_count: int
    nbytes: int


def push(
    source: str | os.PathLike[str],
    target: str | os.PathLike[str],
    names: Iterable[str] = (),
    *,
    storage_options: Mapping[str, Any] | None = None,
    timeout: float = TIMEOUT,
    progress: Progress | None = None,
) -> Taken:
    """Send branches, tags and versions to another file, with all versions before them and the chunks that it lacks.

    Each version is one commit in the target, and branches and tags come last, in another one: if this is stopped, do it
    again. A branch moves only forward: one that has versions of its own in the target stays, and is reported.

    One side may be a URL of an object store. The versions below it are a folder of bundles, one or more for each push,
    and an object that names them; it is replaced last, if nobody else has replaced it meanwhile.

    Parameters
    ----------
    source, target : str or os.PathLike
        The files, or a file and a URL. The target is created if it does not exist.
    names : iterable of str
        What to send; by default all branches and tags.
    storage_options : Mapping[str, Any], optional
        The options for the URL (docs/remote.md).
    timeout : float
        How many seconds to wait for other processes that have the target open.
    progress : callable, optional
        Called with the name of a version, the number of versions written so far, and the number of all.

    Returns
    -------
    Taken
        What the target took over.

    Raises
    ------
    KeyError
        The source has no such branch, tag or version.
    UsageError
        The target has another version of the same name, or stores an array in another way.
    DamagedFile
        A version cannot be read, or what is in the target is not what its name and time say.
    RemoteError
        The object store does not do what it is asked for.
    """
    if is_url(source) and is_url(target):
        raise UsageError("a URL and a URL: pull from one to a file, and push that to the other")
    if is_url(target):
        return push_to(BundleFolder(_folder(target, storage_options)), source, names, progress)
    if is_url(source):
        return pull_from(BundleFolder(_folder(source, storage_options)), target, names, timeout, progress)
    if storage_options:
        raise UsageError("storage options are for URLs, and both are files: leave them out")
    if Path(target).exists() and os.path.samefile(source, target):  # noqa: PTH121
        raise UsageError(f"{os.fspath(source)} is both files: name two")
    with VersionedFile(source) as one:
        wanted = Wanted.of(one.table, one.refs, names)
        with VersionedFile(target, "a", timeout=timeout) as other:
            have = frozenset(target_of(name, other.table) for name in other.table)
            stacks, _ = chunk_stacks(other.path)
            known = {
                path: frozenset(row.tobytes() for row in stack.rows["hash"] if row.any())
                for path, stack in stacks.items()
            }
            with scratch_below(Path(tempfile.gettempdir())) as folder:
                made = folder / "bundle.h5"
                write_bundle(one.table, one.refs, wanted, made, have, known)
                with Bundle(str(made)) as bundle:
                    return apply_bundle(other, bundle, progress)


def pull(
    target: str | os.PathLike[str],
    source: str | os.PathLike[str],
    names: Iterable[str] = (),
    *,
    storage_options: Mapping[str, Any] | None = None,
    timeout: float = TIMEOUT,
    progress: Progress | None = None,
) -> Taken:
    """Get branches, tags and versions from another file or a URL: `push`, seen from the other side."""
    return push(source, target, names, storage_options=storage_options, timeout=timeout, progress=progress)


def _folder(url: Any, options: Mapping[str, Any] | None) -> Remote:
    found, _ = locate(url, options or {})
    assert isinstance(found, Remote)
    return found.folder()


def bundle(
    file: str | os.PathLike[str],
    output: str | os.PathLike[str],
    names: Iterable[str] = (),
    *,
    since: Iterable[str] = (),
) -> Bundled:
    """Write branches, tags and versions to a bundle: a file that `apply` adds to another file, which has the versions
    since which they are sent. An existing file is replaced after success.

    Parameters
    ----------
    file : str or os.PathLike
        The file with the versions.
    output : str or os.PathLike
        The bundle.
    names : iterable of str
        What to send; by default all branches and tags.
    since : iterable of str
        The versions, branches or tags that the other file has, with all versions before them; by default none.

    Raises
    ------
    KeyError
        There is no such branch, tag or version.
    DamagedFile
        A version cannot be read.
    """
    with VersionedFile(file) as one:
        if Path(output).exists() and os.path.samefile(file, output):  # noqa: PTH121
            raise UsageError(f"{os.fspath(output)} is the file with the versions: choose another name")
        wanted = Wanted.of(one.table, one.refs, names)
        before = all_ancestors(map(one.find, since), one.table, one.refs)
        have = frozenset(target_of(name, one.table) for name in before)
        said = write_bundle(one.table, one.refs, wanted, Path(output), have)
    names_sent = tuple(version["target"][0] for version in said["versions"])
    needs = tuple(name for name, _ in said["needs"])
    return Bundled(os.fspath(output), names_sent, needs, said["chunk_count"], Path(output).stat().st_size)


def apply(
    file: str | os.PathLike[str],
    bundled: str | os.PathLike[str],
    *,
    storage_options: Mapping[str, Any] | None = None,
    timeout: float = TIMEOUT,
    progress: Progress | None = None,
) -> Taken:
    """Add the versions, branches and tags of a bundle, which may be at a URL, to a file, which is created if it does
    not exist.

    Every chunk is hashed before it is stored, and every array compared with what it was. Parameters and errors are
    those of `push`.
    """
    path = os.fspath(bundled)
    path = path if is_url(path) else os.path.abspath(path)  # noqa: PTH100
    with Bundle(path, storage_options) as opened, VersionedFile(file, "a", timeout=timeout) as other:
        return apply_bundle(other, opened, progress)
