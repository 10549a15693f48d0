"""`pull_from`: gets versions from a folder of bundles at a URL. Only bundles that have some of them are fetched."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path

from hyperslab.errors import DamagedFile, HyperslabError, UsageError
from hyperslab.meant import meant
from hyperslab.progress import Progress
from hyperslab.scratch import scratch_below
from hyperslab.versions.file import VersionedFile
from hyperslab.versions.layout.refs import Target, exists
from hyperslab.versions.transfer.applying import Bundle, add_versions
from hyperslab.versions.transfer.bundle_folder import BundleFolder, FolderRefs, SentBundle
from hyperslab.versions.transfer.ref_moves import Taken, move_refs


def pull_from(
    folder: BundleFolder,
    target: str | os.PathLike[str],
    names: Iterable[str],
    timeout: float,
    progress: Progress | None,
) -> Taken:
    """Get branches, tags and versions from a folder of bundles, with all versions before them. Branches and tags come
    last: if this is stopped, do it again.

    Raises
    ------
    KeyError
        The folder has no such branch, tag or version.
    UsageError
        The file has another version of the same name, or stores an array in another way.
    DamagedFile
        A bundle is missing, or is not as it was written.
    RemoteError
        The object store does not do what it is asked for.
    """
    refs = folder.existing_refs()
    chosen = _Chosen(refs, list(names), folder.url)
    with VersionedFile(target, "a", timeout=timeout) as file:
        for wanted in chosen.targets:
            if wanted.version in file and not exists(wanted, file.table):
                said = f"{file.path} has another version {wanted.version!r} than {folder.url}"
                raise UsageError(f"{said}, of another time: rename one of them")
        taken = Taken(file.path)
        for bundle in refs.bundles:
            lacking = {one.target for one in bundle.versions} & chosen.targets
            lacking = {one for one in lacking if not exists(one, file.table)}
            if lacking:
                _add(folder, refs, bundle, file, taken, lacking, progress)
        tags = {name: {**texts, "target": list(where)} for name, (where, texts) in chosen.tags.items()}
        try:
            move_refs(file, chosen.branches, tags, refs.checked_out, taken)
        except HyperslabError:
            raise
        except ValueError as error:  # a name that no branch can have
            raise DamagedFile(f"what {folder.url} names makes no sense: {error}") from error
        return taken


class _Chosen:
    """The branches and tags to get, and all versions that they need."""

    def __init__(self, refs: FolderRefs, names: list[str], url: str) -> None:
        for name in names:
            if name not in refs.branches and name not in refs.tags and name not in refs.versions:
                known = [*refs.branches, *refs.tags, *refs.versions]
                raise KeyError(f"there is no branch, tag or version {name!r} at {url}{meant(name, known)}")
        self.branches = {name: one for name, one in refs.branches.items() if not names or name in names}
        self.tags = {name: one for name, one in refs.tags.items() if not names or name in names}
        heads = {target.version for target in self.branches.values()}
        heads |= {target.version for target, _ in self.tags.values()} | (set(names) & refs.versions.keys())
        versions = refs.versions
        self.targets: set[Target] = {versions[one].target for one in refs.ancestors(heads) if one in versions}


def _add(
    folder: BundleFolder,
    refs: FolderRefs,
    bundle: SentBundle,
    file: VersionedFile,
    taken: Taken,
    lacking: set[Target],
    progress: Progress | None,
) -> None:
    """Add versions of one bundle."""
    with ExitStack() as stack:
        path = stack.enter_context(scratch_below(Path(tempfile.gettempdir()))) / f"{bundle.digest}.h5"
        folder.fetch(bundle, path)
        opened = stack.enter_context(Bundle(str(path)))
        others = _Others(folder, [one for one in reversed(refs.bundles) if one != bundle], stack)
        add_versions(file, opened, taken, progress, lacking, others)


class _Others:
    """Other bundles, each opened when it is first looked at: a push leaves out chunks that any of them has, also for
    versions that were not chosen. Only what is needed of them is read.
    """

    def __init__(self, folder: BundleFolder, bundles: list[SentBundle], stack: ExitStack) -> None:
        self._folder, self._waiting, self._stack = folder, bundles[::-1], stack
        self._opened: list[Bundle] = []

    def __iter__(self) -> Iterator[Bundle]:
        yield from self._opened
        while self._waiting:
            remote = self._folder.remote.below(self._waiting[-1].name)
            self._opened.append(self._stack.enter_context(Bundle(remote.url, remote.options)))
            self._waiting.pop()
            yield self._opened[-1]
