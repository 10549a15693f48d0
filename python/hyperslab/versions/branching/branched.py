"""`Branched`: the branches and tags of a file with versions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

from hyperslab.errors import UsageError
from hyperslab.journal.signals import defer_signals
from hyperslab.meant import meant
from hyperslab.versions.inspect.inspected import Inspected
from hyperslab.versions.layout.names import VERSIONS, check_name, stored_time
from hyperslab.versions.layout.refs import (
    MAIN,
    Branch,
    Refs,
    Tag,
    Target,
    check_readable,
    check_ref_name,
    target_of,
)
from hyperslab.versions.layout.seen import SeenVersions
from hyperslab.versions.layout.table import VersionKey


@dataclass(frozen=True)
class Place:
    """Where a new version goes: its parent, whether it becomes the current one, and the branch that moves to it.

    `checked_out` is the branch that is checked out afterwards, or None.
    """

    parent: str | None
    is_current: bool
    branch: str | None
    checked_out: str | None


class Branched(Inspected):
    """A file with versions that has branches and tags; `VersionedFile` is one.

    A branch names the version at its end and moves on with each version that is made on it. A tag names one version for
    good. The current version is the head of the branch that is checked out: that is how versioned-hdf5 works on it.
    """

    _file: Any
    _seen: SeenVersions
    _stores: Any

    def _writable(self) -> None:
        """Refuse to change a file that cannot be written."""
        raise NotImplementedError

    def _change(self, what: str) -> AbstractContextManager[None]:
        """Make all of a change, or nothing of it."""
        raise NotImplementedError

    def _flush(self) -> None:
        """Commit what was written."""
        raise NotImplementedError

    def _parent(self, asked: str | None) -> str | None:
        """The version that a new one starts from."""
        raise NotImplementedError

    # --------------------------------------------------------------------------------------------------- questions

    @property
    def branches(self) -> dict[str, Branch]:
        """The branches by name. A file whose branches were never named has one, `main`: its current version."""
        return self._seen.refs.all_branches(self.table)

    @property
    def tags(self) -> dict[str, Tag]:
        """The tags by name."""
        return self._seen.refs.all_tags(self.table)

    @property
    def refs(self) -> Refs:
        """What the list of fingerprints says of branches, tags and merges."""
        return self._seen.refs

    @property
    def checked_out(self) -> str | None:
        """The name of the branch that is checked out; None if the current version is not the head of a branch."""
        ours = self._ours()
        return None if ours is None or ours.problem is not None else ours.name

    def _ours(self) -> Branch | None:
        """The branch that was checked out last, whatever other software did since."""
        return None if self._seen.refs.checked_out is None else self._known(self._seen.refs.checked_out)

    def _known(self, name: str) -> Branch | None:
        """A branch by name; None if there is none. The others, which may be many, are not looked at."""
        refs = self._seen.refs
        if not refs.is_explicit:
            return refs.all_branches(self.table).get(name)
        return refs.branch(name, self.table) if name in refs.branches else None

    def find(self, key: VersionKey) -> str:
        """The name of the version that a key means: as in `file[key]`.

        Raises
        ------
        KeyError
            The version does not exist.
        IndexError
            The current version has fewer ancestors.
        """
        self.table  # noqa: B018 -- what a failed change left is undone first
        return self._seen.find(key)

    # ----------------------------------------------------------------------------------------------------- changes

    def checkout(self, branch: str) -> str:
        """Check out a branch: its head becomes the current version, and new versions go on it.

        Returns
        -------
        str
            The name of the current version.

        Raises
        ------
        ValueError
            The branch does not exist.
        UsageError
            The branch is dangling: its versions were deleted.
        """
        self._writable()
        head = self._head(branch)
        self._put({"checked_out": branch}, f"branch {branch!r}", head)
        return head

    def create_branch(self, name: str, at: VersionKey = None, *, move: bool = False) -> None:
        """Create a branch. This does not check it out.

        Parameters
        ----------
        name : str
            The name of the branch.
        at : str, int, datetime.datetime, numpy.datetime64 or None
            The version at its head, as in `file[key]`; by default the current one.
        move : bool
            Move the branch if it exists. If it is checked out, the version becomes the current one.

        Raises
        ------
        ValueError
            The name is taken, or a branch cannot have it.
        KeyError
            The version does not exist.
        """
        self._writable()
        known, version = self._known(name), self.find(at)
        if known is None:
            self._check_new(name)
        elif not move:
            raise ValueError(f"there is a branch {name!r} in {self.path} already: move it with move=True")
        is_ours = known is not None and known.is_checked_out
        said = {"branches": {name: list(target_of(version, self.table))}}
        self._put(said, f"branch {name!r}", version if is_ours else None)

    def delete_branch(self, name: str) -> None:
        """Delete a branch. Its versions stay.

        Raises
        ------
        ValueError
            The branch does not exist, or is checked out.
        """
        self._writable()
        found = self._branch(name)
        if found.is_checked_out:
            raise ValueError(f"branch {name!r} of {self.path} is checked out: check out another one first")
        self._put({"branches": {name: None}}, f"branch {name!r}")

    def create_tag(
        self, name: str, at: VersionKey = None, *, message: str | None = None, author: str | None = None
    ) -> None:
        """Give a version a name for good. Tags never move, and deleting the version then needs `force=True`.

        Parameters
        ----------
        name : str
            The name of the tag.
        at : str, int, datetime.datetime, numpy.datetime64 or None
            The version, as in `file[key]`; by default the current one.
        message : str, optional
            Why you tag it.
        author : str, optional
            Who you are.

        Raises
        ------
        ValueError
            The name is taken, or a tag cannot have it.
        KeyError
            The version does not exist.
        """
        self._writable()
        self._check_new(name)
        texts = {"time": stored_time(None), "message": message, "author": author}
        said = {key: checked_text(key, text) for key, text in texts.items() if text is not None}
        tag = {"target": list(target_of(self.find(at), self.table)), **said}
        self._put({"tags": {name: tag}}, f"tag {name!r}")

    def delete_tag(self, name: str) -> None:
        """Delete a tag. Its version stays.

        Raises
        ------
        ValueError
            The tag does not exist.
        """
        self._writable()
        if name not in self.tags:
            raise ValueError(f"there is no tag {name!r} in {self.path}{meant(name, self.tags)}")
        self._put({"tags": {name: None}}, f"tag {name!r}")

    def _check_new(self, name: str) -> None:
        check_ref_name(name)
        taken = {"version": self.table, "tag": self._seen.refs.tags, "branch": self._seen.refs.branches}
        for kind in (kind for kind, names in taken.items() if name in names):
            raise ValueError(f"there is a {kind} {name!r} in {self.path} already: choose another name")

    def _branch(self, name: str) -> Branch:
        known = self._known(name)
        if known is None:
            raise ValueError(f"there is no branch {name!r} in {self.path}{meant(name, self.branches)}")
        return known

    def _head(self, name: str) -> str:
        branch = self._branch(name)
        if branch.version is None:
            raise UsageError(f"branch {name!r} of {self.path} is {branch.problem}: move it to a version, or delete it")
        return branch.version

    def _put(self, said: Mapping[str, Any], what: str, current: str | None = None) -> None:
        """Write refs and, if it is named, the current version, in one commit."""
        refs = self._seen.refs
        if said:
            check_readable(refs, self.path)
        entries = self._entries(said)
        with defer_signals(), self._change(what):
            if current is not None:
                self._file[VERSIONS].attrs["current_version"] = current
                entries["current"] = current
            self._stores.fingerprints.add(None, **entries)
            self._flush()
        if "current" in entries:
            self._seen.table = self.table.changed(None, current)
        self._seen.refs = refs.changed(entries)

    def _entries(self, said: Mapping[str, Any]) -> dict[str, Any]:
        """What is stored: what changes, what was true of the other branches without being written, and the parents of
        all versions that are named.
        """
        refs, table = self._seen.refs, self.table
        entries = {key: value for key, value in said.items() if key != "branches"}
        branches: dict[str, Any] = {}
        if "branches" in said or "checked_out" in said:
            ours = self._ours()
            is_unwritten = ours is not None and (not refs.is_explicit or ours.version != ours.recorded)
            if ours is not None and ours.version is not None and ours.problem is None and is_unwritten:
                branches[ours.name] = list(target_of(ours.version, table))
            if not refs.is_explicit:
                entries.setdefault("checked_out", MAIN if branches else None)
            branches.update(said.get("branches", {}))
        if branches:
            entries["branches"] = branches
        tags = [tag["target"] for tag in said.get("tags", {}).values() if tag is not None]
        named = [Target.of(one) for one in [*branches.values(), *tags] if one is not None]
        parents = {tuple(one[:2]): one for target in named for one in refs.lineage(target, table)}
        if parents:
            entries["parents"] = list(parents.values())
        return entries

    def restore_refs(self, refs: Refs) -> dict[str, str]:
        """Take over the refs of a damaged file whose versions are here now; for `repair`. Returns those that name none
        of them, with the reasons.
        """
        said, lost = refs.restored(self.table)
        if said:
            with self._change("the branches and tags"):
                self._stores.fingerprints.add(None, **said)
                self._flush()
            self._seen.refs = self._seen.refs.changed(said)
        return lost

    # ------------------------------------------------------------------------------------------- where versions go

    def _place(self, name: str, branch: str | None, asked: str | None, make_current: bool | None) -> Place:
        """Where a new version goes."""
        check_name(name)
        if name in self.table:
            raise ValueError(f"there is a version {name!r} in {self.path} already")
        refs = self._seen.refs
        if branch is None and not refs.is_explicit:
            return Place(self._parent(asked), make_current is not False, None, None)
        check_readable(refs, self.path)
        if name in refs.branches or name in refs.tags or name == branch:
            raise ValueError(
                f"{name!r} is the name of a branch or a tag of {self.path}: choose another for the version"
            )
        if branch is None:
            parent, ours = self._parent(asked), self._ours()
            if make_current is False:
                return Place(parent, False, None, refs.checked_out)
            is_on = ours is not None and ours.problem is None and ours.version == parent
            on = ours.name if ours is not None and is_on else None
            return Place(parent, True, on, on)
        known = self._known(branch)
        is_ours = known is not None and known.is_checked_out
        if known is not None:
            parent = self._head(branch)
            if asked is not None and asked != parent:
                raise ValueError(
                    f"the head of branch {branch!r} is {parent!r}: a version on it cannot start from {asked!r}"
                )
        else:
            self._check_new(branch)
            parent = self._parent(asked)
        is_current = (is_ours or self.table.current is None) if make_current is None else make_current
        if is_ours and not is_current:
            raise ValueError(f"branch {branch!r} is checked out, so its new version is the current one")
        return Place(parent, is_current, branch, branch if is_current else refs.checked_out)

    def _entries_of(self, place: Place, new: Target, merged: Target | None = None) -> dict[str, Any]:
        """What the list of fingerprints says of branches, and of what was merged, when a version is committed."""
        refs, table = self._seen.refs, self.table
        said: dict[str, Any] = {} if merged is None else {"merged": [[*new, *merged]]}
        if place.branch is not None:
            said["branches"] = {place.branch: list(new)}
        is_named = refs.is_explicit or place.branch is not None
        if place.is_current and is_named and (place.checked_out != refs.checked_out or not refs.is_explicit):
            said["checked_out"] = place.checked_out
        if not said:
            return {}
        entries = self._entries(said)
        starts = [] if place.parent is None else [target_of(place.parent, table)]
        above = [
            one for start in (*starts, *([] if merged is None else [merged])) for one in refs.lineage(start, table)
        ]
        if above:
            entries["parents"] = [*entries.get("parents", ()), *above]
        return entries

    def _check_refs_readable(self) -> None:
        """Refuse what depends on branches and tags if they cannot all be read."""
        check_readable(self._seen.refs, self.path)

    def _check_untagged(self, names: Sequence[Any]) -> None:
        """Refuse to delete versions that have tags.

        Raises
        ------
        UsageError
            One of them has one.
        """
        for tag in self.tags.values() if self._seen.refs.tags else ():
            if tag.version in names:
                said = f"version {tag.version!r} of {self.path} has the tag {tag.name!r}"
                raise UsageError(f"{said}: delete the tag first, or delete the version with force")

    def _before(self, entries: Mapping[str, Any]) -> dict[str, Any]:
        """What is to be said of branches if a commit that said something is undone."""
        refs = self._seen.refs
        before: dict[str, Any] = {}
        if "branches" in entries:
            known = refs.branches
            before["branches"] = {name: list(known[name]) if name in known else None for name in entries["branches"]}
        if "checked_out" in entries:
            before["checked_out"] = refs.checked_out
        return before


def version_texts(message: str | None, author: str | None) -> dict[str, str]:
    """The attributes of a version that say why it was made, and by whom."""
    said = {"message": message, "author": author}
    return {key: checked_text(key, text) for key, text in said.items() if text is not None}


def checked_text(name: str, text: Any) -> str:
    """Check a message or the name of an author.

    Raises
    ------
    TypeError
        It is not text.
    ValueError
        HDF5 cannot store it.
    """
    if not isinstance(text, str):
        raise TypeError(f"{name} is {text!r}, but must be text")
    if "\0" in text:
        raise ValueError(f"{name} has a NUL in it, where HDF5 would cut it off: leave it out")
    text.encode()
    return text
