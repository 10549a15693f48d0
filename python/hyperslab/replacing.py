"""Write files completely or not at all: write beside the target, sync to disk, then rename.

What happens depends on the target. A regular file is replaced, and the new file gets its permissions. A link is
followed, and stays a link. A pipe, a terminal or a character device (`/dev/stdout`, `/dev/null`) is written to when
everything is ready. A disk, or a folder that holds something else, is refused.
"""

from __future__ import annotations

import ctypes
import errno
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from hyperslab.errors import NoSpace, UsageError

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
MOST_LINKS = 40
ZEROS = bytes(1 << 20)
RENAME_EXCHANGE, HERE = 2, -100  # of renameat2 in Linux


@contextmanager
def replacing(
    target: Path, is_folder: bool = False, is_synced: bool = True, marks: Sequence[str] = (".zmetadata",)
) -> Iterator[Path]:
    """Yield a path to write to. It replaces the target if the context ends without an error, and is removed otherwise.

    Parameters
    ----------
    target : Path
        The file or folder to replace.
    is_folder : bool
        Whether you write a folder.
    is_synced : bool
        Whether to sync to disk before renaming. Without that, a crash of the machine may leave a torn file: turn it off
        only if the reader notices that and makes the file again.
    marks : Sequence[str]
        An existing folder is replaced only if it holds a file with one of these names.

    Raises
    ------
    UsageError
        There is no folder to write to, or the target must not be replaced.
    NoSpace
        The disk is full; an existing target is unchanged.
    """
    destination = followed(target)
    stream = is_stream(destination)
    if not stream:
        _check(target, destination, is_folder, marks)
    elif is_folder:
        raise UsageError(f"{target} is a pipe or device and cannot become a folder: choose another name")
    # In a new folder, so that our name cannot be that of another file. It is named before it is made: Ctrl-C may
    # come as soon as it is there.
    own = Path(tempfile.gettempdir() if stream else destination.parent) / f".hyperslab-{os.urandom(8).hex()}.new"
    try:
        _make(own, target)
        beside = own / destination.name
        yield beside
        if stream:
            _copy(beside, destination)
            return
        if is_synced:
            _sync(beside)
        put_in_place(beside, destination, own)
        if is_synced:
            sync_one(destination.parent)
    except OSError as error:
        _fail(target, error)
        raise
    finally:
        try:
            shutil.rmtree(own, ignore_errors=True)
        except BaseException:  # Ctrl-C in the middle of it
            shutil.rmtree(own, ignore_errors=True)
            raise


def refuse_devices(target: Path) -> None:
    """Refuse a target that is a device, a named pipe or a socket; `/dev/stdout` is what the program has open.

    Raises
    ------
    UsageError
        The target is not a file; the message says what it is.
    """
    destination = followed(target)
    try:
        mode = destination.stat().st_mode
    except OSError:
        return
    is_other = not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))
    if is_other and not _is_of_process(destination.parent):
        kinds = {stat.S_IFCHR: "a device", stat.S_IFBLK: "a disk", stat.S_IFIFO: "a pipe", stat.S_IFSOCK: "a socket"}
        kind = kinds.get(stat.S_IFMT(mode), "something else")
        raise UsageError(f"{target} is {kind}, not a file: choose another name, or /dev/stdout")


def replace_with(target: Path, content: str | bytes) -> None:
    """Replace the content of a file: afterwards the file has either all of the new content or still the old one."""
    with replacing(target) as beside:
        beside.write_bytes(content.encode() if isinstance(content, str) else content)


def allocate(path: Path, start: int) -> None:
    """Allocate the disk space of a file from `start` to its end. Otherwise a full disk kills whoever maps the file.

    Raises
    ------
    OSError
        The disk does not have enough space.
    """
    with path.open("r+b") as file:
        missing = file.seek(0, os.SEEK_END) - start
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(file.fileno(), start, missing)
            return
        file.seek(start)
        while missing > 0:  # macOS
            missing -= file.write(ZEROS[:missing])


def followed(target: Path) -> Path:
    """The target of links, except links in /proc, which stand for a process's open files."""
    destination = target.absolute()
    for _ in range(MOST_LINKS):
        folder = Path(os.path.realpath(destination.parent))
        destination = folder / destination.name
        if not destination.is_symlink() or _is_of_process(folder):
            return destination
        destination = folder / destination.readlink()
    raise UsageError(f"{target} is a link that leads to itself: choose another name")


def _is_of_process(folder: Path) -> bool:
    return folder.parts[:2] == ("/", "proc")


def is_stream(destination: Path) -> bool:
    """Whether this is a pipe, a terminal or a character device; raises UsageError for a disk or a socket."""
    if _is_of_process(destination.parent):
        return destination.exists()
    try:
        mode = destination.stat().st_mode
    except OSError:
        return False
    if stat.S_ISBLK(mode) or stat.S_ISSOCK(mode):
        raise UsageError(
            f"{destination} is a {'disk' if stat.S_ISBLK(mode) else 'socket'}, not a file: choose another name"
        )
    return stat.S_ISFIFO(mode) or stat.S_ISCHR(mode)


def _check(target: Path, destination: Path, is_folder: bool, marks: Sequence[str]) -> None:
    if not destination.parent.is_dir():
        raise UsageError(f"there is no folder {destination.parent} to write {destination.name} to: create it first")
    if destination.is_dir() and not (is_folder and any((destination / one).is_file() for one in marks)):
        raise UsageError(f"{target} is a folder that holds something else: choose another name")
    if is_folder and destination.is_file():
        raise UsageError(f"{target} is a file: remove it, or choose another name")
    if destination.exists() and not os.access(destination, os.W_OK):
        raise UsageError(f"{target} is write-protected: remove it, or choose another name")


def _make(own: Path, target: Path) -> None:
    try:
        own.mkdir(mode=0o700)
    except OSError as error:
        _fail(target, error)
        raise UsageError(f"{target} cannot be written: {error.strerror}") from error


def _fail(target: Path, error: OSError) -> None:
    if error.errno is not None and error.errno in FULL:
        kept = "; the old file is unchanged" if target.is_file() else ""
        raise NoSpace(
            f"{target}: {error.strerror}: nothing was written{kept}; make room, or choose another disk"
        ) from error


def _copy(written: Path, stream: Path) -> None:
    # Append, never write from the start: the stream may be a file that the shell has open as `>> file`.
    with written.open("rb") as source, open(os.open(stream, os.O_WRONLY | os.O_APPEND), "wb") as opened:
        shutil.copyfileobj(source, opened)


def put_in_place(beside: Path, destination: Path, own: Path) -> None:
    """Give a finished file or folder its name. What had the name is then gone, or somewhere in the folder `own`.

    A folder cannot be replaced in one step, but where the system allows it, both swap their names in one step.

    Parameters
    ----------
    beside : Path
        What gets the name.
    destination : Path
        The name.
    own : Path
        A folder on the same disk that you remove afterwards.
    """
    is_folder = beside.is_dir()
    if not destination.exists():
        beside.rename(destination)
        return
    if destination.is_dir() == is_folder:
        _give_permissions(destination, beside)
        if not is_folder:
            beside.replace(destination)
            return
    if _exchange(beside, destination):
        return
    old = own / f"{destination.name}.old"
    destination.rename(old)
    try:
        beside.rename(destination)
    except BaseException:
        old.rename(destination)
        raise


def _exchange(first: Path, second: Path) -> bool:
    """Let two files or folders swap their names in one step; False where that is not possible."""
    rename = getattr(ctypes.CDLL(None), "renameat2", None)
    if rename is None:  # macOS, or an old C library
        return False
    return bool(rename(HERE, os.fsencode(first), HERE, os.fsencode(second), RENAME_EXCHANGE) == 0)


def _give_permissions(old: Path, new: Path) -> None:
    known = old.stat()
    with suppress(OSError):  # only root may change the owner of a file
        os.chown(new, known.st_uid, known.st_gid)
    with suppress(OSError):  # some file systems have no permissions
        new.chmod(stat.S_IMODE(known.st_mode))


def _sync(path: Path) -> None:
    for inner in sorted(path.rglob("*"), reverse=True) if path.is_dir() else []:
        sync_one(inner)
    sync_one(path)


def sync_one(path: Path) -> None:
    """Sync one file or folder to its disk. Raises OSError if a file cannot be synced."""
    number = os.open(path, os.O_RDONLY)
    try:
        os.fsync(number)
    except OSError:
        if not path.is_dir():  # some file systems cannot sync folders
            raise
    finally:
        os.close(number)
