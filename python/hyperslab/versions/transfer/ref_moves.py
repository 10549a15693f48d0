"""Where branches and tags go that come from somewhere else: a branch only moves forward, a tag never."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass, field
from typing import Any

from hyperslab.versions.branching.ancestry import ancestors
from hyperslab.versions.file import VersionedFile
from hyperslab.versions.layout.refs import Target, check_ref_name, exists

ELSEWHERE = "the tag names another version here, or its name is taken"


@dataclass
class Taken:
    """What a file, or a folder of bundles at a URL, took over.

    Attributes
    ----------
    path
        The file or URL that it went to.
    versions
        The new versions, in the order in which they came.
    chunk_count
        The chunks that came with them.
    branches, tags
        The branches that moved, or are new, with their versions; the tags that are new.
    diverged
        Branches and tags that stayed where they are, with the reason: they name other versions here.
    is_guarded
        False if it went to a store that cannot compare and swap: let only one push go there at a time.
    """

    path: str
    versions: list[str] = field(default_factory=list)
    chunk_count: int = 0
    branches: dict[str, str] = field(default_factory=dict)
    tags: dict[str, str] = field(default_factory=dict)
    diverged: dict[str, str] = field(default_factory=dict)
    is_guarded: bool = True


def why_not_forward(target: str, mine: str, before: Callable[[str], Set[str]]) -> str | None:
    """Why a branch cannot move from one version to another; None if it can. `before` gives a version and its ancestors,
    by name.
    """
    if mine in before(target):
        return None
    if target in before(mine):
        return f"it is ahead here, at {mine!r}"
    return f"it has versions of its own here: merge {target!r}"


def move_refs(
    file: VersionedFile,
    branches: Mapping[str, Target],
    tags: Mapping[str, Mapping[str, Any]],
    checked_out: str,
    taken: Taken,
) -> None:
    """Move the branches of a file on, and add tags, in one commit.

    Parameters
    ----------
    file : VersionedFile
        The file, which has the versions.
    branches : Mapping[str, Target]
        Where the branches are.
    tags : Mapping[str, Mapping[str, Any]]
        The tags, as they are stored.
    checked_out : str
        The branch to check out, if the file has no current version.
    taken : Taken
        Gets what was done.
    """
    moved: dict[str, Any] = {}
    for name, target in branches.items():
        mine = file.branches.get(name)
        reason = _why_not(file, name, target, None if mine is None else mine.version)
        if reason is not None:
            taken.diverged[name] = reason
        elif mine is None or mine.version != target.version:
            moved[name] = list(target)
    added = {}
    for name, tag in tags.items():
        known, target = file.tags.get(name), Target.of(tag["target"])
        if known is None and _why_not(file, name, target, None) is None:
            added[name] = tag
        elif known is None or file.refs.tags[name][0] != target:
            taken.diverged[name] = ELSEWHERE
    _put(file, moved, added, checked_out)
    taken.branches = {name: target[0] for name, target in moved.items()}
    taken.tags = {name: tag["target"][0] for name, tag in added.items()}


def _why_not(file: VersionedFile, name: str, target: Target, mine: str | None) -> str | None:
    """Why a branch is not moved; None if it can be."""
    if not exists(target, file.table):
        return f"version {target.version!r} did not come with it"
    if mine is None:
        check_ref_name(name)
        is_dangling = name in file.branches and file.branches[name].version is None
        return "its name is taken" if name in file.table or name in file.tags or is_dangling else None
    return why_not_forward(target.version, mine, lambda one: ancestors(one, file.table, file.refs))


def _put(file: VersionedFile, branches: dict[str, Any], tags: dict[str, Any], checked_out: str) -> None:
    if not branches and not tags:
        return
    ours = file.checked_out
    current = branches[ours][0] if ours in branches else None
    said: dict[str, Any] = {**({"branches": branches} if branches else {}), **({"tags": tags} if tags else {})}
    if file.table.current is None and branches:
        first = checked_out if checked_out in branches else next(iter(branches))
        said["checked_out"], current = first, branches[first][0]
    file._put(said, "the branches and tags", current)
