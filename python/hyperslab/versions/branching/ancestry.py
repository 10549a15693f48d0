"""Versions as a graph: a version has a parent, and a second one if another was merged into it."""

from __future__ import annotations

from hyperslab.versions.layout.refs import Refs
from hyperslab.versions.layout.table import VersionTable


def ancestors(name: str, table: VersionTable, refs: Refs) -> set[str]:
    """A version and all before it."""
    seen, waiting = {name}, [name]
    while waiting:
        for parent in refs.parents_of(waiting.pop(), table):
            if parent not in seen:
                seen.add(parent)
                waiting.append(parent)
    return seen


def common_ancestor(one: str, other: str, table: VersionTable, refs: Refs) -> str | None:
    """The nearest version that both come from (of several, the latest), or None."""
    shared = ancestors(one, table, refs) & ancestors(other, table, refs)
    nearest = shared - {parent for name in shared for parent in refs.parents_of(name, table)}
    return max(nearest or shared, key=lambda name: (table[name].time, name), default=None)
