"""`Store`: an open HDF5 file as its object headers describe it, by their addresses; and where names lead."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from hyperslab.archive.array import Array
from hyperslab.archive.tree import OpenFile
from hyperslab.cached import cached_property
from hyperslab.errors import DamagedFile, NotAllowed, ReadError, Unsupported

Facts = dict[str, Any]  # as `_core.ArchiveFile.hdf5_objects` gives them
MOST_SOFT_LINKS = 16  # that one path may lead over, as HDF5 has it
AHEAD = 256  # objects far away that are described together
KEY_ERROR = "Unable to synchronously open object"


class Link(NamedTuple):
    """Where a name of a group leads: `kind` is hard, soft, external or user."""

    kind: str
    address: int = 0
    path: str = ""
    file: str = ""


class Place(NamedTuple):
    """An object: the file that it is in, its address there, and the path by which it was found."""

    store: Store
    address: int
    name: str | None

    @property
    def facts(self) -> Facts:
        """What its header says."""
        return self.store.facts(self.address)


class Makers(NamedTuple):
    """What makes the objects that users see: the file of an identifier, and the object at a place."""

    file: Callable[[Any], Any]
    object: Callable[[Place], Any]


class Store:
    """An open file, shared by all objects of it; nothing can be had from it once it is closed."""

    def __init__(self, opened: OpenFile, filename: str, make: Makers, given: Any = None) -> None:
        self.make = make
        self.given = given  # the file object that is read, if it is one
        self._opened: OpenFile | None = opened
        self.filename = filename
        self._facts: dict[int, Facts] = {}
        self._links: dict[int, dict[str, Link]] = {}
        self._arrays: dict[int, Array] = {}
        self._others: dict[str, Store] = {}
        self.options: dict[str, Any] = {}

    @property
    def opened(self) -> OpenFile:
        """The file as `hs.open` has it.

        Raises
        ------
        ValueError
            It was closed.
        """
        if self._opened is None or self._opened.is_closed:
            raise ValueError("Invalid location identifier (the file was closed: open it again)")
        return self._opened

    @property
    def is_open(self) -> bool:
        """Whether anything can be had from it."""
        return self._opened is not None and not self._opened.is_closed

    def close(self) -> None:
        """Let go of the file."""
        if self._opened is not None:
            self._opened.close()
        self._opened = None
        self._facts.clear()
        self._links.clear()
        self._arrays.clear()

    @cached_property
    def key(self) -> tuple[Any, ...]:
        """What tells the file apart from others, however often it is open."""
        opened = self.opened
        if opened.is_remote:
            return (opened.path,)
        try:
            status = os.stat(opened.path)  # noqa: PTH116
        except OSError:
            return (opened.path, id(self.given))
        return (status.st_dev, status.st_ino)

    @cached_property
    def root(self) -> int:
        """The address of the root group."""
        [facts] = self.opened.core.hdf5_objects([None])
        address: int = facts["address"]
        self._facts[address] = facts
        return address

    def facts(self, address: int) -> Facts:
        """What the header at an address says."""
        opened = self.opened
        if address not in self._facts:
            [self._facts[address]] = opened.core.hdf5_objects([address])
        return self._facts[address]

    def links(self, address: int) -> dict[str, Link]:
        """What a group holds, in the order in which h5py lists it: of creation if that is tracked, else of names."""
        self.opened  # noqa: B018 -- raises of a closed file
        if address not in self._links:
            facts = self.facts(address)
            found = facts["links"]
            if facts["ordered"]:
                found = sorted(found, key=lambda link: link[1] or 0)
            else:
                found = sorted(found, key=lambda link: link[0].encode("utf-8", "surrogateescape"))
            self._links[address] = {name: _link(target) for name, _, target in found}
            if self.opened.is_remote:
                self._ahead(self._links[address])
        return self._links[address]

    def _ahead(self, links: dict[str, Link]) -> None:
        """Describe what a group far away holds with few requests, as it is going to be used."""
        wanted = {link.address for link in links.values() if link.kind == "hard"} - self._facts.keys()
        addresses = sorted(wanted)[:AHEAD]
        try:
            described = self.opened.core.hdf5_objects(addresses)
        except (DamagedFile, Unsupported):
            return  # one of them: it says so itself when it is asked for
        self._facts.update(zip(addresses, described, strict=True))

    def array(self, address: int, name: str | None) -> Array:
        """The array whose header is at an address, as `hs.open` has it.

        Raises
        ------
        Unsupported
            No link leads to it from the root.
        """
        if address not in self._arrays:
            number = self.opened.core.array_at(address)
            if number is None:
                raise Unsupported(f"{self.filename}: no link leads to the dataset at address {address}")
            self._arrays[address] = Array(self.opened, number, name or f"<address {address}>")
        return self._arrays[address]

    def other(self, file: str) -> Store:
        """A file that an external link of this one leads to."""
        if file not in self._others or not self._others[file].is_open:
            opened = self.opened.other(file)
            self._others[file] = Store(opened, opened.path, self.make)
        return self._others[file]

    def find(self, start: int, base: str | None, path: str) -> Place:
        """What a path leads to from a group.

        Raises
        ------
        KeyError
            There is nothing, or links lead in a circle.
        """
        return self._find(start, base, path, 0)

    def _find(self, start: int, base: str | None, path: str, hops: int) -> Place:
        if not path:
            raise KeyError(f"{KEY_ERROR} (no name)")
        here = Place(self, self.root, "/") if path.startswith("/") else Place(self, start, base)
        for part in path.split("/"):
            if part in ("", "."):
                continue
            here = here.store.step(here, part, hops)
        return here

    def step(self, here: Place, name: str, hops: int = 0) -> Place:
        """What one name of a group leads to.

        Raises
        ------
        KeyError
            There is no such name, or what it leads to is not there.
        """
        if here.facts["kind"] != "group":
            raise KeyError(f"{KEY_ERROR} (component not found)")
        link = self.links(here.address).get(name)
        if link is None:
            raise KeyError(f"{KEY_ERROR} (object {name!r} doesn't exist)")
        full = None if here.name is None else f"{here.name.rstrip('/')}/{name}"
        if link.kind == "hard":
            return Place(self, link.address, full)
        if link.kind == "user":
            raise KeyError(f"{KEY_ERROR} (unable to open a user-defined link)")
        if hops >= MOST_SOFT_LINKS:
            raise KeyError(f"{KEY_ERROR} (too many links)")
        if link.kind == "soft":
            return self._find(here.address, here.name, link.path, hops + 1)._replace(name=full)
        try:
            other = self.other(link.file)
        except NotAllowed:
            raise
        except (OSError, ReadError, Unsupported, DamagedFile) as error:
            raise KeyError(
                f"{KEY_ERROR} (unable to open external file, external link file name = {link.file!r}: {error})"
            ) from error
        return other._find(other.root, "/", link.path or "/", hops + 1)

    def link(self, start: int, base: str | None, path: str) -> Link:
        """The last link of a path from a group, not followed.

        Raises
        ------
        KeyError
            There is none.
        """
        parts = [part for part in path.split("/") if part not in ("", ".")]
        if not parts:
            raise KeyError("Unable to synchronously get link info (can't find object)")
        parent = "/".join(["", *parts[:-1]] if path.startswith("/") else parts[:-1]) or (
            "/" if path.startswith("/") else "."
        )
        here = self.find(start, base, parent)
        if here.facts["kind"] != "group":
            raise KeyError("Unable to synchronously get link info (component not found)")
        links = here.store.links(here.address)
        if parts[-1] not in links:
            raise KeyError(f"Unable to synchronously get link info (object {parts[-1]!r} doesn't exist)")
        return links[parts[-1]]

    def below(self, address: int, is_native: bool = False) -> Iterator[tuple[str, int]]:
        """Names from a group on, and addresses, of all that hard links lead to, each object once.

        By name, or as HDF5 lists them fastest, in which order it looks for the name of an object.
        """
        listed = self._native if is_native else self._by_name
        seen = {address}
        waiting = [("", iter(listed(address)))]
        while waiting:
            prefix, names = waiting[-1]
            for name, link in names:
                if link.kind != "hard" or link.address in seen:
                    continue
                seen.add(link.address)
                yield prefix + name, link.address
                if self.facts(link.address)["kind"] == "group":
                    waiting.append((f"{prefix}{name}/", iter(listed(link.address))))
                    break
            else:
                waiting.pop()

    def links_below(self, address: int) -> Iterator[tuple[str, Link]]:
        """Names from a group on of all links, and the links; groups are entered once."""
        seen = {address}
        waiting = [("", iter(self._by_name(address)))]
        while waiting:
            prefix, names = waiting[-1]
            for name, link in names:
                yield prefix + name, link
                if link.kind != "hard" or link.address in seen:
                    continue
                seen.add(link.address)
                if self.facts(link.address)["kind"] == "group":
                    waiting.append((f"{prefix}{name}/", iter(self._by_name(link.address))))
                    break
            else:
                waiting.pop()

    def _native(self, address: int) -> list[tuple[str, Link]]:
        return [(name, _link(target)) for name, _, target in self.facts(address)["links"]]

    def _by_name(self, address: int) -> list[tuple[str, Link]]:
        return sorted(self.links(address).items(), key=lambda link: link[0].encode("utf-8", "surrogateescape"))

    @cached_property
    def _names(self) -> dict[int, str]:
        names = {address: f"/{name}" for name, address in self.below(self.root, is_native=True)}
        return {**names, self.root: "/"}

    def name_of(self, address: int) -> str | None:
        """The first path by which hard links lead to an object; None if there is none."""
        return self._names.get(address)


def _link(target: tuple[Any, ...]) -> Link:
    kind = target[0]
    if kind == "hard":
        return Link("hard", address=target[1])
    if kind == "soft":
        return Link("soft", path=target[1])
    if kind == "external":
        return Link("external", file=target[1], path=target[2])
    return Link("user")
