"""Circular external links between remote files."""

from __future__ import annotations

from pathlib import Path

import h5py
import servers

import hyperslab as hs


def test_far_files_that_lead_to_each_other_are_met_once(proxy: servers.Proxy, root: Path) -> None:
    for name, other in (("one.h5", "two.h5"), ("two.h5", "./one.h5")):
        with h5py.File(root / name, "w") as made:
            made["x"] = [1, 2]
            made["me"] = h5py.ExternalLink(name, "/")
            made["other"] = h5py.ExternalLink(other, "/")
    with hs.open(f"{proxy.url}/one.h5") as far:
        assert sorted(Path(array.filename).name for array in far.walk()) == ["one.h5", "two.h5"]
        met: list[str] = []
        far.visititems(lambda name, _: met.append(name))
        assert met == ["x"]
