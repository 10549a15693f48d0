"""What cannot be proved on this machine is unproved, not damaged; `repair` keeps it as it is."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from queue import Empty, SimpleQueue
from types import GenericAlias, SimpleNamespace
from typing import Any

import h5py
import numpy as np
import pytest

import hyperslab as hs
from hyperslab.versions import repair
from hyperslab.versions.inspect import witness

hdf5plugin = pytest.importorskip("hdf5plugin")
REALLY_HIRED = witness.hired
LONG = np.dtype([("at", "g"), ("n", "i1"), ("z", "G")], align=True)


def verified(path: Path) -> Any:
    with hs.VersionedFile(path) as file:
        return file.verify()


def filters_in(path: Path) -> dict[str, Any]:
    with h5py.File(path) as file:
        return {
            name: file[f"_version_data/{name}/raw_data"]._filters for name in file["_version_data"] if name[0] == "c"
        }


@pytest.fixture
def encoded(tmp_path: Path) -> Path:
    """Two versions of arrays with codecs that HDF5 itself does not have."""
    codecs = (
        hdf5plugin.Zstd(),
        hdf5plugin.Blosc(cname="lz4"),
        hdf5plugin.Bitshuffle(),
        hdf5plugin.Zfp(reversible=True),
    )
    path = tmp_path / "encoded.h5"
    with hs.VersionedFile(path, "w") as file:
        with file.stage_version("a") as version:
            for number, codec in enumerate(codecs):
                version.create_dataset(f"c{number}", data=np.arange(200.0), chunks=(50,), **codec)
        with file.stage_version("b") as version:
            version["c0"][5] = -1
    return path


PROGRAM = """
import json, sys, hyperslab as hs; from hyperslab.versions import repair
path, repaired, changed = sys.argv[1:]
with hs.VersionedFile(path) as file:
    found = file.verify()
made = repair(path, repaired)
error = None
try:
    with hs.VersionedFile(path, "r+") as file:
        file.modify_metadata("c1", chunks=(40,))
        file.delete_versions("a")
        file.export("b", changed)
except Exception as one:
    error = repr(one)
print(json.dumps([[one.what for one in found.damages], found.proved, found.unproved,
    list(map(str, made.lost)), list(map(str, made.notes)), error]))
"""


def asked(path: Path, *path_entries: Path) -> Any:
    """What a program that does not import hdf5plugin finds."""
    code = f"import sys; sys.path[:0] = {list(map(str, path_entries))!r}\n{PROGRAM}"
    command = [sys.executable, "-c", code, path, path.with_name("repaired.h5"), path.with_name("out.h5")]
    # Other tests import netCDF4, whose plugins are for its own libhdf5.
    environment = {name: value for name, value in os.environ.items() if name != "HDF5_PLUGIN_PATH"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_codecs_of_hdf5plugin_are_used_wherever_hdf5_needs_them(encoded: Path) -> None:
    before = filters_in(encoded)
    assert asked(encoded) == [[], ["a", "b"], {}, [], [], None]
    assert filters_in(encoded.with_name("repaired.h5")) == before
    assert verified(encoded.with_name("repaired.h5")).proved == ["a", "b"]
    np.testing.assert_array_equal(hs.open(encoded.with_name("out.h5"))["c1"][...], np.arange(200.0))


def test_without_a_codec_versions_are_unproved(encoded: Path, tmp_path: Path) -> None:
    (tmp_path / "none").mkdir()
    (tmp_path / "none" / "hdf5plugin.py").write_text("raise ImportError('not installed')")
    damages, proved, unproved, _, notes, _ = asked(encoded, tmp_path / "none")
    assert (damages, proved, sorted(unproved)) == ([], [], ["a", "b"])
    assert "lacks codec" in unproved["b"] or "could not be checked" in unproved["b"]
    assert "HDF5 cannot encode with filter 32015 on this machine" in notes[0]


@pytest.mark.parametrize("dtype", ["g", "G", LONG], ids=["longdouble", "clongdouble", "compound"])
def test_bytes_that_mean_nothing_are_not_compared(tmp_path: Path, dtype: Any) -> None:
    path, shape = tmp_path / "long.h5", (40,)
    dtype = np.dtype(dtype)
    rng = np.random.default_rng(3)
    numbers = rng.integers(0, 256, 40 * dtype.itemsize, np.uint8)  # whatever memory holds
    data = numbers.view(dtype)
    for name in dtype.names or (None,):
        part = data if name is None else data[name]
        part[...] = np.arange(40)
    fill = np.full(3, np.uint8(0xEE)).repeat(dtype.itemsize)[: dtype.itemsize].view(dtype)
    for name in dtype.names or (None,):
        (fill if name is None else fill[name])[...] = 7
    with hs.VersionedFile(path, "w") as file:
        with file.stage_version("a") as version:
            version.create_dataset("x", data=data, chunks=(9,), fillvalue=fill[0])
            version.create_dataset("empty", shape=shape, dtype=dtype, chunks=(9,), fillvalue=fill[0])
            version["x"].attrs["one"] = data[1]
        with file.stage_version("b") as version:
            version["x"][3] = data[7]
    with hs.VersionedFile(path, "r+") as file, file.stage_version("c") as version:
        assert version["x"].dtype == dtype
        version["x"][4] = data[8]
        del version["empty"]
        version.create_dataset("empty", shape=(50,), dtype=dtype, chunks=(9,), fillvalue=fill[0])
    found = verified(path)
    assert (found.damages, found.proved, found.unproved) == ([], ["a", "b", "c"], {})
    assert repair(path, tmp_path / "repaired.h5").is_complete
    again = verified(tmp_path / "repaired.h5")
    assert (again.damages, again.proved) == ([], ["a", "b", "c"])
    with h5py.File(path) as one, h5py.File(tmp_path / "repaired.h5") as other:
        for version in "abc":
            name = f"_version_data/versions/{version}/x"
            assert (one[name][()] == other[name][()]).all()
            assert one[name].dtype == other[name].dtype == dtype
    with hs.VersionedFile(path, "r+") as file:
        file.modify_metadata("x", chunks=(7,))
        file.delete_versions("b")
    with h5py.File(path) as one, h5py.File(tmp_path / "repaired.h5") as other:
        assert (one["_version_data/versions/c/x"][()] == other["_version_data/versions/c/x"][()]).all()
    assert verified(path).proved == ["a", "c"]


SILENT = "import sys, time; sys.stdin.read(); print('{heard}', flush=True); {then}"
HEARD = '{"damages": [], "proved": ["a"], "unproved": {}}'


class HeardOnce:
    """Waits for the first line however slow this machine is; a wait of less than a second has then no length."""

    __class_getitem__ = classmethod(GenericAlias)

    def __init__(self) -> None:
        self._lines, self._is_first = SimpleQueue[str](), True
        self.put = self._lines.put

    def get(self, timeout: float) -> str:
        wait, self._is_first = 60 if self._is_first else 0 if timeout < 1 else timeout, False
        return self._lines.get(timeout=wait)


@pytest.mark.parametrize(
    ("then", "seconds", "reason"),
    [
        ("time.sleep(600)", 0.2, "within 0 s"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", 60, "was killed"),
        ("raise MemoryError", 60, "not enough memory"),
    ],
)
def test_a_witness_that_does_not_finish_is_no_damage(
    encoded: Path, monkeypatch: pytest.MonkeyPatch, then: str, seconds: float, reason: str
) -> None:
    program = SILENT.replace("{heard}", HEARD).replace("{then}", then)
    real = subprocess.Popen
    monkeypatch.setattr(witness, "SECONDS", seconds)
    monkeypatch.setattr(witness, "queue", SimpleNamespace(SimpleQueue=HeardOnce, Empty=Empty))
    monkeypatch.setattr(witness, "hired", REALLY_HIRED)
    monkeypatch.setattr(subprocess, "Popen", lambda command, **given: real([command[0], "-c", program], **given))
    found = verified(encoded)
    assert (found.damages, found.proved, list(found.unproved)) == ([], ["a"], ["b"])
    assert reason in found.unproved["b"]


def test_a_crash_of_hdf5_is_damage(encoded: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = SILENT.replace("{heard}", HEARD).replace("{then}", "import os, signal; os.kill(os.getpid(), 11)")
    real = subprocess.Popen
    monkeypatch.setattr(witness, "hired", REALLY_HIRED)
    monkeypatch.setattr(subprocess, "Popen", lambda command, **given: real([command[0], "-c", program], **given))
    found = verified(encoded)
    assert [one.what for one in found.damages] == [f"HDF5 crashes when it reads the file (signal {signal.SIGSEGV:d})"]


def test_a_witness_tells_what_is_new_since_it_told_last() -> None:
    told, found, heard = (witness.Testimony() for _ in range(3))
    for step in range(3):
        found.add(f"damage {step}", "x", ["a"])
        found.proved.append(f"v{step}")
        found.unproved["u"] = f"reason {step}"
        said = found.since(told)
        assert (len(said["damages"]), len(said["proved"])) == (1, 1)
        heard.hear(json.loads(json.dumps(said)))
    assert (heard.proved, heard.unproved) == (found.proved, found.unproved)
    assert [tuple(one) for one in heard.damages] == found.damages


def test_a_version_with_a_damaged_chunk_is_not_proved(tmp_path: Path) -> None:
    path = tmp_path / "v.h5"
    with hs.VersionedFile(path, "w") as file:
        for number in range(12):
            with file.stage_version(f"v{number}") as version:
                if not number:
                    version.create_dataset("x", data=np.arange(100), chunks=(10,))
                version["x"][95] = -number
    with h5py.File(path) as file:
        info = file["_version_data/x/raw_data"].id.get_chunk_info(11)  # the last chunk of v2
    data = bytearray(path.read_bytes())
    data[info.byte_offset] ^= 1
    path.write_bytes(data)
    found = verified(path)
    assert [one.array for one in found.damages] == ["x"]
    assert set(found.unproved) == set(found.damages[0].versions)
    assert found.proved == [f"v{number}" for number in range(12) if f"v{number}" not in found.unproved]
