"""Names of a mounted striped store: directories and files, and which object of the servers each file is."""

from __future__ import annotations

import errno
import stat
import threading
import time
from dataclasses import dataclass, field

ROOT = 1
SHARED_SUFFIXES = (".h5", ".hdf5", ".nc")


@dataclass
class Node:
    """A directory, or a file with its object. `shared` files are striped; others are whole on one server."""

    number: int
    is_directory: bool
    shared: bool = False
    size: int = 0
    changed: float = field(default_factory=time.time)
    children: dict[str, int] = field(default_factory=dict)
    opens: int = 0
    linked: bool = True

    @property
    def mode(self) -> int:
        """What stat says of it: nobody but its owner may use it."""
        return stat.S_IFDIR | 0o700 if self.is_directory else stat.S_IFREG | 0o600


def failure(number: int) -> OSError:
    """An error that the kernel gives to the program that asked."""
    return OSError(number, errno.errorcode[number])


class Tree:
    """All nodes by number. Every method takes the lock: several threads answer the kernel."""

    def __init__(self) -> None:
        self._nodes = {ROOT: Node(ROOT, True)}
        self._next = ROOT + 1
        self.lock = threading.RLock()

    def node(self, number: int) -> Node:
        """The node of a number."""
        with self.lock:
            if number not in self._nodes:
                raise failure(errno.ENOENT)
            return self._nodes[number]

    def child(self, parent: int, name: str) -> Node:
        """The node of a name in a directory."""
        with self.lock:
            number = self.node(parent).children.get(name)
            if number is None:
                raise failure(errno.ENOENT)
            return self._nodes[number]

    def add(self, parent: int, name: str, *, is_directory: bool) -> Node:
        """A new file or directory."""
        with self.lock:
            held = self.node(parent)
            if name in held.children:
                raise failure(errno.EEXIST)
            made = Node(self._next, is_directory, shared=name.endswith(SHARED_SUFFIXES))
            self._next += 1
            self._nodes[made.number] = made
            held.children[name] = made.number
            held.changed = time.time()
            return made

    def remove(self, parent: int, name: str) -> Node | None:
        """Remove a name. Returns the file that nobody can reach any more, if there is one."""
        with self.lock:
            child = self.child(parent, name)
            if child.is_directory and child.children:
                raise failure(errno.ENOTEMPTY)
            del self.node(parent).children[name]
            child.linked = False
            return self.forgotten(child)

    def rename(self, parent: int, name: str, to_parent: int, to_name: str) -> Node | None:
        """Move a name, over another one if there is one. Returns the file that nobody can reach any more."""
        with self.lock:
            moved, gone = self.child(parent, name), None
            if (parent, name) == (to_parent, to_name):
                return None
            if to_name in self.node(to_parent).children:
                gone = self.remove(to_parent, to_name)
            self.node(to_parent).children[to_name] = moved.number
            del self.node(parent).children[name]
            return gone

    def forgotten(self, node: Node) -> Node | None:
        """The node, if it is a file that has no name and that nobody has open: then it is dropped."""
        with self.lock:
            if node.linked or node.opens > 0:
                return None
            self._nodes.pop(node.number, None)
            return None if node.is_directory else node

    def listed(self, number: int) -> list[tuple[str, int, bool]]:
        """The names of a directory, with `.` and `..`."""
        with self.lock:
            children = self.node(number).children
            own = [(".", number, True), ("..", ROOT, True)]
            return own + [(name, child, self._nodes[child].is_directory) for name, child in children.items()]
