"""Names that are URLs, opened by h5py and netCDF4: the elements of the file, or an error; never a mixture.

Each program runs in a process of its own that has called `hyperslab.accelerate`.
"""

from __future__ import annotations

import contextlib
import json
import textwrap
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import servers

from command_line import run_python

nc = pytest.importorskip("netCDF4")

PRELUDE = """
import json, os, sys
import h5py, netCDF4, numpy as np, hyperslab as hs
from hyperslab.running.accelerating import accelerations
hs.accelerate()

def told(work, *arguments, **options):
    try:
        return str(work(*arguments, **options))
    except Exception as error:
        return f"{type(error).__name__}: {error}"

def answer(what):
    print(json.dumps(what))
"""
LASTING = ["404", "403", "short", "etag", "nameless", "whole", "gzip"]
FORMATS = ["NETCDF4", "NETCDF4_CLASSIC", "NETCDF3_CLASSIC", "NETCDF3_64BIT_OFFSET", "NETCDF3_64BIT_DATA"]


def answered(code: str, *words: object) -> Any:
    done = run_python(PRELUDE + textwrap.dedent(code), *words, modules=("numpy", "h5py", "netCDF4"))
    assert done.returncode == 0, done.stderr.decode()
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def folder(root: Path) -> Path:
    """Files of netCDF, and files that lead to others, below the server's folder."""
    folder = root / "urls"
    (folder / "below").mkdir(parents=True)
    values = np.random.default_rng(2).integers(0, 99, size=(40, 30, 50)).astype("f4")
    for kind in FORMATS:
        with nc.Dataset(folder / f"{kind}.nc", "w", format=kind) as made:
            for name, length in (("t", None), ("y", 30), ("x", 50)):
                made.createDimension(name, length)
            made.createVariable("v", "f4", ("t", "y", "x"), zlib="4" in kind.partition("NETCDF")[2][:1])[:] = values
            made.title = "a title"
    with h5py.File(folder / "below" / "near.h5", "w") as made:
        made["v"] = np.arange(5.0)
    with h5py.File(root / "other.h5", "w") as made:
        made["v"] = np.arange(5.0)
    return folder


def test_h5py_reads_what_it_reads_here(server: servers.Nginx, root: Path) -> None:
    code = """
    with h5py.File(sys.argv[1]) as far, h5py.File(sys.argv[2]) as near:
        assert list(far) == list(near)
        for name in ("deflated", "plain", "whole", "names", "group/deep"):
            assert (far[name][()] == near[name][()]).all(), name
            assert (far[name][1:3] == near[name][1:3]).all(), name
        counts = accelerations()
        answer([far.filename, counts.served_reads, counts.far.requests, counts.far.nbytes])
    """
    before = server.requests()
    name, served, requests, nbytes = answered(code, f"{server.url}/ocean.h5", root / "ocean.h5")
    asked = server.requests()[len(before) :]
    assert name == f"{server.url}/ocean.h5"
    assert served >= 3
    assert [requests, nbytes] == [len(asked), sum(sent for status, sent in asked if status == 206)]


def test_netcdf_reads_what_it_reads_here(server: servers.Nginx, folder: Path) -> None:
    code = """
    said = []
    for kind in sys.argv[3:]:
        path = f"{sys.argv[2]}/{kind}.nc"
        with netCDF4.Dataset(f"{sys.argv[1]}/{kind}.nc") as far, netCDF4.Dataset(path) as near:
            assert (far["v"][:] == near["v"][:]).all()
            assert (far["v"][::7, 3, ::-2] == near["v"][::7, 3, ::-2]).all()
            child = os.fork()
            if child == 0:
                os._exit(0 if (far["v"][5:20:3] == near["v"][5:20:3]).all() else 1)
            assert os.waitpid(child, 0)[1] == 0
            said.append([far.filepath(), far.data_model, far.title])
        with netCDF4.Dataset(path) as near:  # a file here has its own name, whatever the identifier was before
            assert near.filepath() == path
    answer(said)
    """
    said = answered(code, f"{server.url}/urls", folder, *FORMATS)
    assert said == [[f"{server.url}/urls/{kind}.nc", kind, "a title"] for kind in FORMATS]


def test_threads_read_at_the_same_time(server: servers.Nginx, folder: Path) -> None:
    code = """
    from concurrent.futures import ThreadPoolExecutor
    def total(number):
        kind = ("NETCDF4", "NETCDF3_CLASSIC")[number % 2]
        if number % 4 < 2:
            with netCDF4.Dataset(f"{sys.argv[1]}/{kind}.nc") as file:
                return float(file["v"][:].sum())
        with h5py.File(f"{sys.argv[1]}/NETCDF4.nc") as file:
            return float(file["v"][:].sum())
    with ThreadPoolExecutor(4) as pool:
        sums = set(pool.map(total, range(16)))
    left = [one for one in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{one}")
            and "memfd" in os.readlink(f"/proc/self/fd/{one}")]
    answer([len(sums), left])
    """
    assert answered(code, f"{server.url}/urls") == [1, []]


def test_what_is_missing_is_an_error_of_the_library(server: servers.Nginx, folder: Path) -> None:
    code = """
    url = sys.argv[1]
    answer([told(h5py.File, f"{url}/none.h5"), told(netCDF4.Dataset, f"{url}/none.nc"),
            told(h5py.File, f"{url}/urls/"), told(netCDF4.Dataset, f"{url}/urls/"),
            told(h5py.File, f"{url}/urls/NETCDF3_CLASSIC.nc")])
    """
    missing, missing_too, listing, listing_too, other = answered(code, server.url)
    assert missing.startswith("FileNotFoundError")
    assert f"there is nothing at {server.url}/none.h5: check the URL" in missing
    assert missing_too.startswith("OSError")
    assert f"there is nothing at {server.url}/none.nc" in missing_too
    assert "HTTP 403" in listing
    assert "HTTP 403" in listing_too
    assert "signature" in other


def test_a_url_is_not_written_to(server: servers.Nginx, root: Path) -> None:
    code = """
    url = sys.argv[1]
    answer([told(h5py.File, url, mode) for mode in ("r+", "a", "w", "x")]
           + [told(netCDF4.Dataset, url, mode) for mode in ("r+", "a", "w")]
           + [told(h5py.File, url, swmr=True)])
    """
    before = (root / "ocean.h5").read_bytes()
    said = answered(code, f"{server.url}/ocean.h5")
    assert all("Error" in one for one in said), said
    assert "can only be read" in said[0]
    assert (root / "ocean.h5").read_bytes() == before


def test_other_drivers_and_other_names_are_left_alone(server: servers.Nginx, folder: Path) -> None:
    code = """
    url = sys.argv[1]
    before = accelerations().far.files
    told(h5py.File, f"{url}/ocean.h5", driver="core")
    told(netCDF4.Dataset, f"{url}/urls/NETCDF4.nc#mode=bytes")
    told(netCDF4.Dataset, f"{url}/urls/NETCDF4.nc", diskless=True)
    told(h5py.File, "gopher://example.invalid/x.h5")
    answer(accelerations().far.files - before)
    """
    assert answered(code, server.url) == 0


def test_a_file_that_changes_is_an_error(server: servers.Nginx, folder: Path) -> None:
    code = """
    said = []
    for path in sys.argv[2:]:
        url = f"{sys.argv[1]}/{os.path.basename(path)}"
        file = h5py.File(url) if path.endswith(".h5") else netCDF4.Dataset(url)
        with open(path, "ab") as changing:
            changing.write(b"more")
        array = file["v"]
        said.append([told(lambda: array[:].sum()), told(lambda: array[-1].sum())])
    answer(said)
    """
    (folder / "changing").mkdir()
    values = np.random.default_rng(3).random((8, 300, 200))
    paths = [folder / "changing" / name for name in ("chunked.h5", "plain.h5", "four.nc", "three.nc")]
    for path, chunks in zip(paths[:2], [(1, 300, 200), None], strict=True):
        with h5py.File(path, "w") as made:
            made.create_dataset("v", data=values, chunks=chunks)
    for path, kind in zip(paths[2:], ["NETCDF4", "NETCDF3_CLASSIC"], strict=True):
        with nc.Dataset(path, "w", format=kind) as made:
            for name, length in zip("tyx", values.shape, strict=True):
                made.createDimension(name, length)
            made.createVariable("v", "f8", tuple("tyx"))[:] = values
    said = answered(code, f"{server.url}/urls/changing", *paths)
    for path, (whole, part) in zip(paths, said, strict=True):
        assert "Error" in whole, (path.name, whole)
        assert "Error" in part, (path.name, part)
        assert "changed while it was open" in whole, (path.name, whole)


def test_what_passes_is_tried_again(proxy: servers.Proxy, root: Path) -> None:
    code = """
    for turn in range(2):
        with h5py.File(sys.argv[1]) as far, h5py.File(sys.argv[2]) as near:
            assert (far["deflated"][:] == near["deflated"][:]).all()
            assert (far["whole"][3] == near["whole"][3]).all()
    answer(True)
    """
    proxy.behaviour.faults = ["ok", "503", "ok", "ok", "close", "short", "ok", "range", "ok", "reset"]
    assert answered(code, f"{proxy.url}/ocean.h5", root / "ocean.h5")
    assert not proxy.behaviour.faults


@pytest.fixture(scope="module")
def opening_count(server: servers.Nginx) -> int:
    """How many requests it takes to open the file."""
    code = """
    file = h5py.File(sys.argv[1])
    answer(accelerations().far.requests)
    """
    return answered(code, f"{server.url}/ocean.h5")


def test_what_does_not_pass_is_an_error(server: servers.Nginx, opening_count: int) -> None:
    code = """
    for url in sys.argv[1:]:
        hs.credentials(url, attempts=1)
    files = [h5py.File(f"{url}/ocean.h5") for url in sys.argv[1:]]
    answer([told(file[name].__getitem__, ()) for file in files for name in ("deflated", "plain", "whole")])
    """
    with contextlib.ExitStack() as stack:
        proxies = [stack.enter_context(contextlib.closing(servers.Proxy(server.port))) for _ in LASTING]
        for proxy, fault in zip(proxies, LASTING, strict=True):
            proxy.behaviour.after, proxy.behaviour.always = opening_count, fault
        said = answered(code, *(proxy.url for proxy in proxies))
    assert len(said) == 3 * len(LASTING)
    for place, one in enumerate(said):
        assert one.startswith(("OSError", "FileNotFoundError", "PermissionError")), (LASTING[place // 3], one)
        assert proxies[place // 3].url in one, one


def test_netcdf_says_what_is_wrong(proxy: servers.Proxy, folder: Path) -> None:
    code = """
    hs.credentials(sys.argv[1], attempts=1)
    answer(told(netCDF4.Dataset, f"{sys.argv[1]}/ocean.h5"))
    """
    proxy.behaviour.always = "403"
    said = answered(code, proxy.url)
    assert said.startswith(("OSError", "PermissionError"))
    assert "HTTP 403" in said


def test_links_lead_to_the_files_own_folder(server: servers.Nginx, folder: Path, tmp_path: Path) -> None:
    here = tmp_path / "here.h5"
    with h5py.File(here, "w") as made:
        made["v"] = np.arange(5.0)
    with h5py.File(folder / "links.h5", "w") as made:
        for name, target in (("near", "below/near.h5"), ("up", "../other.h5"), ("here", str(here)),
                             ("beside", "here.h5"), ("far", "http://example.invalid/x.h5")):  # fmt: skip
            made[name] = h5py.ExternalLink(target, "/v")
    code = """
    os.chdir(sys.argv[2])
    with h5py.File(sys.argv[1]) as file:
        answer({name: told(lambda name=name: file[name][:].sum()) for name in file})
    """
    said = answered(code, f"{server.url}/urls/links.h5", tmp_path)
    assert said.pop("near") == "10.0"
    assert len(said) == 4
    assert all(one.startswith("KeyError") for one in said.values()), said


def test_arrays_lead_to_the_files_own_folder(server: servers.Nginx, folder: Path, tmp_path: Path) -> None:
    here, raw = tmp_path / "here.h5", tmp_path / "raw"
    with h5py.File(here, "w") as made:
        made["v"] = np.arange(5.0)
    raw.write_bytes(np.arange(5.0).tobytes())
    with h5py.File(folder / "arrays.h5", "w") as made:
        for name, source in (("near", "below/near.h5"), ("missing", "below/none.h5"), ("up", "../other.h5"),
                             ("here", str(here)), ("far", "http://example.invalid/x.h5")):  # fmt: skip
            layout = h5py.VirtualLayout((5,), "f8")
            layout[:] = h5py.VirtualSource(source, "v", (5,))
            made.create_virtual_dataset(name, layout, fillvalue=-1)
        made.create_dataset("raw", shape=(5,), dtype="f8", external=[(str(raw), 0, 40)])
    code = """
    with h5py.File(sys.argv[1]) as file:
        answer({name: told(lambda name=name: file[name][:].sum()) for name in file})
    """
    said = answered(code, f"{server.url}/urls/arrays.h5")
    assert (said.pop("near"), said.pop("missing")) == ("10.0", "-5.0")
    assert "outside of HDF5" in said.pop("raw")
    for name in ("up", "here", "far"):
        assert "is not followed (docs/security.md)" in said[name], said


def test_credentials_are_those_of_open(server: servers.Nginx, root: Path) -> None:
    code = """
    url = sys.argv[1]
    said = [told(lambda: h5py.File(f"{url}/private/ocean.h5")["whole"][0].sum())]
    hs.credentials(f"{url}/private/", username=sys.argv[2], password=sys.argv[3])
    said += [told(lambda: h5py.File(f"{url}/private/ocean.h5")["whole"][0].sum())]
    hs.credentials(f"{url}/private/")
    login = f"{sys.argv[2]}:{sys.argv[3]}".replace(" ", "%20")
    said += [told(lambda: h5py.File(f"{url}/private/ocean.h5".replace("//", f"//{login}@", 1))["whole"][0].sum())]
    answer([*said, str(h5py.File(f"{url}/ocean.h5")["whole"][0].sum())])
    """
    refused, *allowed, expected = answered(code, server.url, servers.USER, servers.PASSWORD)
    assert "HTTP 401" in refused
    assert servers.PASSWORD not in refused
    assert allowed == [expected, expected]


def test_many_opens_leave_nothing(server: servers.Nginx, folder: Path) -> None:
    code = """
    before = len(os.listdir("/proc/self/fd"))
    for turn in range(2):
        files = [h5py.File(f"{sys.argv[1]}/NETCDF4.nc") for _ in range(20)]
        more = [netCDF4.Dataset(f"{sys.argv[1]}/NETCDF3_CLASSIC.nc") for _ in range(20)]
        assert len({float(one["v"][1].sum()) for one in [*files, *more]}) == 1
        [one.close() for one in [*files, *more]]
        if turn == 0:  # connections stay open
            before = len(os.listdir("/proc/self/fd"))
    answer(len(os.listdir("/proc/self/fd")) - before)
    """
    assert answered(code, f"{server.url}/urls") <= 8
