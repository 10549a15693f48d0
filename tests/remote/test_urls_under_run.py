"""`hyperslab run` opens URLs for any program: what it prints is what it prints of the file itself."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import h5py
import numpy as np
import pytest
import servers

sys.path.append(str(Path(__file__).parents[1] / "run"))
from run_programs import python, run

TOOLS = [
    ("h5dump", "-d", "/group/deep", "{}/ocean.h5"),
    ("h5ls", "-r", "{}/ocean.h5"),
    ("ncdump", "-v", "v", "{}/three.nc"),
    ("ncdump", "{}/four.nc"),
    ("ncks", "-s", "%g ", "-C", "-H", "-v", "v", "{}/four.nc"),
    ("cdo", "-s", "infon", "{}/three.nc"),
]


@pytest.fixture(scope="module")
def files(root: Path) -> Path:
    nc = pytest.importorskip("netCDF4")
    for name, kind in (("three", "NETCDF3_CLASSIC"), ("four", "NETCDF4")):
        with nc.Dataset(root / f"{name}.nc", "w", format=kind) as made:
            for axis, length in (("time", None), ("x", 30)):
                made.createDimension(axis, length)
            made.createVariable("v", "f4", ("time", "x"), zlib=name == "four")[:] = np.arange(120).reshape(4, 30)
    return root


@pytest.mark.parametrize("words", TOOLS, ids=lambda words: words[0])
def test_tools_print_the_same(server: servers.Nginx, files: Path, words: tuple[str, ...]) -> None:
    if shutil.which(words[0]) is None:
        pytest.skip(f"{words[0]} is not installed: tests/install-system-packages.sh")
    near = subprocess.run([word.format(files) for word in words], capture_output=True, check=True)
    far = run(*(word.format(server.url) for word in words))
    assert far.status == 0, far.errors
    assert far.out.decode().replace(server.url, str(files)) == near.stdout.decode()
    assert far.counts["urls"]["files"] >= 1


def test_the_counts_are_those_of_the_server(server: servers.Nginx, files: Path) -> None:
    code = """
    import sys
    import xarray
    with xarray.open_dataset(f"{sys.argv[1]}/four.nc") as data:
        print(float(data["v"].sum()))
    """
    before = len(server.requests())
    ran = python(code, server.url)
    asked = server.requests()[before:]
    assert (ran.status, float(ran.out)) == (0, 7140.0), ran.errors
    urls = ran.counts["urls"]
    assert (urls["requests"], urls["nbytes"]) == (len(asked), sum(sent for status, sent in asked if status == 206))
    assert urls["reads_kept"] == urls["reads"] > 0


def test_it_can_be_turned_off(server: servers.Nginx, files: Path) -> None:
    code = """
    import sys
    import h5py
    try:
        h5py.File(sys.argv[1])
    except FileNotFoundError as error:
        print(error)
    """
    before = len(server.requests())
    line = [sys.executable, "-m", "hyperslab", "run", "--no-urls", "--", sys.executable, "-c"]
    done = subprocess.run(
        [*line, re.sub("^    ", "", code, flags=re.M), f"{server.url}/ocean.h5"], capture_output=True, check=True
    )
    assert b"No such file or directory" in done.stdout
    assert b"URL" not in done.stderr
    assert len(server.requests()) == before


def test_a_trace_opens_them_and_names_them(server: servers.Nginx, files: Path, tmp_path: Path) -> None:
    """The reads are the library's own, as in any trace, and so are their counts."""
    code = "import sys, h5py; x = h5py.File(sys.argv[1])['v']; print(x[1:3, 5].sum() + x[0].sum())"
    url, near, seen = f"{server.url}/four.nc", str(files / "four.nc"), {}
    keys = ("file", "array", "shape", "reads", "decoded_chunks")
    command, made = [sys.executable, "-m", "hyperslab", "trace"], tmp_path / "a.trace"
    for where in (url, near):
        ran = subprocess.run(
            [*command, "-o", made, "--", sys.executable, "-c", code, where], capture_output=True, text=True
        )
        assert (ran.returncode, float(ran.stdout)) == (0, 535.0), ran.stderr
        told = json.loads(subprocess.run([*command, "show", made, "--json"], capture_output=True, check=True).stdout)
        seen[where] = [[one[key] for key in keys] for one in told["arrays"]]
    assert seen[url] == [[url, *seen[near][0][1:]]]


def test_credentials_of_object_stores(s3: str, root: Path, tmp_path: Path) -> None:
    """Those of the environment, and those of a profile, which only Python looks up."""
    boto3 = pytest.importorskip("boto3", reason="not installed: pip install 'hyperslab[dev]'")
    login = {"aws_access_key_id": "access", "aws_secret_access_key": "very secret", "region_name": "us-east-1"}
    client = boto3.client("s3", endpoint_url=s3, **login)
    client.create_bucket(Bucket="urls")
    client.put_object(Bucket="urls", Key="a/ocean.h5", Body=(root / "ocean.h5").read_bytes())
    profile = tmp_path / "credentials"
    keys = (
        "aws_access_key_id = access",
        "aws_secret_access_key = very secret",
        "region = us-east-1",
        f"endpoint_url = {s3}",
    )
    profile.write_text("\n".join(["[default]", *keys]))
    code = """
    import sys
    import h5py
    with h5py.File("s3://urls/a/ocean.h5") as far:
        print(float(far["deflated"][:].sum(dtype="f8")), far.filename)
    """
    with h5py.File(root / "ocean.h5") as near:
        expected = f"{float(near['deflated'][:].sum(dtype='f8'))} s3://urls/a/ocean.h5\n"
    known = {"AWS_ACCESS_KEY_ID": "access", "AWS_SECRET_ACCESS_KEY": "very secret", "AWS_REGION": "us-east-1"}
    for environment in ({**known, "AWS_ENDPOINT_URL": s3, "AWS_ALLOW_HTTP": "true"},
                        {"AWS_SHARED_CREDENTIALS_FILE": str(profile), "HOME": str(tmp_path)}):  # fmt: skip
        ran = python(code, **environment)
        assert (ran.status, ran.out.decode()) == (0, expected), ran.errors


def test_ctrl_c_ends_a_wait(proxy: servers.Proxy) -> None:
    proxy.behaviour.always = "stall"
    code = f"import h5py; h5py.File({proxy.url + '/ocean.h5'!r})"
    line = [sys.executable, "-m", "hyperslab", "run", "--quiet", "--", sys.executable, "-c", code]
    program = subprocess.Popen(line, stderr=subprocess.PIPE, start_new_session=True)
    until = time.monotonic() + 60
    while not proxy.seen and time.monotonic() < until:
        time.sleep(0.02)
    os.killpg(program.pid, signal.SIGINT)
    _, said = program.communicate(timeout=60)  # the server would stall for 250 s
    assert b"KeyboardInterrupt" in said or b"was cancelled" in said, said
    assert program.returncode != 0


def test_memory_for_what_was_fetched_is_bounded(server: servers.Nginx, files: Path) -> None:
    nc = pytest.importorskip("netCDF4")
    with nc.Dataset(files / "long.nc", "w", format="NETCDF3_64BIT_OFFSET") as made:
        made.createDimension("x", 12 << 20)
        made.createVariable("v", "f4", ("x",))[:] = 1
    code = """
    import re, sys
    import netCDF4
    def peak():
        return int(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1]) << 10
    with netCDF4.Dataset(f"{sys.argv[1]}/ocean.h5") as one, netCDF4.Dataset(f"{sys.argv[1]}/long.nc") as file:
        one["whole"][:1]
        before = peak()
        total = sum(int(file["v"][start : start + (1 << 16)].sum()) for start in range(0, 12 << 20, 1 << 16))
        print(total, peak() - before)
    """
    ran = python(code, server.url, HYPERSLAB_MEMORY="32M")
    total, grown = map(int, ran.out.split())
    assert total == 12 << 20
    assert grown < 32 << 20
    assert ran.counts["urls"]["requests"] < 100  # and not one for each of the 192 reads
