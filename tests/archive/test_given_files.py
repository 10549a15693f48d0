"""Bytes, open files, and stores that only their own library reads: by their own `read`, and counted."""

from __future__ import annotations

import gzip
import io
import mmap
import os
import pickle
import tempfile
import threading
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr

import hyperslab as hs
from hyperslab.errors import DamagedFile, ReadError, Unsupported, UsageError

fsspec = pytest.importorskip("fsspec", reason="not installed: pip install fsspec")
obstore = pytest.importorskip("obstore", reason="not installed: pip install 'hyperslab[benchmarks]'")
zarr = pytest.importorskip("zarr", reason="not installed: pip install 'hyperslab[formats]'")
VALUES = np.random.default_rng(3).normal(size=(300, 200))
ocean = xr.Dataset({"a": (("x", "y"), VALUES)})


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("given")
    ocean.to_netcdf(folder / "o.nc", engine="netcdf4", encoding={"a": {"zlib": True, "chunksizes": (50, 40)}})
    data = (folder / "o.nc").read_bytes()
    (folder / "o.nc.gz").write_bytes(gzip.compress(data))
    with zipfile.ZipFile(folder / "packed.zip", "w", zipfile.ZIP_DEFLATED) as packed:
        packed.write(folder / "o.nc", "in/o.nc")
    ocean.to_zarr(folder / "o.zarr", zarr_format=3, consolidated=False)
    for version in (2, 3):
        with zarr.storage.ZipStore(folder / f"zarr{version}.zip", mode="w") as store:
            ocean.to_zarr(store, zarr_format=version, consolidated=False)
    memory = fsspec.filesystem("memory")
    memory.pipe("/given/o.nc", data)
    memory.put(str(folder / "o.zarr"), "/given/o.zarr", recursive=True)
    return folder


def data(folder: Path) -> bytes:
    return (folder / "o.nc").read_bytes()


def spooled(folder: Path) -> Any:
    made = tempfile.SpooledTemporaryFile()  # noqa: SIM115
    made.write(data(folder))
    made.seek(7)
    return made


def unnamed(folder: Path) -> Any:
    made = tempfile.TemporaryFile()  # noqa: SIM115
    made.write(data(folder))
    made.flush()
    made.seek(0)
    return made


def in_obstore(folder: Path) -> Any:
    store = obstore.store.MemoryStore()
    obstore.put(store, "o.nc", data(folder))
    return store, "o.nc"


def in_zarr(folder: Path) -> Any:
    store = zarr.storage.MemoryStore()
    ocean.to_zarr(store, zarr_format=3, consolidated=False)
    return store


def in_upath(folder: Path) -> Any:
    upath = pytest.importorskip("upath", reason="not installed: pip install universal-pathlib")
    return upath.UPath("memory://given/o.nc")


def mapped(folder: Path) -> Any:
    with (folder / "o.nc").open("rb") as file:
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


memory = fsspec.filesystem("memory")
SOURCES: dict[str, Callable[[Path], Any]] = {
    "bytes": data,
    "bytearray": lambda folder: bytearray(data(folder)),
    "memoryview": lambda folder: memoryview(data(folder)),
    "BytesIO": lambda folder: io.BytesIO(data(folder)),
    "open file": lambda folder: (folder / "o.nc").open("rb"),
    "open file without buffer": lambda folder: (folder / "o.nc").open("rb", buffering=0),
    "file without a name": unnamed,
    "spooled file": spooled,
    "mapped file": mapped,
    "gzip file": lambda folder: gzip.open(folder / "o.nc.gz"),  # noqa: SIM115
    "memory://": lambda _: "memory://given/o.nc",
    "(file system, path)": lambda _: (memory, "/given/o.nc"),
    "file of fsspec": lambda _: memory.open("/given/o.nc"),
    "OpenFile": lambda _: fsspec.open("memory://given/o.nc"),
    "OpenFile, packed": lambda folder: fsspec.open(str(folder / "o.nc.gz"), compression="gzip"),
    "simplecache::": lambda _: "simplecache::memory://given/o.nc",
    "filecache::": lambda _: "filecache::memory://given/o.nc",
    "zip://": lambda folder: f"zip://in/o.nc::{folder / 'packed.zip'}",
    "local://": lambda folder: f"local://{folder / 'o.nc'}",
    "UPath": in_upath,
    "store of obstore": in_obstore,
    "zarr, LocalStore": lambda folder: zarr.storage.LocalStore(folder / "o.zarr"),
    "zarr, FsspecStore": lambda _: zarr.storage.FsspecStore.from_url("memory://given/o.zarr"),
    "zarr, ObjectStore": lambda folder: zarr.storage.ObjectStore(obstore.store.LocalStore(folder / "o.zarr")),
    "zarr, ZipStore": lambda folder: zarr.storage.ZipStore(folder / "zarr3.zip", mode="r"),
    "zarr 2, ZipStore": lambda folder: zarr.storage.ZipStore(folder / "zarr2.zip", mode="r"),
    "zarr, MemoryStore": in_zarr,
    "zarr, mapper": lambda _: memory.get_mapper("/given/o.zarr"),
    "zarr, zip://": lambda folder: f"zip://::{folder / 'zarr3.zip'}",
}


@pytest.mark.parametrize("name", SOURCES)
def test_sources(folder: Path, name: str) -> None:
    source = SOURCES[name](folder)
    np.testing.assert_array_equal(hs.open(source)["a"][3:290:7, ::2], VALUES[3:290:7, ::2])
    opened = xr.open_dataset(source, engine="hyperslab")
    xr.testing.assert_equal(opened.load(), ocean)
    if callable(getattr(source, "tell", None)):
        assert source.tell() == (7 if name == "spooled file" else 0)


@pytest.mark.parametrize("name", ["bytes", "BytesIO", "memory://", "zip://", "zarr, ZipStore", "zarr, MemoryStore"])
def test_tasks_carry_what_they_read(folder: Path, name: str) -> None:
    lazy = xr.open_dataset(SOURCES[name](folder), engine="hyperslab")
    xr.testing.assert_equal(pickle.loads(pickle.dumps(lazy)).load(), ocean)


def test_several_at_a_time(folder: Path) -> None:
    both = xr.open_mfdataset(
        [io.BytesIO(data(folder)), io.BytesIO(data(folder))], engine="hyperslab", combine="nested", concat_dim="x"
    )
    assert both.a.shape == (600, 200)
    assert hs.open([data(folder), data(folder)], concat="x")["a"].shape == (600, 200)


class Counting:
    """What has `read` and `seek` and nothing else."""

    def __init__(self, held: bytes, longest: int | None = None) -> None:
        self.held, self.position, self.longest = held, 0, longest
        self.asked: list[int] = []

    def seek(self, offset: int, whence: int = 0) -> int:
        self.position = offset + (len(self.held) if whence == 2 else 0)
        return self.position

    def tell(self) -> int:
        return self.position

    def read(self, nbytes: int = -1) -> bytes:
        self.asked.append(nbytes)
        end = self.position + min(nbytes, self.longest or nbytes)
        part = self.held[self.position : end]
        self.position += len(part)
        return part


def test_requests_are_counted(folder: Path) -> None:
    before = hs.stats()["hosts"].get("Counting", {"request_count": 0, "fetched_nbytes": 0})
    large = np.random.default_rng(4).normal(size=(1200, 400))
    xr.Dataset({"a": (("x", "y"), large)}).to_netcdf(folder / "large.nc", encoding={"a": {"chunksizes": (50, 40)}})
    source = Counting((folder / "large.nc").read_bytes())
    np.testing.assert_array_equal(hs.open(source)["a"][:50, :40], large[:50, :40])
    after = hs.stats()["hosts"]["Counting"]
    assert after["request_count"] - before["request_count"] == len(source.asked)
    assert after["fetched_nbytes"] - before["fetched_nbytes"] == sum(source.asked) < 0.5 * len(source.held)


def test_short_reads_go_on_and_too_short_ones_are_named(folder: Path) -> None:
    np.testing.assert_array_equal(hs.open(Counting(data(folder), longest=1000))["a"][...], VALUES)
    source = Counting(data(folder))
    array = hs.open(source)["a"]
    source.held = source.held[:5000]
    with pytest.raises(ReadError, match=r"<Counting>.* bytes came, but .* were expected"):
        array[...]


def test_what_an_object_raises_is_told(folder: Path) -> None:
    source = Counting(data(folder))
    array = hs.open(source)["a"]

    def fails(_: int = -1) -> bytes:
        raise OSError("no such https://h/x?signature=hunter2")

    source.read = fails  # type: ignore[method-assign]
    with pytest.raises(ReadError, match=r"OSError: no such https://h/x\?") as raised:
        array[...]
    assert "hunter2" not in str(raised.value)


def test_a_store_that_can_is_read_side_by_side(folder: Path) -> None:
    held, threads, most = data(folder), set(), []
    lock, both = threading.Lock(), threading.Event()

    class Fs(type(memory)):  # type: ignore[misc]
        protocol = "meeting"
        async_impl = True

        def info(self, path: str, **_: Any) -> dict[str, Any]:
            return {"name": path, "size": len(held), "type": "file"}

        def cat_ranges(self, paths: list[str], starts: list[int], ends: list[int], **_: Any) -> list[bytes]:
            with lock:
                threads.add(threading.get_ident())
                most.append(len(paths))
            if len(threads) > 1:
                both.set()
            both.wait(0.5)  # the other thread may be slow to come
            return [held[start:end] for start, end in zip(starts, ends, strict=True)]

        def isdir(self, path: str) -> bool:
            return False

    Fs.__name__ = "Fs"
    np.testing.assert_array_equal(hs.open((Fs(skip_instance_cache=True), "x.nc"))["a"][...], VALUES)
    assert len(threads) > 1


@pytest.mark.parametrize(
    ("source", "said"),
    [
        (5, "cannot open an object of type int: give a path, a URL, bytes"),
        (None, "cannot open an object of type NoneType: give"),
        (object(), "cannot open an object of type object: give"),
        ("strange://x", "fsspec does not know such a URL"),
    ],
)
def test_what_is_refused_says_what_is_accepted(source: Any, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        hs.open(source)


def test_files_that_cannot_be_read_anywhere_are_refused(folder: Path, tmp_path: Path) -> None:
    reading, writing = os.pipe()
    with os.fdopen(reading, "rb") as pipe, pytest.raises(UsageError, match="give its bytes"):
        hs.open(pipe)
    os.close(writing)
    (tmp_path / "x").write_text("x")
    with (tmp_path / "x").open() as text, pytest.raises(UsageError, match="binary mode"):
        hs.open(text)
    with (tmp_path / "x").open("wb") as written, pytest.raises(UsageError, match="not open for reading"):
        hs.open(written)
    with pytest.raises(UsageError, match=r"storage_options= is for URLs, <bytes> is an object"):
        hs.open(data(folder), storage_options={"key": "x"})
    with pytest.raises(UsageError, match="version= is for files with a path or a URL"):
        hs.open(data(folder), version=0)


def test_damage(folder: Path) -> None:
    for held in (b"", b"garbage", b"\x89HDF"):
        with pytest.raises((Unsupported, DamagedFile)):
            hs.open(held)
    with pytest.raises(DamagedFile, match="<bytes>"):
        hs.open(data(folder)[:5000])["a"][...]
    broken = bytearray((folder / "zarr3.zip").read_bytes())
    broken[len(broken) // 2 :] = b"\0" * (len(broken) - len(broken) // 2)
    (folder / "broken.zip").write_bytes(broken)
    with pytest.raises(DamagedFile, match=r"not a complete ZIP file|is not where"):
        hs.open(zarr.storage.ZipStore(folder / "broken.zip", mode="r"))


def test_secrets_of_file_systems_are_not_pickled(folder: Path) -> None:
    fs = fsspec.filesystem("memory", password="hunter2", skip_instance_cache=True)
    array = hs.open((fs, "/given/o.nc"))["a"]
    with pytest.raises(UsageError, match="opened with password") as raised:
        pickle.dumps(array)
    assert "hunter2" not in str(raised.value)


def test_documents_that_are_given_lead_where_they_may(folder: Path) -> None:
    document = b'{"version": 1, "refs": {".zgroup": "{\\"zarr_format\\": 2}", "x/.zarray": "{}"}}'
    leads = document.replace(b'"x/.zarray": "{}"', b'"x": ["/etc/hostname"]')
    hs.open(leads)
    hs.open(leads, allowed=())
    inside = hs.open(zarr.storage.ZipStore(folder / "zarr3.zip", mode="r"), allowed=())
    np.testing.assert_array_equal(inside["a"][0], VALUES[0])


def test_guessing(folder: Path, tmp_path: Path) -> None:
    engine = xr.backends.list_engines()["hyperslab"]
    (tmp_path / "nameless").write_bytes(data(folder))
    (tmp_path / "other").write_bytes(b"something else")
    (tmp_path / "empty").mkdir()
    (tmp_path / "hierarchy").symlink_to(folder / "o.zarr")
    yes = [tmp_path / "nameless", str(tmp_path / "nameless"), data(folder), io.BytesIO(data(folder)), "x.fits",
           tmp_path / "hierarchy", hs.open(data(folder)), "https://h/x.h5"]  # fmt: skip
    # xarray's engine "zarr" comes after ours, and would not be asked
    no = [folder / "o.zarr", f"{folder / 'o.zarr'}/", "s3://bucket/o.zarr", tmp_path / "other", b"something",
          io.BytesIO(b"x"), tmp_path / "empty", tmp_path / "nothing", "x.grib", 5]  # fmt: skip
    assert [engine.guess_can_open(one) for one in yes] == [True] * len(yes)
    assert [engine.guess_can_open(one) for one in no] == [False] * len(no)
    assert all(word in engine.description for word in ("HDF5", "NetCDF", "FITS", "HDF4", "Zarr"))
    names = list(xr.backends.list_engines())
    assert names.index("hyperslab") > names.index(
        "netcdf4"
    )  # xarray asks its own first: its option says in which order


def test_options_that_only_say_how_files_are_read_are_taken_for_files_of_this_machine(folder: Path) -> None:
    path = (folder / "o.nc").absolute()
    options = {"skip_instance_cache": False, "block_size": 1 << 20}
    for name in (str(path), path.as_uri()):
        with xr.open_dataset(name, engine="hyperslab", storage_options=options) as found:
            assert found.sizes
    with pytest.raises(UsageError, match="storage_options= is for URLs"):
        hs.open(path, storage_options={**options, "anon": True})
