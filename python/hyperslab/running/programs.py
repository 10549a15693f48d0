"""Whether a program can be given a library to preload: the dynamic linker must load it, and trust its environment."""

from __future__ import annotations

import os
import stat
import struct

_MOST_INTERPRETERS = 4


def obstacle(name: str, so: str = "all reads are libhdf5's") -> str | None:
    """Say why nothing can be preloaded into a program, and `so`; None if it can, or if that cannot be found out."""
    path = _found(name)
    for _ in range(_MOST_INTERPRETERS):
        if path is None:
            return None
        try:
            with open(path, "rb") as file:
                head = file.read(4096)
                mode = os.fstat(file.fileno())
        except OSError:
            return None
        if not head.startswith(b"#!"):
            problem = _of_binary(path, head, mode)
            return None if problem is None else f"{problem}: {so}"
        words = head[2:].split(b"\n")[0].split()
        path = os.fsdecode(words[0]) if words else None
    return None


def _found(name: str) -> str | None:
    """The file that a shell would start."""
    if "/" in name:
        return name
    folders = os.environ.get("PATH", os.defpath).split(os.pathsep)
    paths = (f"{folder or '.'}/{name}" for folder in folders)
    return next((path for path in paths if os.access(path, os.X_OK) and not os.path.isdir(path)), None)  # noqa: PTH112


def _of_binary(path: str, head: bytes, facts: os.stat_result) -> str | None:
    is_other_user = bool(facts.st_mode & stat.S_ISUID) and facts.st_uid != os.geteuid()
    is_other_group = bool(facts.st_mode & stat.S_ISGID) and facts.st_gid != os.getegid()
    if is_other_user or is_other_group or _has_capabilities(path):
        return f"{path} runs with the rights of another user, so the system preloads nothing"
    if not head.startswith(b"\x7fELF") or _has_interpreter(head):
        return None
    return f"{path} is linked statically, so nothing can be preloaded"


def _has_capabilities(path: str) -> bool:
    try:
        return bool(os.getxattr(path, "security.capability"))
    except (OSError, AttributeError):
        return False


def _has_interpreter(head: bytes) -> bool:
    """Whether an ELF file names a dynamic linker. What cannot be read of it might."""
    is_wide, order = head[4] == 2, "<" if head[5] == 1 else ">"
    try:
        start = struct.unpack_from(f"{order}Q" if is_wide else f"{order}I", head, 32 if is_wide else 28)[0]
        size, count = struct.unpack_from(f"{order}HH", head, 54 if is_wide else 42)
        kinds = [struct.unpack_from(f"{order}I", head, start + number * size)[0] for number in range(count)]
    except struct.error:
        return True
    return 3 in kinds  # PT_INTERP
