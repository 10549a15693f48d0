"""What holds for `hyperslab.h5` beside what it reads: closing, refusing, far files, file objects, without h5py."""

from __future__ import annotations

import functools
import io
import pickle
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import h5_samples
import h5py
import numpy as np
import pytest

import hyperslab.h5 as h5
from hyperslab.errors import DamagedFile, HyperslabError


@pytest.fixture
def path(tmp_path: Path) -> Path:
    h5_samples.basics(tmp_path / "basics.h5")
    return tmp_path / "basics.h5"


class Ranges(BaseHTTPRequestHandler):
    """Gives ranges of the files of a folder."""

    def __init__(self, folder: Path, *arguments: object) -> None:
        self.folder = folder
        super().__init__(*arguments)  # type: ignore[arg-type]

    def do_GET(self) -> None:
        content = (self.folder / self.path.lstrip("/")).read_bytes()
        first, _, last = self.headers.get("Range", "bytes=0-").removeprefix("bytes=").partition("-")
        stop = min(len(content), int(last or len(content)) + 1)
        part = content[int(first) : stop]
        self.send_response(206)
        self.send_header("Content-Range", f"bytes {first}-{stop - 1}/{len(content)}")
        self.send_header("Content-Length", str(len(part)))
        self.end_headers()
        self.wfile.write(part)

    def log_message(self, *arguments: object) -> None:
        pass


@pytest.fixture
def url(path: Path) -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Ranges, path.parent))
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}/{path.name}"
    server.shutdown()
    server.server_close()


def test_a_far_file_is_read_as_one_of_this_machine(url: str, path: Path) -> None:
    with h5.File(url) as far, h5.File(path) as near:
        assert far.filename == url
        assert list(far) == list(near)
        assert np.array_equal(far["packed"][3:9, 5], near["packed"][3:9, 5])
        assert far["x"].attrs["texts"].tolist() == ["a", "bé"]
        assert far[far["g/y"].ref].name == "/hard/y"


def test_file_objects_are_read(path: Path) -> None:
    with h5.File(io.BytesIO(path.read_bytes())) as f:
        assert f["x"][0, 0, 0] == 0
        assert f.driver == "fileobj"
    with path.open("rb") as file, h5.File(file, "r") as f:
        assert "g" in f
    with pytest.raises(OSError, match="open file"):
        h5.File(io.BytesIO(b"no HDF5 at all"))


class Reading:
    """What can be read and nothing else, like a file of a server: it counts."""

    def __init__(self, held: bytes) -> None:
        self._file, self.nbytes = io.BytesIO(held), 0

    def read(self, nbytes: int = -1) -> bytes:
        found = self._file.read(nbytes)
        self.nbytes += len(found)
        return found

    def seek(self, offset: int, whence: int = 0) -> int:
        return self._file.seek(offset, whence)

    def tell(self) -> int:
        return self._file.tell()


def test_only_what_is_needed_is_read_of_a_file_object(tmp_path: Path) -> None:
    values = np.random.default_rng(1).random((400, 1000))
    with h5py.File(tmp_path / "x.h5", "w", userblock_size=1024) as f:
        f.create_dataset("x", data=values, chunks=(10, 1000))
        f["x"].attrs["units"] = "m"
    held = (tmp_path / "x.h5").read_bytes()
    source = Reading(held)
    with h5.File(source) as f:
        np.testing.assert_array_equal(f["x"][20:30], values[20:30])
        assert (f["x"].attrs["units"], f.userblock_size, f["x"].chunks) == ("m", 1024, (10, 1000))
        assert f["x"] == f["/x"]
    assert source.nbytes < len(held) / 2
    assert source.tell() == 0


def test_nothing_can_be_had_of_a_closed_file(path: Path) -> None:
    f = h5.File(path)
    g, x = f["g"], f["x"]
    attributes = x.attrs
    f.close()
    f.close()
    assert not f
    assert not g
    assert not x
    assert repr(f) == "<Closed HDF5 file>"
    assert repr(g) == "<Closed HDF5 group>"
    assert repr(x) == "<Closed HDF5 dataset>"
    assert repr(attributes) == "<Attributes of closed HDF5 object>"
    assert g.name is None
    assert "y" not in g
    assert g.get("y") is None
    for error, ask in (
        (KeyError, lambda: f["g"]),
        (KeyError, lambda: attributes["units"]),
        (ValueError, lambda: list(g)),
        (ValueError, lambda: x.dtype),
        (ValueError, lambda: f.filename),
        (RuntimeError, lambda: x.shape),
        (RuntimeError, lambda: x[0]),
        (TypeError, lambda: hash(f["x"]) if f else hash(h5.Dataset(x.id))),
    ):
        with pytest.raises(error):
            ask()


@pytest.mark.parametrize("mode", ["w", "a", "r+", "x", "w-"])
def test_writing_is_refused_with_what_to_do(path: Path, mode: str) -> None:
    with pytest.raises(ValueError, match="write with h5py"):
        h5.File(path, mode)


def test_h5py_need_not_be_there(path: Path) -> None:
    code = f"""
import sys
sys.modules["h5py"] = None
import hyperslab.h5 as h5py
with h5py.File({str(path)!r}) as f:
    print(f["x"][0, 0, 1], f["x"].attrs["units"], f["packed"].compression_opts, list(f["ordered"]))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split()[:3] == ["1", "m", "7"]


def test_dtypes_are_understood_by_h5py(tmp_path: Path) -> None:
    h5_samples.kinds(tmp_path / "kinds.h5")
    with h5.File(tmp_path / "kinds.h5") as f:
        assert h5py.check_string_dtype(f["vlen_str"].dtype) == ("utf-8", None)
        assert h5py.check_string_dtype(f["fixed_utf8"].dtype) == ("utf-8", 4)
        assert h5py.check_enum_dtype(f["enum"].dtype) == {"A": 0, "B": 1, "C": 2}
        assert h5py.check_vlen_dtype(f["sequences"].dtype) == np.dtype("i4")
        assert h5py.check_dtype(vlen=f["vlen_ascii"].dtype) is bytes
        assert h5py.check_opaque_dtype(f["dates"].dtype)
        with h5py.File(tmp_path / "copy.h5", "w") as copy:  # what was read is written again
            for name in ("vlen_str", "fixed_utf8", "enum", "sequences", "record", "complex", "flags"):
                copy.create_dataset(name, data=f[name][:], dtype=f[name].dtype)
                assert copy[name].dtype == f[name].dtype


def test_objects_are_the_same_however_often_a_file_is_open(path: Path) -> None:
    with h5.File(path) as one, h5.File(path) as other:
        assert one["x"] == other["x"]
        assert hash(one["g"]) == hash(other["hard"])
        assert len({one["x"], other["x"], one["g"]}) == 2
        assert one == other


def test_objects_cannot_be_pickled_as_with_h5py(path: Path) -> None:
    with h5.File(path) as f, pytest.raises(TypeError, match="cannot be pickled"):
        pickle.dumps(f["x"])


def test_threads_share_a_file(path: Path) -> None:
    with h5.File(path) as f, ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda row: f["packed"][row % 20].sum(), range(200)))
    assert found[0] == np.arange(50.0).sum()


def test_a_reference_to_nothing_is_an_error(path: Path) -> None:
    with h5.File(path) as f:
        with pytest.raises(ValueError, match="Invalid HDF5 object reference"):
            f[h5.Reference()]
        for address in (1, 17, 1 << 40, (1 << 63) + 1):
            with pytest.raises((DamagedFile, OSError)):
                f[h5.Reference(address)]


def test_a_link_in_a_circle_is_an_error(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "circle.h5", "w") as f:
        f["a"], f["b"] = h5py.SoftLink("/b"), h5py.SoftLink("/a")
        f["self"] = h5py.ExternalLink("circle.h5", "/self")
        f.create_group("g")["up"] = f
    with h5.File(tmp_path / "circle.h5") as f:
        for name in ("a", "self"):
            with pytest.raises(KeyError):
                f[name]
        seen: list[str] = []
        f.visit(seen.append)
        assert seen == ["g"]
        f.visit_links(seen.append)
        assert f["g/up/g/up/g"].name == "/g/up/g/up/g"


@pytest.mark.parametrize("place", range(0, 4000, 97))
def test_damage_is_an_error_and_no_crash(path: Path, place: int) -> None:
    content = bytearray(path.read_bytes())
    content[place : place + 4] = b"\xff\xfe\x7f\x01"
    path.write_bytes(content)
    try:
        with h5.File(path) as f:
            for name in f:
                found = f.get(name)
                if isinstance(found, h5.Dataset):
                    found[...]
                    dict(found.attrs)
    except (HyperslabError, OSError, KeyError, ValueError, TypeError, RuntimeError):
        pass
