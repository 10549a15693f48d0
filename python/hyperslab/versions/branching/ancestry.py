"""Versions as a graph: a version has a parent, and a second one if another was merged into it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from heapq import heapify, heappop, heappush

from hyperslab.versions.layout.refs import Refs
from hyperslab.versions.layout.table import VersionTable


def ancestors(name: str, table: VersionTable, refs: Refs) -> set[str]:
    """A version and all before it."""
    return all_ancestors([name], table, refs)


def all_ancestors(heads: Iterable[str], table: VersionTable, refs: Refs) -> set[str]:
    """Some versions and all before any of them."""
    return reached(heads, lambda name: refs.parents_of(name, table))


def reached(heads: Iterable[str], parents_of: Callable[[str], Iterable[str]]) -> set[str]:
    """Some names and all that their parents lead to, also if damage has made a circle of them."""
    seen = set(heads)
    waiting = list(seen)
    while waiting:
        for parent in parents_of(waiting.pop()):
            if parent not in seen:
                seen.add(parent)
                waiting.append(parent)
    return seen


def common_ancestor(one: str, other: str, table: VersionTable, refs: Refs) -> str | None:
    """The nearest version that both come from (of several, the latest), or None."""
    shared = ancestors(one, table, refs) & ancestors(other, table, refs)
    nearest = shared - {parent for name in shared for parent in refs.parents_of(name, table)}
    return max(nearest or shared, key=lambda name: (table[name].time, name), default=None)


def children_first(heads: Iterable[str], table: VersionTable, refs: Refs) -> list[str]:
    """Some versions and all before them, each after all that were made from it; otherwise the latest first."""
    names = all_ancestors(heads, table, refs)
    parents = {name: refs.parents_of(name, table) for name in names}
    children = Counter(parent for name in names for parent in parents[name])
    latest = sorted(names, key=lambda name: (table[name].time, name))
    rank = {name: number for number, name in enumerate(reversed(latest))}
    ready = [rank[name] for name in names if not children[name]]
    heapify(ready)
    order: list[str] = []
    done = set[str]()
    while len(order) < len(names):
        if not ready:  # parents in a circle, which only damage makes
            ready = [next(rank[one] for one in reversed(latest) if one not in done)]
        name = latest[-1 - heappop(ready)]
        if name in done:
            continue
        done.add(name)
        order.append(name)
        for parent in parents[name]:
            children[parent] -= 1
            if not children[parent]:
                heappush(ready, rank[parent])
    return order
