"""Files that others made: h5py and `hyperslab.h5` say the same of everything in them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5_comparing
import pytest

import hyperslab.h5 as ours

theirs = pytest.importorskip("h5py")
CORPUS = Path(__file__).parents[3] / "shared" / "corpus"
# Of sequences of big-endian numbers, h5py gives the bytes as numbers of this machine: wrong values.
SWAPPED = "/.attrs['vlen_uint64']"
MOST_NBYTES = 1 << 22
FACTS = (
    "shape",
    "dtype",
    "maxshape",
    "chunks",
    "compression",
    "compression_opts",
    "shuffle",
    "fletcher32",
    "filter_ids",
)


def files() -> list[Path]:
    found = sorted(path for path in CORPUS.rglob("*") if path.is_file() and path.suffix not in (".md", ".py"))
    return [path for path in found if theirs.is_hdf5(path)]


def outcome(ask: Any) -> Any:
    try:
        return ask()
    except Exception as error:
        return error


def compared(both: Any, where: str) -> str | None:
    their, our = both
    if isinstance(their, OSError) and not isinstance(our, Exception):  # h5py cannot read what we can
        return None
    return h5_comparing.differences(their, our, where)


def one_object(their: Any, our: Any, where: str) -> list[str]:
    found = [h5_comparing.differences(list(their.attrs), list(our.attrs), f"{where} attributes")]
    for name in their.attrs:
        both = (outcome(lambda n=name, o=one: o.attrs[n]) for one in (their, our))
        found.append(compared(both, f"{where}.attrs[{name!r}]"))
    if isinstance(their, theirs.Dataset):
        for name in FACTS:
            both = (outcome(lambda n=name, o=one: getattr(o, n)) for one in (their, our))
            found.append(compared(both, f"{where}.{name}"))
        if outcome(lambda: their.nbytes <= MOST_NBYTES) is True and their.id.get_create_plist().get_fill_time() != 1:
            both = (outcome(lambda o=one: o[()]) for one in (their, our))
            found.append(compared(both, where))
    elif isinstance(their, theirs.Group):
        found.append(h5_comparing.differences(list(their), list(our), f"{where} names"))
    return [one for one in found if one is not None and not one.startswith(SWAPPED)]


@pytest.mark.slow
@pytest.mark.skipif(not CORPUS.exists(), reason="the corpus of foreign files is not here")
def test_foreign_files_look_the_same() -> None:
    different = []
    count = 0
    for path in files():
        their = outcome(lambda p=path: theirs.File(p, "r"))
        our = outcome(lambda p=path: ours.File(p, "r"))
        if isinstance(their, Exception) or isinstance(our, Exception):
            if not isinstance(their, Exception):
                different.append(f"{path.name}: {our}")
            continue
        with their, our:
            names: list[str] = ["/"]
            their.visit(names.append)
            for name in names:
                count += 1
                found = outcome(lambda n=name, o=our: o[n])
                if isinstance(found, Exception):
                    different.append(f"{path.name} {name}: {found!r}")
                    continue
                different += [f"{path.name} {one}" for one in one_object(their[name], found, name)]
    print(count, "objects")
    assert count > 1000
    assert not different, "\n".join(one[:300] for one in different)
