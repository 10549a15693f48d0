"""The peers of remote reading: how each reads the same bytes by URL, from nothing or with its index ready.

Each read uses a new port, so that no connection of an earlier read is open. zarr-python fetches 64 chunks at a time,
which is its best setting, instead of its default of 10. A peer raises ImportError if it is not installed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import h5py
import indexers
from comparison import Side

import hyperslab
from hyperslab.lab.serving import Far, Nginx

AT_A_TIME = 64
LARGE_BLOCK_NBYTES = 8 << 20


@dataclass(frozen=True)
class DelayedFile:
    """A file on a far server, and the same file on this machine for preparations."""

    path: Path
    server: Nginx
    far: Far

    def url(self) -> str:
        """The URL, by a port that no client has used."""
        return f"http://127.0.0.1:{self.far.port()}/{self.path.name}"

    def url_without_port(self) -> str:
        """The URL, by an address that no client has used: icechunk 1 drops the ports of URLs."""
        return f"http://{self.far.address()}/{self.path.name}"


Answer = Callable[[Any], Any]


def from_nothing(file: DelayedFile, open_array: Callable[[str], Any], key: Any, answer: Answer) -> Side:
    """From the URL to the elements."""
    return Side(lambda: open_array(file.url())[key], answer)


def from_ready(url: Callable[[], str], open_array: Callable[[str], Any], key: Any, answer: Answer, times: int) -> Side:
    """Only reading the elements: `times` arrays are opened beforehand, each by its own URL."""
    ready: Iterator[Any] = iter([open_array(url()) for _ in range(times)])
    return Side(lambda: next(ready)[key], answer)


def by_hyperslab(url: str) -> Any:
    """Our array."""
    return hyperslab.open(url)["x"]


def by_h5py(block_nbytes: int | None) -> Callable[[str], Any]:
    """h5py's array over fsspec's HTTP file."""
    import aiohttp  # noqa: F401 - fsspec's HTTP needs it
    import fsspec

    def opened(url: str) -> Any:
        said = {} if block_nbytes is None else {"block_size": block_nbytes}
        return h5py.File(fsspec.filesystem("http", skip_instance_cache=True).open(url, **said))["x"]

    return opened


def by_virtualizarr() -> Callable[[str], Any]:
    """zarr-python's array over a ManifestStore, made by reading the file's metadata over HTTP."""
    import zarr
    from virtualizarr.parsers import HDFParser

    def opened(url: str) -> Any:
        store = HDFParser()(url=url, registry=registry(url))
        return zarr.open_group(store, mode="r", zarr_format=3)["x"]

    _ask_at_once()
    return opened


def registry(url: str) -> Any:
    """An obstore registry for the server of a URL."""
    from obspec_utils.registry import ObjectStoreRegistry
    from obstore.store import HTTPStore

    server = url.rpartition("/")[0]
    return ObjectStoreRegistry({server: HTTPStore.from_url(server, client_options={"allow_http": True})})


def by_kerchunk(path: Path) -> Callable[[str], Any]:
    """zarr-python's array over references that kerchunk made from the local file, in fsspec's file system."""
    import aiohttp  # noqa: F401 - fsspec's HTTP needs it
    import fsspec
    import zarr
    from kerchunk.hdf import SingleHdf5ToZarr

    refs = SingleHdf5ToZarr(str(path), inline_threshold=0).translate()
    text = json.dumps({**refs, "templates": {"u": "unknown"}}).replace(json.dumps(str(path)), '"{{u}}"')

    def opened(url: str) -> Any:
        said = {"template_overrides": {"u": url}, "remote_protocol": "http", "asynchronous": True}
        said |= {"remote_options": {"asynchronous": True, "skip_instance_cache": True}, "skip_instance_cache": True}
        files = fsspec.filesystem("reference", fo=json.loads(text), **said)
        store = zarr.storage.FsspecStore(files, read_only=True)
        return zarr.open_group(store, mode="r", zarr_format=2)["x"]

    _ask_at_once()
    return opened


def by_icechunk() -> Callable[[str], Any]:
    """zarr-python's array over a repository in memory, with chunks in the file."""
    import icechunk
    import xarray
    import zarr
    from virtualizarr import open_virtual_dataset
    from virtualizarr.parsers import HDFParser

    def opened(url: str) -> Any:
        server = url.rpartition("/")[0] + "/"
        config = icechunk.RepositoryConfig.default()
        config.set_virtual_chunk_container(
            icechunk.VirtualChunkContainer(server, icechunk.http_store({"allow_http": "true"}))
        )
        allowed = {server: getattr(icechunk.credentials, "HttpAccess", None)}  # Icechunk 1 takes None
        repository = icechunk.Repository.create(icechunk.in_memory_storage(), config, allowed)
        session = repository.writable_session("main")
        made = open_virtual_dataset(url, registry=registry(url), parser=HDFParser())
        assert isinstance(made, xarray.Dataset)
        made.vz.to_icechunk(session.store)
        session.commit("made")
        return zarr.open_group(repository.readonly_session("main").store, mode="r", zarr_format=3)["x"]

    _ask_at_once()
    return opened


def _ask_at_once() -> None:
    import zarr

    zarr.config.set({"async.concurrency": AT_A_TIME})


def indexers_of(file: DelayedFile) -> dict[str, Callable[[], Side]]:
    """The peers that find all chunks of a file by its URL."""

    def h5py_side() -> Side:
        import aiohttp  # noqa: F401 - fsspec's HTTP needs it
        import fsspec

        return indexers.by_h5py(lambda: fsspec.filesystem("http", skip_instance_cache=True).open(file.url()))

    return {
        "hyperslab": lambda: indexers.by_hyperslab(file.url),
        "VirtualiZarr": lambda: indexers.by_virtualizarr(file.url, registry),
        "kerchunk": lambda: indexers.by_kerchunk(file.url, skip_instance_cache=True),
        "h5py + fsspec": h5py_side,
    }
