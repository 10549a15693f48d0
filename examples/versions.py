"""An array and its history in one file, in five minutes: commit versions, read them, see what changed, check the file.

    python examples/versions.py            # works in a temporary folder
    python examples/versions.py survey.h5  # keeps the file

versioned-hdf5 can read this file too, and add versions to it.
"""

from __future__ import annotations

import datetime as dt
import sys
import tempfile
from pathlib import Path

import numpy as np

import hyperslab as hs


def commit(path: Path) -> None:
    """1. Commit: a `with` statement makes a version when it ends. If it fails, there is no version."""
    with hs.VersionedFile(path, "w") as file:
        with file.stage_version("march", timestamp=dt.datetime(2026, 3, 31, tzinfo=dt.UTC)) as version:
            depth = version.create_dataset("depth", data=np.linspace(0, 50, 100_000), chunks=(4096,))
            depth.attrs["units"] = "m"
        with file.stage_version("april", timestamp=dt.datetime(2026, 4, 30, tzinfo=dt.UTC)) as version:
            version["depth"][20_000:20_010] = -1  # starts as a copy of march; only what you touch is read
            print("about to commit:", *version.diff().arrays.values())
        with file.stage_version("may", timestamp=dt.datetime(2026, 5, 31, tzinfo=dt.UTC)) as version:
            version["depth"].resize((100_500,))
            version["depth"][100_000:] = 51
        try:
            with file.stage_version("june") as version:
                version["depth"][...] = 0
                raise RuntimeError("the survey was cancelled")
        except RuntimeError:
            print("june was cancelled; versions:", ", ".join(file.versions))


def read(path: Path) -> None:
    """2. Read: any version as a NumPy array, by name, by how many versions ago it was, or by time."""
    with hs.VersionedFile(path) as file:
        print("in march:", file["march"]["depth"][20_000:20_003].round(3))
        print("in april:", file["april"]["depth"][20_000:20_003])
        print("two versions ago:", file[-2]["depth"].shape, "now:", file[0]["depth"].shape)
        then = dt.datetime(2026, 5, 1, tzinfo=dt.UTC)
        print(f"on {then:%d %B}:", file[then]["depth"][20_001], file[then]["depth"].attrs["units"])
    print("like any archive:", hs.open(path, version="may")["depth"][-1])


def compare(path: Path) -> None:
    """3. Compare: chunks that two versions share are not read."""
    with hs.VersionedFile(path) as file:
        for before, after in [("march", "april"), ("april", "may")]:
            for name, found in file.diff(before, after).arrays.items():
                elements = found.elements()
                boxes = ", ".join(f"{start} to {stop}" for [[start, stop]] in elements.boxes.tolist()) or "none"
                print(
                    f"{before} → {after}: in {name}, {found.chunk_count} chunks and {elements.count} elements "
                    f"changed ({boxes}), {elements.added_count} elements were added"
                )


def weigh(path: Path, version_count: int = 3) -> None:
    """4. Size: about one copy, not three."""
    print(f"{version_count} versions in {path.stat().st_size / 1e6:.1f} MB; one alone is {100_000 * 8 / 1e6:.1f} MB")


def check(path: Path) -> None:
    """5. Verify and export: compare every chunk with its hash, and write one version to an ordinary file."""
    with hs.VersionedFile(path) as file:
        print("everything is as it was committed:", file.verify().is_whole)
        done = file.export("march", path.with_name("march.h5"))
        print(f"march alone, in a file for any HDF5 reader: {done.chunk_count} chunks in {Path(done.path).name}")


def main(path: Path) -> None:
    """Run all steps."""
    for step in (commit, read, compare, weigh, check):
        print(f"\n{(step.__doc__ or '').splitlines()[0]}")
        step(path)
    print(f"\nYou can do the same on the command line: hyperslab versions log {path}. See hyperslab versions --help.")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory() as folder:
            main(Path(folder) / "survey.h5")
