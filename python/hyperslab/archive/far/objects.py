"""`ObjectFolder`: objects below a URL, read and written whole, one of them by compare-and-swap. obstore does it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from datetime import timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote

from hyperslab.archive.far.remote import Remote, is_url, shown
from hyperslab.archive.far.store_options import OF_CLIENTS
from hyperslab.archive.far.url_prefix import HTTP
from hyperslab.errors import DamagedFile, RemoteError, Unsupported, UsageError
from hyperslab.needed import need
from hyperslab.panics import panics_named

PART_NBYTES = 8 << 20  # of an object, in one request
PARTS_AT_A_TIME = 8
REMEDY = "push the versions to another URL"  # what is named already is not sent again
NO_STAMP = {"e_tag": '"00000000000000000000000000000000"', "version": "1"}  # of no object


class Stamp(NamedTuple):
    """Which state of an object was read: what its store says of it."""

    e_tag: str | None
    version: str | None


def obstore_of(remote: Remote, doing: str) -> Any:
    """obstore's store for the bucket or the server of a URL, with the same options as we use ourselves.

    Parameters
    ----------
    remote : Remote
        The URL with its options.
    doing : str
        What it is needed for, for messages.

    Raises
    ------
    MissingLibrary
        obstore is not installed.
    UsageError
        An option is not known.
    """
    need(doing, "obstore")
    from obstore.store import from_url

    remote.file()  # refuses wrong options by name
    (url, _, headers), limits = remote.reached()
    config = {name: value for name, value in remote.listed().items() if name not in OF_CLIENTS}
    kind, _, rest = url.partition("://")
    is_plain = kind == "http" or any(value.startswith("http://") for value in config.values())
    client: dict[str, Any] = {
        "allow_http": is_plain,
        "connect_timeout": timedelta(seconds=limits["connect_timeout"]),
        "timeout": timedelta(seconds=limits["timeout"]),
    }
    if headers:
        client["default_headers"] = dict(headers)
    retries = max(0, int(limits["attempts"]) - 1)
    retrying = {"max_retries": retries, "retry_timeout": timedelta(seconds=limits["patience"])}
    bucket = f"{kind}://{rest.partition('/')[0]}"
    given: dict[str, Any] = {"client_options": client, "retry_config": retrying}
    return from_url(bucket, **given) if kind in HTTP else from_url(bucket, config=config, **given)  # type: ignore[call-overload]


def said_by(error: BaseException) -> str:
    """The first line of an error of obstore, without queries of URLs, which may be signatures."""
    return re.sub(r"\?[^\s\"')]*", "", (str(error).splitlines() or [type(error).__name__])[0])


class ObjectFolder:
    """The objects whose keys begin with the path of a URL.

    Parameters
    ----------
    remote : Remote
        The URL of the folder.
    doing : str
        What it is needed for, for messages.

    Raises
    ------
    MissingLibrary
        obstore is not installed.
    UsageError
        The URL or an option is not known.
    """

    def __init__(self, remote: Remote, doing: str) -> None:
        if not is_url(remote.url) or "?" in remote.url:
            raise UsageError(f"{shown(remote.url)}: give the URL of a folder, without a query")
        self.url = shown(remote.folder().url)
        self._is_web = remote.url.partition("://")[0].lower() in HTTP
        path = self.url.partition("://")[2].partition("/")[2]
        self._prefix = unquote(path) if self._is_web else path  # obstore quotes it again
        with self._named("is not the URL of a folder"):
            self._store = obstore_of(remote, doing)

    def read(self, name: str, most_nbytes: int) -> tuple[bytes, Stamp] | None:
        """An object with the stamp of its state; None if there is none.

        Raises
        ------
        RemoteError
            It cannot be read, or has more bytes.
        """
        import obstore

        found = None
        with self._named(f"{name} cannot be read"), suppress(FileNotFoundError):
            got = obstore.get(self._store, self._key(name))
            about = got.meta
            if about["size"] > most_nbytes:
                raise RemoteError(f"{self.url}/{name} has {about['size']} bytes, more than any that we write")
            found = bytes(got.bytes()), Stamp(about.get("e_tag"), about.get("version"))
        return found

    def size(self, name: str) -> int | None:
        """The bytes of an object; None if there is none."""
        import obstore

        found = None
        with self._named(f"{name} cannot be looked at"), suppress(FileNotFoundError):
            found = int(obstore.head(self._store, self._key(name))["size"])
        return found

    def write(self, name: str, content: Path) -> None:
        """Make an object of a file, in parts if it is long. It is there whole, or not at all."""
        import obstore

        self._check_writable()
        with self._named(f"{name} cannot be written"):
            obstore.put(self._store, self._key(name), content)

    def swap(self, name: str, content: bytes, old: Stamp | None) -> bool:
        """Replace an object if it is still in this state (None: if there is none). Returns whether it was."""
        stamp = {} if old is None else {key: value for key, value in old._asdict().items() if value is not None}
        return self._put(name, content, "create" if old is None else stamp)

    def replace(self, name: str, content: bytes) -> None:
        """Write an object, whatever is there."""
        self._put(name, content, "overwrite")

    def is_guarded(self, name: str, content: bytes) -> bool:
        """Whether the store compares and swaps. `name` is an object that always has this content; it is written."""
        try:
            if self._put(name, content, "create") and self._put(name, content, "create"):
                return False
            return not self._put(name, content, NO_STAMP)
        except Unsupported:
            self.replace(name, content)
            return False

    def fetch(self, name: str, path: Path, nbytes: int) -> str:
        """Copy an object to a file. Returns its SHA-256, in hexadecimal.

        Raises
        ------
        DamagedFile
            There is no such object, or it has another length.
        """
        import obstore

        found, digest = self.size(name), sha256()
        if found != nbytes:
            what = "is missing" if found is None else f"has {found} bytes instead of {nbytes}"
            raise DamagedFile(f"{self.url}/{name} {what}: somebody else changed the folder; {REMEDY}")
        starts = range(0, nbytes, PART_NBYTES)
        key = self._key(name)

        def part(start: int) -> bytes:
            return bytes(obstore.get_range(self._store, key, start=start, end=min(nbytes, start + PART_NBYTES)))

        reading = self._named(f"{name} cannot be read")
        with path.open("wb") as made, reading, ThreadPoolExecutor(PARTS_AT_A_TIME) as pool:
            for first in range(0, len(starts), PARTS_AT_A_TIME):
                for data in pool.map(part, starts[first : first + PARTS_AT_A_TIME]):
                    digest.update(data)
                    made.write(data)
        return digest.hexdigest()

    def _put(self, name: str, content: bytes, mode: Any) -> bool:
        import obstore
        from obstore.exceptions import AlreadyExistsError, NotSupportedError, PreconditionError

        self._check_writable()
        is_done = False
        with self._named(f"{name} cannot be written"), suppress(AlreadyExistsError, PreconditionError):
            try:
                obstore.put(self._store, self._key(name), content, mode=mode, use_multipart=False)
                is_done = True
            except FileNotFoundError:
                if not isinstance(mode, dict):
                    raise
                # it was deleted since
            except (NotSupportedError, NotImplementedError) as error:
                raise Unsupported(f"{self.url} does not compare and swap: {said_by(error)}") from error
        return is_done

    def _key(self, name: str) -> str:
        return f"{self._prefix}/{name}" if self._prefix else name

    def _check_writable(self) -> None:
        if self._is_web:
            raise UsageError(f"{self.url} is a web server, which can only be read: give an object store (s3, gs, az)")

    @contextmanager
    def _named(self, what: str) -> Iterator[None]:
        """Errors of obstore under our names."""
        from obstore.exceptions import BaseError, PermissionDeniedError, UnauthenticatedError

        try:
            with panics_named(f"{self.url}: {what}"):
                yield
        except (PermissionDeniedError, UnauthenticatedError) as error:
            raise RemoteError(f"{self.url}: {what}: {said_by(error)}; give other credentials") from error
        except FileNotFoundError as error:
            raise RemoteError(f"{self.url}: {what}: there is no such bucket") from error
        except (BaseError, TimeoutError) as error:
            raise RemoteError(f"{self.url}: {what}: {said_by(error)}") from error
