"""`Store`: an open HDF5 file. It finds objects by address or path, and parses their headers."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from hyperslab.archive.tree.array import Array
from hyperslab.archive.tree.open_file import OpenFile
from hyperslab.cached import cached_property
from hyperslab.errors import DamagedFile, NotAllowed, ReadError, Unsupported

Facts = dict[str, Any]  # the properties of an object from its header, as `_core.ArchiveFile.hdf5_objects` returns them
MOST_SOFT_LINKS = 16  # soft and external links that one path may follow, the limit of HDF5
AHEAD = 256  # objects of a remote file whose headers are fetched together
KEY_ERROR = "Unable to synchronously open object"


class Link(NamedTuple):
    """The target of a link: `kind` is "hard", "soft", "external" or "user"."""

    kind: str
    address: int = 0
    path: str = ""
    file: str = ""


class Place(NamedTuple):
    """The place of an object: its file, its address there, and the path that led to it, if there is one."""

    store: Store
    address: int
    name: str | None

    @property
    def facts(self) -> Facts:
        """The properties of the object from its header."""
        return self.store.facts(self.address)


class Makers(NamedTuple):
    """Functions that make the objects that users see: a `File` of an identifier, and an object at a place."""

    file: Callable[[Any], Any]
    object: Callable[[Place], Any]


class Store:
    """An open file, which all its objects share. After it is closed, every use of it raises ValueError.

    Parameters
    ----------
    opened : OpenFile
        The file, opened by the engine.
    filename : str
        The name to show.
    make : Makers
        Functions that make the objects that users see.
    given : file object or None
        The file object that the user gave, if there is one.
    """

    def __init__(self, opened: OpenFile, filename: str, make: Makers, given: Any = None) -> None:
        self.make = make
        self.given = given
        self._opened: OpenFile | None = opened
        self.filename = filename
        self._facts: dict[int, Facts] = {}
        self._links: dict[int, dict[str, Link]] = {}
        self._arrays: dict[int, Array] = {}
        self._others: dict[str, Store] = {}
        self.options: dict[str, Any] = {}

    @property
    def opened(self) -> OpenFile:
        """The file, opened by the engine.

        Raises
        ------
        ValueError
            The file was closed.
        """
        if self._opened is None or self._opened.is_closed:
            raise ValueError("Invalid location identifier (the file was closed: open it again)")
        return self._opened

    @property
    def is_open(self) -> bool:
        """Whether the file is open."""
        return self._opened is not None and not self._opened.is_closed

    def close(self) -> None:
        """Close the file."""
        if self._opened is not None:
            self._opened.close()
        self._opened = None
        self._facts.clear()
        self._links.clear()
        self._arrays.clear()

    @cached_property
    def key(self) -> tuple[Any, ...]:
        """The identity of the file, which is the same each time that it is opened."""
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
        """Return the properties of the object at an address."""
        opened = self.opened
        if address not in self._facts:
            [self._facts[address]] = opened.core.hdf5_objects([address])
        return self._facts[address]

    def links(self, address: int) -> dict[str, Link]:
        """Return the links of a group by name: in creation order if that is tracked, otherwise in order of names."""
        self.opened  # noqa: B018 -- raises if the file is closed
        if address not in self._links:
            facts = self.facts(address)
            rows = facts["links"]
            if facts["ordered"]:
                rows = sorted(rows, key=lambda link: link[1] or 0)
            else:
                rows = sorted(rows, key=lambda link: link[0].encode("utf-8", "surrogateescape"))
            self._links[address] = {name: _link(target) for name, _, target in rows}
            if self.opened.is_remote:
                self._ahead(self._links[address])
        return self._links[address]

    def _ahead(self, links: dict[str, Link]) -> None:
        """Fetch the headers of the objects in a group of a remote file with few requests, before they are used."""
        wanted = {link.address for link in links.values() if link.kind == "hard"} - self._facts.keys()
        addresses = sorted(wanted)[:AHEAD]
        try:
            described = self.opened.core.hdf5_objects(addresses)
        except (DamagedFile, Unsupported):
            return  # one header is bad: the error is raised when that object is used
        self._facts.update(zip(addresses, described, strict=True))

    def array(self, address: int, name: str | None) -> Array:
        """Return the `Array` whose header is at an address.

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
        """Open a file that an external link of this file leads to."""
        if file not in self._others or not self._others[file].is_open:
            opened = self.opened.other(file)
            self._others[file] = Store(opened, opened.path, self.make)
        return self._others[file]

    def find(self, start: int, base: str | None, path: str) -> Place:
        """Find the object at a path.

        Parameters
        ----------
        start : int
            The address of the group from which a relative path starts.
        base : str or None
            The path of that group.
        path : str
            The path, relative or absolute.

        Raises
        ------
        KeyError
            There is no such object, or too many links lead to it.
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
        """Find the object that a link of a group leads to.

        Parameters
        ----------
        here : Place
            The group.
        name : str
            The name of the link.
        hops : int
            The number of soft and external links that were followed before.

        Raises
        ------
        KeyError
            There is no such link, or no object at its target.
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
        """Return the last link of a path, without following it. The parameters are those of `find`.

        Raises
        ------
        KeyError
            There is no such link.
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
        """Yield the path and the address of each object below a group that hard links lead to, each object once.

        Parameters
        ----------
        address : int
            The address of the group.
        is_native : bool
            Go through links in HDF5's native order, in which HDF5 searches for the name of an object; otherwise in
            order of names.
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
        """Yield the path of each link below a group, and the link. Each group is entered once."""
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
        """Return the first path of hard links to an object; None if there is none."""
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
