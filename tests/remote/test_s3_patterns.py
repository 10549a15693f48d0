"""Patterns of URLs: the objects of a bucket whose keys match, as several files."""

from __future__ import annotations

import h5py
import numpy as np
import pytest

import hyperslab as hs
from hyperslab.errors import NoSuchRemoteFile

KEY, SECRET = "access", "very secret"
NAMES = ("y/part-1.h5", "y/part-2.h5", "y/part-10.h5", "y/deep/part-3.h5", "y/note.txt", "z/part-4.h5", "star*.h5")


@pytest.fixture(scope="module")
def options(s3: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    boto3 = pytest.importorskip("boto3", reason="not installed: pip install 'hyperslab[dev]'")
    pytest.importorskip("obstore", reason="not installed: pip install 'hyperslab[far]'")
    login = {"aws_access_key_id": KEY, "aws_secret_access_key": SECRET, "region_name": "us-east-1"}
    client = boto3.client("s3", endpoint_url=s3, **login)
    client.create_bucket(Bucket="patterns")
    for place, name in enumerate(NAMES):
        path = tmp_path_factory.mktemp("part") / "part.h5"
        with h5py.File(path, "w") as file:
            array = file.create_dataset("a", data=np.full(2, place))
            array.dims[0].label = "x"
        client.put_object(Bucket="patterns", Key=name, Body=path.read_bytes())
    return {"key": KEY, "secret": SECRET, "endpoint_url": s3}


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("y/part-*.h5", [0, 1, 2]),
        ("y/*/part-*.h5", [3]),
        ("y/**/*.h5", [3, 0, 1, 2]),
        ("*/part-?.h5", None),
        ("*/part-4.h5", [5]),
    ],
)
def test_objects_that_match(options, pattern, found):
    url = f"s3://patterns/{pattern}"
    if found is None:
        with pytest.raises(FileNotFoundError, match=r"no file matches.*part-\?"):
            hs.open(url, storage_options=options)
        return
    together = hs.open(url, storage_options=options, concat=0)
    assert together["a"][::2].tolist() == found
    index = hs.index(url, storage_options=options, threads=2)
    assert len(index.roots) == len(found)


def test_options_of_obstore_may_be_given(options):
    """obstore panics if one of its clients' options is among those of a store."""
    found = hs.index("s3://patterns/y/part-*.h5", storage_options={**options, "allow_http": True})
    assert len(found.roots) == 3


def test_a_key_with_a_star_is_opened_itself(options):
    assert hs.open("s3://patterns/star*.h5", storage_options=options)["a"][0] == 6
    with pytest.raises(FileNotFoundError, match="no file matches"):
        hs.open("s3://patterns/nothing*.h5", storage_options=options)
    with pytest.raises(NoSuchRemoteFile):
        hs.open("s3://patterns/y/part-3.h5", storage_options=options)
