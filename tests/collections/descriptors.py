"""Opens many collections of many files with few descriptors, and reads them; `python descriptors.py FOLDER MOST`."""

from __future__ import annotations

import resource
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

import hyperslab
from hyperslab.errors import ReadError

COLLECTION_COUNT = 30


def held() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def main(folder: str, most: str) -> None:
    limit = int(most)
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
    paths = sorted(str(path) for path in Path(folder).iterdir())
    collections = [hyperslab.open(paths, concat=0) for _ in range(COLLECTION_COUNT)]
    for name in ("x", "packed"):
        for collection in collections:
            read = collection[name][...]
            assert read.tolist() == list(range(len(paths))), read
            assert held() < limit
    with ThreadPoolExecutor(8) as pool:
        sums = list(pool.map(lambda collection: int(np.sum(collection["x"][...])), collections * 2))
    assert set(sums) == {sum(range(len(paths)))}
    print(held())
    alone = [
        hyperslab.open(paths[0]) for _ in range(limit // 4)
    ]  # a file that is opened alone gets the descriptors of collections
    assert [int(one["x"][0]) for one in alone] == [0] * len(alone)
    print(held())
    try:
        alone += [hyperslab.open(paths[0]) for _ in range(limit)]
    except ReadError as error:
        print("refused" if "ulimit -n" in str(error) else error)


if __name__ == "__main__":
    main(*sys.argv[1:])
