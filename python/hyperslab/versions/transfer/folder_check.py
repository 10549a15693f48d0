"""`verify_folder`: checks the versions at a URL, of which nothing is kept. Each bundle is fetched once, and hashed."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from hyperslab.archive.far.remote import Remote
from hyperslab.archive.tree.locating import locate
from hyperslab.errors import DamagedFile, HyperslabError, UsageError
from hyperslab.journal.signals import raise_pending_signals
from hyperslab.progress import Progress
from hyperslab.scratch import scratch_below
from hyperslab.versions.layout.refs import Target
from hyperslab.versions.transfer.applying import Bundle, as_damage
from hyperslab.versions.transfer.bundle_folder import BundleFolder, FolderRefs, SentBundle


@dataclass
class FolderVerification:
    """What was checked at a URL, and what is missing or damaged.

    Attributes
    ----------
    url
        The URL.
    version_count, bundle_count
        The versions and bundles that are named there.
    nbytes
        The bytes of the bundles that were fetched and are as they were written.
    damages
        What is missing or damaged.
    """

    url: str
    version_count: int = 0
    bundle_count: int = 0
    nbytes: int = 0
    damages: list[str] = field(default_factory=list)

    @property
    def is_whole(self) -> bool:
        """Whether everything is there as it was pushed."""
        return not self.damages


def verify_folder(
    url: str, *, storage_options: Mapping[str, Any] | None = None, progress: Progress | None = None
) -> FolderVerification:
    """Check the versions that were pushed to a URL: every bundle is there, with its length and its hash, and holds the
    versions that it should; their parents, the heads of branches, the targets of tags, and all their chunks are there.

    Raises
    ------
    NoSuchRemoteFile
        Nothing was pushed there.
    DamagedFile
        The object that names everything is not as it was written.
    RemoteError
        The object store does not do what it is asked for.
    """
    found, _ = locate(url, storage_options or {})
    if not isinstance(found, Remote):
        raise UsageError(f"{url} is no URL: `VersionedFile.verify` checks a file")
    folder = BundleFolder(found.folder())
    return _Checking(folder, folder.existing_refs()).run(progress)


class _Checking:
    def __init__(self, folder: BundleFolder, refs: FolderRefs) -> None:
        self._folder, self._refs = folder, refs
        self._found = FolderVerification(folder.url, len(refs.targets), len(refs.bundles))
        self._has: dict[str, set[bytes]] = {}  # the hashes of chunks, by the path of the array
        self._needs: dict[tuple[str, str], set[bytes]] = {}  # by the version and the path of the array

    def run(self, progress: Progress | None) -> FolderVerification:
        self._check_names()
        is_complete = True
        with scratch_below(Path(tempfile.gettempdir())) as scratch:
            for done, bundle in enumerate(self._refs.bundles):
                raise_pending_signals()
                if progress is not None:
                    progress(bundle.name, done, len(self._refs.bundles))
                path = scratch / f"{bundle.digest}.h5"
                try:
                    self._check_bundle(bundle, path)
                except DamagedFile as error:
                    is_complete = False
                    self._found.damages.append(f"{error} (versions {_names(bundle)})")
                path.unlink(missing_ok=True)
        for (version, array), needed in self._needs.items() if is_complete else ():
            lacking = len(needed - self._has.get(array, set()))
            if lacking:
                self._found.damages.append(f"{lacking} chunks of {array} in version {version!r} are in no bundle")
        return self._found

    def _check_names(self) -> None:
        """Check that everything that is named is there, each version after its parents."""
        seen: set[Target] = set()
        damages, targets = self._found.damages, self._refs.targets
        for bundle in self._refs.bundles:
            for one in bundle.versions:
                for parent in (one.parent, one.merged):
                    if parent is not None and parent not in seen:
                        said = "comes after it" if parent in targets else "is in no bundle"
                        damages.append(f"version {one.target.version!r}: its parent {parent.version!r} {said}")
                if one.target in seen or self._refs.versions[one.target.version].target != one.target:
                    damages.append(f"version {one.target.version!r} is there twice")
                seen.add(one.target)
        named = {f"branch {name!r}": target for name, target in self._refs.branches.items()}
        named |= {f"tag {name!r}": target for name, (target, _) in self._refs.tags.items()}
        damages += [
            f"{what} is at {at.version!r}, which is in no bundle" for what, at in named.items() if at not in seen
        ]

    def _check_bundle(self, bundle: SentBundle, path: Path) -> None:
        self._folder.fetch(bundle, path)
        try:
            opened = Bundle(str(path))
        except HyperslabError as error:
            raise DamagedFile(f"{self._folder.url}/{bundle.name} is no bundle: {error}") from error
        with opened, as_damage(opened):
            held = opened.said["versions"]
            if [Target.of(one["target"]) for one in held] != [one.target for one in bundle.versions]:
                raise DamagedFile(f"{self._folder.url}/{bundle.name} holds other versions than refs says")
            for array in opened.said["stacks"]:
                self._has.setdefault(array, set()).update(opened.rows(array))
            for number, said in enumerate(held):
                for array in said["arrays"]:
                    hashes = np.asarray(opened.array(f"versions/{number}/{array}")[...]["hash"])
                    needed = {one.tobytes() for one in hashes[hashes.any(axis=1)]}
                    self._needs[Target.of(said["target"]).version, array] = needed
        self._found.nbytes += bundle.nbytes


def _names(bundle: SentBundle) -> str:
    return ", ".join(one.target.version for one in bundle.versions)
