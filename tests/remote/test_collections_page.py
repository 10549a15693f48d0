"""The blocks of docs/collections-on-s3.md run in order against a real S3-compatible server."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import hyperslab as hs

PAGE = Path(__file__).parents[2] / "docs" / "collections-on-s3.md"
KEY, SECRET = "access", "very secret"
MONTHS = [31, 29, 31, 30, 31, 30]


def months(folder: Path) -> list[np.ndarray]:
    """A file of daily values for each month, as a model writes them, and what is in them."""
    netcdf = pytest.importorskip("netCDF4", reason="not installed: pip install 'hyperslab[formats]'")
    random, written = np.random.default_rng(1), []
    for number, days in enumerate(MONTHS):
        with netcdf.Dataset(folder / f"2020-{number + 1:02}.nc", "w") as made:
            for name, length in (("time", None), ("lat", 12), ("lon", 16)):
                made.createDimension(name, length)
            time = made.createVariable("time", "f8", ("time",))
            time.units, time.calendar = f"days since 2020-{number + 1:02}-01", "standard"
            time[:] = np.arange(days)
            chunks = (days, 12, 16) if number % 2 else (1, 12, 16)
            field = made.createVariable("sst", "f4", ("time", "lat", "lon"), zlib=True, chunksizes=chunks)
            field[:] = random.normal(size=(days, 12, 16)).astype("f4")
            written.append(np.asarray(field[:]))
    return written


@pytest.fixture
def written(s3: str, tmp_path: Path) -> np.ndarray:
    pytest.importorskip("hyperslab.archive.collections.collection", reason="collections are not part of this version")
    boto3 = pytest.importorskip("boto3", reason="not installed: pip install 'hyperslab[dev]'")
    arrays = months(tmp_path)
    said = {"aws_access_key_id": KEY, "aws_secret_access_key": SECRET}
    client = boto3.client("s3", endpoint_url=s3, region_name="us-east-1", **said)
    client.create_bucket(Bucket="ocean-months")
    for path in sorted(tmp_path.glob("*.nc")):
        client.upload_file(str(path), "ocean-months", f"daily/{path.name}")
        path.unlink()
    return np.concatenate(arrays)


def test_every_block_of_the_page_runs(s3: str, written: np.ndarray, tmp_path: Path, monkeypatch) -> None:
    pytest.importorskip("xarray", reason="not installed: pip install 'hyperslab[xarray]'")
    pytest.importorskip("dask.distributed", reason="not installed: pip install 'hyperslab[dask]'")
    monkeypatch.chdir(tmp_path)
    # As the page tells for workers; until references use hs.credentials, also for this process.
    environment = {"ACCESS_KEY_ID": KEY, "SECRET_ACCESS_KEY": SECRET, "ENDPOINT": s3, "ALLOW_HTTP": "true"}
    for name, value in environment.items():
        monkeypatch.setenv(f"AWS_{name}", value)
    text = PAGE.read_text().replace("s3://ocean/", "s3://ocean-months/")
    blocks = re.findall(r"```py\n(.*?)```", text, flags=re.DOTALL)
    assert len(blocks) >= 7
    names: dict[str, object] = {"ENDPOINT": s3}
    try:
        for block in blocks:
            exec(compile(block, PAGE.name, "exec"), names)
        np.testing.assert_array_equal(hs.open("ocean.hs")["sst"][...], written)
        assert SECRET.encode() not in Path("ocean.hs").read_bytes()
    finally:
        hs.credentials("s3://ocean-months/")
