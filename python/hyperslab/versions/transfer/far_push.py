"""`push_to`: sends versions to a folder of bundles at a URL. Bundles come first; nobody sees them until `refs`, which
names them, is replaced by compare-and-swap. So after a kill nothing has changed, and the next push goes on.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from hashlib import file_digest, sha256
from pathlib import Path
from typing import Any

from hyperslab.errors import DamagedFile, RemoteError, UsageError
from hyperslab.progress import Progress
from hyperslab.scratch import scratch_below
from hyperslab.versions.file import VersionedFile
from hyperslab.versions.inspect.chunk_maps import ChunkMaps, VersionMap
from hyperslab.versions.inspect.chunk_stack import ChunkStack, chunk_stacks
from hyperslab.versions.layout.fingerprints import content, description, keys_of
from hyperslab.versions.layout.refs import Target, target_of
from hyperslab.versions.transfer.bundle_folder import BundleFolder, FolderRefs, SentBundle, SentVersion
from hyperslab.versions.transfer.bundling import Wanted, unsent, write_bundle
from hyperslab.versions.transfer.ref_moves import ELSEWHERE, Taken, why_not_forward

BUNDLE_NBYTES = 256 << 20  # of the chunks in a bundle, decoded; a longer push makes several bundles
ATTEMPTS = 100  # each that fails means that the push of somebody else was complete


def push_to(
    folder: BundleFolder, source: str | os.PathLike[str], names: Iterable[str], progress: Progress | None
) -> Taken:
    """Send branches, tags and versions to a folder of bundles, with all versions before them, and the chunks that no
    version which both have has.

    Raises
    ------
    KeyError
        The file has no such branch, tag or version.
    UsageError
        The folder has another version of the same name, or an array is stored in another way there.
    DamagedFile
        A version cannot be read, or is not what the folder has under its name and time.
    RemoteError
        The object store does not do what it is asked for.
    """
    with VersionedFile(source) as one:
        wanted = Wanted.of(one.table, one.refs, names)
        pushing = _Pushing(folder, one, wanted, progress)
        return pushing.run()


@dataclass
class _Pushing:
    folder: BundleFolder
    file: VersionedFile
    wanted: Wanted
    progress: Progress | None
    bundles: list[SentBundle] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._stacks, _ = chunk_stacks(self.file.path)
        self._maps = ChunkMaps(self.file.path)
        self._taken = Taken(self.folder.url)

    def run(self) -> Taken:
        refs, stamp = self.folder.refs()
        self._taken.is_guarded = self.folder.is_guarded()
        self._check(refs)
        self._send(refs)
        for _ in range(ATTEMPTS):
            after = self._after(refs)
            if after == refs and stamp is not None:
                return self._taken
            if self.folder.swap(after, stamp, is_guarded=self._taken.is_guarded):
                return self._taken
            refs, stamp = self.folder.refs()
            if refs == after:  # it was we: the answer to the first attempt was lost
                return self._taken
            self._check(refs)
        raise RemoteError(f"{self.folder.url}: others push all the time, {ATTEMPTS} times before this: push again")

    # ------------------------------------------------------------------------------------------------ what is refused

    def _check(self, refs: FolderRefs) -> None:
        """Refuse to add versions to others that are not those that they were made from."""
        table, file = self.file.table, self.file
        sent = unsent(table, file.refs, self.wanted, refs.targets)
        for name in sent:
            refs.check_alike(target_of(name, table), self.folder.url, file.path)
        for path, stack in self._stacks.items():
            if refs.arrays.get(path, described(stack)) != described(stack):
                said = f"{path} has other chunks, types or fill values in {file.path} than at {self.folder.url}"
                raise UsageError(f"{said}: change them with modify_metadata, or push to another URL")
        around = {parent for name in sent for parent in file.refs.parents_of(name, table)} - set(sent)
        for name in sorted(around):
            if version_mark(self._maps[name], self._stacks) != refs.versions[name].mark:
                said = f"version {name!r} holds something else in {file.path} than at {self.folder.url}"
                raise DamagedFile(f"{said}: `hyperslab versions verify` says whether the file is damaged")

    # ------------------------------------------------------------------------------------------------- what is sent

    def _send(self, refs: FolderRefs) -> None:
        """Write the bundles of the versions that the folder lacks."""
        table, have = self.file.table, set(refs.targets)
        lacking = unsent(table, self.file.refs, self.wanted, have)
        if not lacking:
            return
        both = [name for name in table if target_of(name, table) in have]
        known = {path: set[bytes]() for path in self._stacks}
        self._know(both, known)
        while not self._taken.versions or len(self._taken.versions) < len(lacking):
            sent = self._bundle(have, known, len(lacking))
            have.update(target_of(name, table) for name in sent)
            self._know(sent, known)
            self._taken.versions += sent

    def _bundle(self, have: set[Target], known: Mapping[str, set[bytes]], count: int) -> list[str]:
        """Write one bundle. Returns its versions."""
        table, refs = self.file.table, self.file.refs
        with scratch_below(Path(tempfile.gettempdir())) as made_in:
            made = made_in / "bundle.h5"
            said = write_bundle(table, refs, self.wanted, made, have, known, BUNDLE_NBYTES)
            names = [one["target"][0] for one in said["versions"]]
            if self.progress is not None:
                self.progress(names[-1], len(self._taken.versions), count)
            with made.open("rb") as opened:
                digest = file_digest(opened, "sha256").hexdigest()
            bundle = SentBundle(digest, made.stat().st_size, tuple(map(self._sent, said["versions"])))
            self.folder.put(bundle, made)
        self.bundles.append(bundle)
        self._taken.chunk_count += said["chunk_count"]
        return names

    def _sent(self, said: Mapping[str, Any]) -> SentVersion:
        mark = version_mark(self._maps[said["target"][0]], self._stacks)
        return SentVersion.of({**said, "mark": mark})

    def _know(self, names: list[str], known: Mapping[str, set[bytes]]) -> None:
        """Add the hashes of the chunks of some versions."""
        used: dict[str, set[int]] = {path: set() for path in self._stacks}
        last: dict[str, Any] = {}
        for version in self._maps.each(names):
            for path, array in version.arrays.items():
                if path in used and last.get(path) is not array:
                    used[path].update(array.used_slots.tolist())
                    last[path] = array
        for path, slots in used.items():
            rows = self._stacks[path].rows
            its = rows["shape"][:, 0] // self._stacks[path].chunk_shape[0]
            known[path].update(rows["hash"][row].tobytes() for row, slot in enumerate(its.tolist()) if slot in slots)

    # ------------------------------------------------------------------------------------------------- what they name

    def _after(self, before: FolderRefs) -> FolderRefs:
        """What the folder holds after this push. Branches and tags that cannot move are noted."""
        known = {bundle.digest for bundle in before.bundles}
        bundles = (*before.bundles, *(one for one in self.bundles if one.digest not in known))
        arrays = {path: described(stack) for path, stack in self._stacks.items()}
        refs = replace(before, bundles=bundles, arrays={**arrays, **before.arrays} if self.bundles else before.arrays)
        self._taken.branches, self._taken.tags, self._taken.diverged = {}, {}, {}
        branches, tags = dict(before.branches), dict(before.tags)
        for name, target in self.wanted.branches.items():
            reason = _why_not(refs, name, target)
            if reason is not None:
                self._taken.diverged[name] = reason
            elif branches.get(name) != target:
                branches[name] = target
                self._taken.branches[name] = target.version
        for name, (target, texts) in self.wanted.tags.items():
            if name in tags and tags[name][0] == target:
                continue
            if name in tags or name in branches or name in refs.versions:
                self._taken.diverged[name] = ELSEWHERE
            else:
                tags[name] = target, texts
                self._taken.tags[name] = target.version
        checked_out = before.checked_out
        if not before.branches and branches:
            ours = self.file.checked_out
            checked_out = ours if ours in branches else next(iter(branches))
        return replace(refs, branches=branches, tags=tags, checked_out=checked_out)


def _why_not(refs: FolderRefs, name: str, target: Target) -> str | None:
    """Why a branch of the folder is not moved; None if it can be."""
    mine = refs.branches.get(name)
    if mine is None:
        return "its name is taken" if name in refs.versions or name in refs.tags else None
    reason = why_not_forward(target.version, mine.version, lambda one: refs.ancestors([one]))
    return None if reason is None else reason.replace(f"merge {target.version!r}", "pull, merge, and push again")


def described(stack: ChunkStack) -> str:
    """The mark of how an array is stored, in hexadecimal."""
    fill = None if stack.raw.dtype.hasobject else stack.fill
    return description(stack.raw.dtype, stack.chunk_shape, fill).hex()


def version_mark(version: VersionMap, stacks: Mapping[str, ChunkStack]) -> str:
    """A short hash of what the arrays of a version hold: their names, shapes, and the hashes of their chunks."""
    digest = sha256()
    for path, array in sorted(version.arrays.items()):
        held = b""
        if array.slots is not None and path in stacks:
            keys = keys_of(stacks[path].rows, stacks[path].chunk_shape[0])
            held = content(array.shape, array.slots, keys)
        digest.update(path.encode("utf-8", "surrogateescape") + b"\0" + repr(array.shape).encode() + held)
    return digest.hexdigest()[:32]
