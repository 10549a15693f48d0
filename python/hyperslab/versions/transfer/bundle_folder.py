"""`BundleFolder`: versions below a URL of an object store. One HDF5 object there can only be replaced as a whole, so
they are bundles, which never change, and an object `refs`, which a push replaces last, by compare-and-swap.

`refs` is one record like those of the list of fingerprints. It names the bundles in the order in which they can be
applied, the versions in each, branches and tags. A bundle's name is its SHA-256.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from hyperslab.archive.far.objects import REMEDY, ObjectFolder, Stamp
from hyperslab.archive.far.remote import Remote
from hyperslab.cached import cached_property
from hyperslab.errors import DamagedFile, NoSuchRemoteFile, Unsupported, UsageError
from hyperslab.versions.branching.ancestry import reached
from hyperslab.versions.layout.fingerprint_log import DAMAGED, packed, record_body, record_positions
from hyperslab.versions.layout.refs import MAIN, TAG_TEXTS, Target
from hyperslab.versions.transfer.bundling import MARK

FORMAT = 1
REFS = "refs"
MARKED = "hyperslab-bundles"  # an object that always has the same content, by which conditional writes are tried
MOST_REFS_NBYTES = 1 << 28
MOST_BUNDLE_NBYTES = 1 << 45


class SentVersion(NamedTuple):
    """A version in a bundle: its parents, and a mark of what its arrays hold."""

    target: Target
    parent: Target | None
    merged: Target | None
    mark: str

    @classmethod
    def of(cls, said: Mapping[str, Any]) -> SentVersion:
        """A version as it is stored."""
        parent, merged = (None if said[key] is None else Target.of(said[key]) for key in ("parent", "merged"))
        return cls(Target.of(said["target"]), parent, merged, str(said["mark"]))


class SentBundle(NamedTuple):
    """A bundle below the URL: its SHA-256 in hexadecimal, its length, and its versions, each after its parents."""

    digest: str
    nbytes: int
    versions: tuple[SentVersion, ...]

    @property
    def name(self) -> str:
        """The name of its object."""
        return f"bundles/{self.digest}.bundle"

    @classmethod
    def of(cls, said: Mapping[str, Any]) -> SentBundle:
        """A bundle as it is stored."""
        digest, nbytes = said["sha256"], said["nbytes"]
        if not isinstance(digest, str) or not re.fullmatch("[0-9a-f]{64}", digest):
            raise ValueError(f"{digest!r} is not the hash of a bundle")
        if type(nbytes) is not int or not 0 < nbytes < MOST_BUNDLE_NBYTES:
            raise ValueError(f"{nbytes!r} is not the length of a bundle")
        return cls(digest, nbytes, tuple(map(SentVersion.of, said["versions"])))


@dataclass(frozen=True)
class FolderRefs:
    """What `refs` says: the bundles, branches and tags, and how each array is stored (the mark of its description)."""

    bundles: tuple[SentBundle, ...] = ()
    branches: Mapping[str, Target] = field(default_factory=dict)
    tags: Mapping[str, tuple[Target, Mapping[str, Any]]] = field(default_factory=dict)
    checked_out: str = MAIN
    arrays: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, stored: bytes) -> FolderRefs:
        """Read the bytes of `refs`.

        Raises
        ------
        ValueError, TypeError, KeyError
            They are not as they were written.
        Unsupported
            A later release wrote them.
        """
        [(at, length)] = record_positions(stored)
        said = record_body(stored, at, length)
        if said[MARK] != FORMAT:
            raise Unsupported(f"bundles of format {said[MARK]!r}; hyperslab knows {FORMAT}: update hyperslab")
        tags = {name: (Target.of(one["target"]), _texts(one)) for name, one in said["tags"].items()}
        branches = {name: Target.of(one) for name, one in said["branches"].items()}
        bundles = tuple(map(SentBundle.of, said["bundles"]))
        arrays = {path: str(mark) for path, mark in said["arrays"].items()}
        return cls(bundles, branches, tags, str(said["checked_out"]), arrays)

    def packed(self) -> bytes:
        """These refs as they are stored."""
        bundles = [
            {"sha256": one.digest, "nbytes": one.nbytes, "versions": [version._asdict() for version in one.versions]}
            for one in self.bundles
        ]
        tags = {name: {**texts, "target": target} for name, (target, texts) in self.tags.items()}
        said = {"bundles": bundles, "branches": self.branches, "tags": tags, "arrays": self.arrays}
        return packed({MARK: FORMAT, **said, "checked_out": self.checked_out})

    @cached_property
    def versions(self) -> dict[str, SentVersion]:
        """All versions by their names."""
        return {one.target.version: one for bundle in self.bundles for one in bundle.versions}

    @cached_property
    def targets(self) -> frozenset[Target]:
        """All versions."""
        return frozenset(one.target for bundle in self.bundles for one in bundle.versions)

    def ancestors(self, heads: Iterable[str]) -> set[str]:
        """Some versions and all before any of them, by their names."""
        return reached(heads, self._parents_of)

    def _parents_of(self, name: str) -> list[str]:
        one = self.versions.get(name)
        return [] if one is None else [each.version for each in (one.parent, one.merged) if each is not None]

    def check_alike(self, target: Target, url: str, mine: str) -> None:
        """Refuse a version whose name another version has here.

        Raises
        ------
        UsageError
            The name has another time here.
        """
        known = self.versions.get(target.version)
        if known is not None and known.target != target:
            there = f"{url} has a version {target.version!r} of {known.target.timestamp}"
            raise UsageError(f"{there}, and {mine} another one, of {target.timestamp}: rename one of them")


class BundleFolder:
    """The bundles below a URL.

    Parameters
    ----------
    remote : Remote
        The URL, with its options.

    Raises
    ------
    MissingLibrary
        obstore is not installed.
    UsageError
        The URL or an option is not known.
    """

    def __init__(self, remote: Remote) -> None:
        self.remote = remote
        self.objects = ObjectFolder(remote, "versions below a URL")
        self.url = self.objects.url

    def refs(self) -> tuple[FolderRefs, Stamp | None]:
        """What the folder holds, and the stamp that tells whether that changed; nothing and None if it is new.

        Raises
        ------
        DamagedFile
            The object `refs` is not as it was written.
        """
        found = self.objects.read(REFS, MOST_REFS_NBYTES)
        if found is None:
            return FolderRefs(), None
        try:
            return FolderRefs.of(found[0]), found[1]
        except Unsupported as error:
            raise Unsupported(f"{self.url} has {error.args[0]}") from None
        except (*DAMAGED, RecursionError) as error:
            raise DamagedFile(f"{self.url}/{REFS} is not as it was written ({error}): {REMEDY}") from None

    def existing_refs(self) -> FolderRefs:
        """What the folder holds.

        Raises
        ------
        NoSuchRemoteFile
            Nothing was pushed there.
        """
        refs, stamp = self.refs()
        if stamp is None:
            raise NoSuchRemoteFile(
                f"there are no versions at {self.url}: `hyperslab versions push FILE URL` sends some"
            )
        return refs

    def swap(self, refs: FolderRefs, old: Stamp | None, *, is_guarded: bool) -> bool:
        """Replace `refs` if nobody else has. Returns whether that was so. Without a guard, the store cannot tell."""
        if is_guarded:
            return self.objects.swap(REFS, refs.packed(), old)
        if self.refs()[1] != old:
            return False
        self.objects.replace(REFS, refs.packed())
        return True

    def is_guarded(self) -> bool:
        """Whether the store compares and swaps. Writes the object that marks the folder."""
        return self.objects.is_guarded(MARKED, b"bundles of versions, written by hyperslab\n")

    def put(self, bundle: SentBundle, path: Path) -> None:
        """Write a bundle, unless it is there already, from a push that was stopped."""
        if self.objects.size(bundle.name) != bundle.nbytes:
            self.objects.write(bundle.name, path)

    def fetch(self, bundle: SentBundle, path: Path) -> None:
        """Copy a bundle to a file.

        Raises
        ------
        DamagedFile
            It is missing, or not as it was written.
        """
        if self.objects.fetch(bundle.name, path, bundle.nbytes) != bundle.digest:
            raise DamagedFile(
                f"{self.url}/{bundle.name} does not have the hash that is its name: it was changed; {REMEDY}"
            )


def _texts(tag: Mapping[str, Any]) -> dict[str, str]:
    return {key: str(tag[key]) for key in TAG_TEXTS if key in tag}
