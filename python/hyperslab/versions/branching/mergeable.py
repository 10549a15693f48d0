"""`Mergeable`: a file with versions whose branches can be merged."""

from __future__ import annotations

import uuid
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from hyperslab.errors import UsageError
from hyperslab.versions.branching.ancestry import ancestors, children_first, common_ancestor
from hyperslab.versions.branching.branched import Branched, Place, version_texts
from hyperslab.versions.layout.names import Time
from hyperslab.versions.layout.refs import Target, target_of
from hyperslab.versions.layout.table import VersionKey
from hyperslab.versions.stage.staged_group import StagedGroup

if TYPE_CHECKING:
    from hyperslab.archive.tree.indexing import Key
    from hyperslab.versions.branching.blaming import Blame, Change
    from hyperslab.versions.branching.element_blame import ElementBlame
    from hyperslab.versions.branching.merging import Conflict, Resolve


@dataclass(frozen=True)
class Merge:
    """What a merge did.

    `version` is the head of the branch now, `merged` the version that was merged into it, and `base` the nearest one
    that both came from. `how` is "merged" for a new version, "moved" if the branch only had to move on to `merged`, and
    "nothing" if it had all of it already. `conflicts` are those that were settled.
    """

    version: str
    merged: str
    base: str | None
    how: Literal["merged", "moved", "nothing"]
    conflicts: tuple[Conflict, ...] = ()


class Mergeable(Branched):
    """A file with versions whose branches can be merged; `VersionedFile` is one."""

    def _staged(
        self, name: str, place: Place, texts: dict[str, str], timestamp: Time | None, merged: Target | None = None
    ) -> AbstractContextManager[StagedGroup]:
        """Stage a version, and commit it at the end of the `with` statement."""
        raise NotImplementedError

    def merge(
        self,
        other: VersionKey,
        into: str | None = None,
        *,
        conflict: Resolve = "raise",
        name: str | None = None,
        message: str | None = None,
        author: str | None = None,
        timestamp: Time | None = None,
    ) -> Merge:
        """Merge a version into a branch: a new version with what both changed since the version that both come from.

        Chunks that only one side changed are neither read nor written. Chunks that both changed are merged element by
        element. Shapes (axis by axis), attributes, names and deletions are merged as values.

        Parameters
        ----------
        other : str, int, datetime.datetime or numpy.datetime64
            The branch, tag or version to merge, as in `file[key]`.
        into : str, optional
            The branch that gets the new version; by default the one that is checked out.
        conflict : {"raise", "ours", "theirs"} or callable
            What to do if both sides changed the same in different ways: raise an error, or take it from the branch or
            from the other version. A function gets the conflicting elements before both changes, in ours and in theirs,
            as three arrays with one axis, and returns as many new ones; what is no element still raises an error.
        name : str, optional
            The name of the new version; by default a new unique name.
        message, author : str, optional
            Attributes of the new version with these names.
        timestamp : datetime.datetime or numpy.datetime64, optional
            The time of the commit, in UTC; by default now.

        Returns
        -------
        Merge
            What was done. If the branch has no version of its own since, it only moves on, unless you give a name.

        Raises
        ------
        MergeConflict
            Both sides changed the same; `conflicts` lists what.
        KeyError
            The other version does not exist.
        ValueError
            The branch does not exist, or `conflict` is none of these.
        DamagedFile
            A version cannot be read.
        """
        if not callable(conflict) and conflict not in ("raise", "ours", "theirs"):
            raise ValueError(f"{conflict!r} settles no conflict: use 'raise', 'ours', 'theirs' or a function")
        self._writable()
        self._check_whole()
        branch = self.checked_out if into is None else into
        if branch is None:
            raise UsageError(f"no branch of {self.path} is checked out: name the one to merge into")
        ours, theirs, table, refs = self._head(branch), self.find(other), self.table, self._seen.refs
        base = common_ancestor(ours, theirs, table, refs)
        if theirs == ours or theirs in ancestors(ours, table, refs):
            return Merge(ours, theirs, base, "nothing")
        if base == ours and name is None:
            self.create_branch(branch, theirs, move=True)
            return Merge(theirs, theirs, base, "moved")
        chosen = str(uuid.uuid4()) if name is None else name
        place, texts = self._place(chosen, branch, None, None), version_texts(message, author)
        with self._staged(chosen, place, texts, timestamp, target_of(theirs, table)) as staged:
            conflicts = self._merge_into(staged, base, ours, theirs, conflict)
        return Merge(chosen, theirs, base, "merged", tuple(conflicts))

    def merged_into(self, version: str) -> str | None:
        """The other parent of a merge, or its nearest ancestor that exists; None if the version is no merge."""
        return self._seen.refs.second_parent(version, self.table)

    def graph(self) -> tuple[list[str], dict[str, list[str]]]:
        """All versions, each after those that were made from it; and the parents of each, which exist."""
        table, refs = self.table, self._seen.refs
        return children_first(table, table, refs), {name: refs.parents_of(name, table) for name in table}

    def blame(self, array: str, selection: Key = ..., version: VersionKey = None) -> Blame:
        """Find the version that last changed each chunk of an array, and who made it and why. No chunk is read.

        Parameters
        ----------
        array : str
            The path of the array.
        selection : index
            The elements whose chunks you ask for, as in `array[selection]`; by default all.
        version : str, int, datetime.datetime, numpy.datetime64 or None
            The version to look at, as in `file[key]`; by default the current one.

        Returns
        -------
        Blame
            The chunks with the versions that last changed them. What came with a merge is its other parent's.

        Raises
        ------
        KeyError
            The version or the array does not exist.
        DamagedFile
            The array's mappings are damaged.
        """
        from hyperslab.versions.branching.blaming import blame

        self._check_whole()
        return blame(self.table, self._seen.refs, self.find(version), array.strip("/"), selection)

    def blame_elements(self, array: str, selection: Key = ..., version: VersionKey = None) -> ElementBlame:
        """Find the version that last changed each element of an array, and who made it and why.

        Only chunks that differ between versions are read. An element that got the value back that it had before was
        changed, but by the version that gave it back. Elements are compared bit by bit.

        Parameters
        ----------
        array : str
            The path of the array.
        selection : index
            The elements that you ask for, as in `array[selection]`; by default all.
        version : str, int, datetime.datetime, numpy.datetime64 or None
            The version to look at, as in `file[key]`; by default the current one.

        Returns
        -------
        ElementBlame
            For each element the version that last changed it. What came with a merge is its other parent's.

        Raises
        ------
        KeyError
            The version or the array does not exist.
        UsageError
            There are too many elements in these chunks.
        DamagedFile
            The array is damaged.
        """
        from hyperslab.versions.branching.element_blame import blame_elements

        self._check_whole()
        return blame_elements(self.table, self._seen.refs, self.find(version), array.strip("/"), selection)

    def history(self, array: str, selection: Key = ..., version: VersionKey = None) -> list[Change]:
        """All versions that changed any chunk of a selection, newest first. No chunk is read.

        Parameters
        ----------
        array : str
            The path of the array.
        selection : index
            The elements whose chunks you ask for, as in `array[selection]`; by default all.
        version : str, int, datetime.datetime, numpy.datetime64 or None
            The version whose past to look at, as in `file[key]`; by default the current one.

        Returns
        -------
        list of Change
            The versions, with the number of chunks that each changed. A merge counts if it has chunks that neither of
            its parents has.

        Raises
        ------
        KeyError
            The version or the array does not exist.
        DamagedFile
            The array's mappings are damaged.
        """
        from hyperslab.versions.branching.blaming import history

        self._check_whole()
        return history(self.table, self._seen.refs, self.find(version), array.strip("/"), selection)

    def _merge_into(
        self, staged: StagedGroup, base: str | None, ours: str, theirs: str, conflict: Resolve
    ) -> list[Conflict]:
        from hyperslab.versions.branching.merging import Merging, Three
        from hyperslab.versions.commit.attributes import as_in_hdf5
        from hyperslab.versions.inspect.chunk_maps import ChunkMaps

        maps = ChunkMaps(self.path)
        three = Three(None if base is None else maps[base], maps[ours], maps[theirs])
        merging = Merging(staged, three, self._seen[theirs], conflict, as_in_hdf5)
        merging.merge()
        return merging.conflicts
