"""Walk through an archive: visit each group and each array once, however many links and files lead to it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from hyperslab.errors import DamagedFile, NotAllowed, Unsupported

if TYPE_CHECKING:
    from hyperslab.archive.array import Array
    from hyperslab.archive.tree import Group

# What a broken link or an unusable object raises. A failed fetch or a changed file must never be taken for one.
NOWHERE = (KeyError, FileNotFoundError, DamagedFile, Unsupported, NotAllowed)


def groups_by_path(top: Group) -> Iterator[tuple[str, Group]]:
    """Yield a group and every group below it once, each with the relative path that led to it; "" is the group itself.

    Soft and external links are followed last, so a group with a hard link is found by that. Broken links are left out.
    """
    seen, waiting = {top.key}, [("", top)]
    links: deque[tuple[str, Group, str]] = deque()
    while waiting or links:
        if not waiting:
            path, parent, name = links.popleft()
            target = _reached(parent, name)
            if isinstance(target, type(top)) and target.key not in seen:
                seen.add(target.key)
                waiting.append((path, target))
            continue
        path, group = waiting.pop()
        yield path, group
        inner = []
        for name, kind in group.kinds():
            below = f"{path}/{name}" if path else name
            if kind in ("soft", "external"):
                links.append((below, group, name))
            elif kind == "group":
                child = _reached(group, name)
                if isinstance(child, type(top)) and child.key not in seen:
                    seen.add(child.key)
                    inner.append((below, child))
        waiting += reversed(inner)


def _reached(parent: Group, name: str) -> Group | Array | None:
    try:
        return parent[name]
    except NOWHERE:
        return None


def links_to_nowhere(group: Group) -> Iterator[tuple[str, str]]:
    """Yield each link of a group that is broken, or that may not be followed, with the reason."""
    for name, kind in group.kinds():
        if kind in ("soft", "external"):
            try:
                group[name]
            except NOWHERE as error:
                yield name, str(error.args[0] if isinstance(error, KeyError) and error.args else error)


def visit_own(top: Group, visit: Callable[[str, Group | Array], Any]) -> Any:
    """Call `visit(path, found)` once for each object below a group that has a hard link, until it returns something."""
    kind = type(top)
    seen: set[tuple[bool, tuple[int, int]]] = {(True, top.key)}
    waiting = [("", _own(top))]  # an explicit stack, because archives may be nested deeply
    while waiting:
        prefix, children = waiting[-1]
        name, child = next(children, ("", None))
        if child is None:
            waiting.pop()
            continue
        key = (isinstance(child, kind), child.key)
        if key in seen:
            continue
        seen.add(key)
        returned = visit(prefix + name, child)
        if returned is not None:
            return returned
        if isinstance(child, kind):
            waiting.append((f"{prefix}{name}/", _own(child)))
    return None


def _own(group: Group) -> Iterator[tuple[str, Group | Array]]:
    for name, kind in group.kinds():
        found = _reached(group, name) if kind in ("group", "array") else None
        if found is not None:
            yield name, found
