"""DMR++ documents for HDF4 files, with arrays and chunks in several blocks of their file."""

from __future__ import annotations

import zlib
from itertools import pairwise
from pathlib import Path

import dmrpp_writer as writer
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import hyperslab as hs
from draws import few
from hyperslab.errors import DamagedFile, Unsupported

FEW = settings(max_examples=few(60), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
VALUES = np.arange(4 * 6 * 5, dtype=">i4").reshape(4, 6, 5)
DIMENSIONS = "".join(f'<Dim size="{length}"/>' for length in VALUES.shape)


def scattered(folder: Path, parts: list[bytes], name: str = "block") -> list[str]:
    """Write the parts to the data file, last one first, with a gap after each; return an XML element for each."""
    data, places = b"start!", []
    for part in reversed(parts):
        places.append((len(data), len(part)))
        data += part + b"gap"
    (folder / "made.h5").write_bytes(data)
    return [f'<dmrpp:{name} offset="{offset}" nBytes="{nbytes}"' for offset, nbytes in reversed(places)]


def opened(folder: Path, chunks: str, settings: str = "") -> hs.Array:
    body = f'<Int32 name="x">{DIMENSIONS}<dmrpp:chunks byteOrder="BE"{settings}>{chunks}</dmrpp:chunks></Int32>'
    (folder / "d.dmrpp").write_text(writer.of_values(body))
    array = hs.open(folder / "d.dmrpp")["x"]
    assert isinstance(array, hs.Array)
    return array


def cut(values: bytes, ends: list[int]) -> list[bytes]:
    bounds = [0, *sorted(set(ends) - {0, len(values)}), len(values)]
    return [values[start:stop] for start, stop in pairwise(bounds)]


@FEW
@given(st.lists(st.integers(1, VALUES.size - 1), max_size=8))
def test_blocks_one_behind_the_other_are_the_array(tmp_path: Path, ends: list[int]) -> None:
    parts = cut(VALUES.tobytes(), [4 * end for end in ends])
    array = opened(tmp_path, "".join(f"{place}/>" for place in scattered(tmp_path, parts)))
    np.testing.assert_array_equal(array[...], VALUES)
    np.testing.assert_array_equal(array[1:3, ::2, 4], VALUES[1:3, ::2, 4])


def test_bytes_that_the_array_does_not_need_are_left(tmp_path: Path) -> None:
    parts = [VALUES.tobytes()[:240], VALUES.tobytes()[240:] + bytes(100)]
    array = opened(tmp_path, "".join(f"{place}/>" for place in scattered(tmp_path, parts)))
    np.testing.assert_array_equal(array[...], VALUES)


def test_an_encoded_array_is_read_where_its_blocks_follow_one_another(tmp_path: Path) -> None:
    encoded = zlib.compress(VALUES.tobytes())
    (tmp_path / "made.h5").write_bytes(b"before" + encoded)
    half = len(encoded) // 2
    blocks = f'<dmrpp:block offset="6" nBytes="{half}"/>'
    blocks += f'<dmrpp:block offset="{6 + half}" nBytes="{len(encoded) - half}"/>'
    array = opened(tmp_path, blocks, ' compressionType="deflate"')
    np.testing.assert_array_equal(array[...], VALUES)


def test_chunks_in_blocks_that_follow_one_another_are_read(tmp_path: Path) -> None:
    data, placed = b"before", ""
    for start in (0, 2):
        encoded = zlib.compress(VALUES[start : start + 2].tobytes())
        for number, part in enumerate([encoded[:10], encoded[10:]]):
            place = f'offset="{len(data)}" nBytes="{len(part)}" chunkPositionInArray="[{start},0,0]"'
            placed += f'<dmrpp:chunk {place} LinkedBlockIndex="{number}"/>'
            data += part
        data += b"gap"
    (tmp_path / "made.h5").write_bytes(data)
    chunks = f"<dmrpp:chunkDimensionSizes>2 6 5</dmrpp:chunkDimensionSizes>{placed}"
    array = opened(tmp_path, chunks, ' compressionType="deflate" LBChunk="true"')
    np.testing.assert_array_equal(array[...], VALUES)


def test_what_is_not_read_is_named(tmp_path: Path) -> None:
    parts = cut(VALUES.tobytes(), [6])
    array = opened(tmp_path, "".join(f"{place}/>" for place in scattered(tmp_path, parts)))
    with pytest.raises(Unsupported, match="within an element"):
        array[...]
    parts = cut(zlib.compress(VALUES.tobytes()), [9])
    array = opened(
        tmp_path, "".join(f"{place}/>" for place in scattered(tmp_path, parts)), ' compressionType="deflate"'
    )
    with pytest.raises(Unsupported, match="encoded array in linked blocks"):
        array[...]
    position = ' chunkPositionInArray="[0,0,0]" LinkedBlockIndex="0"/>'
    places = scattered(tmp_path, cut(VALUES.tobytes(), [8]), "chunk")
    sizes = "<dmrpp:chunkDimensionSizes>4 6 5</dmrpp:chunkDimensionSizes>"
    array = opened(tmp_path, sizes + "".join(place + position for place in places))
    with pytest.raises(Unsupported, match="not contiguous"):
        array[...]


def test_too_few_bytes_or_a_block_without_a_place_is_damage(tmp_path: Path) -> None:
    parts = cut(VALUES.tobytes()[:-4], [80])
    array = opened(tmp_path, "".join(f"{place}/>" for place in scattered(tmp_path, parts)))
    with pytest.raises(DamagedFile, match="476 of 480 bytes"):
        array[...]
    array = opened(tmp_path, '<dmrpp:block offset="-1" nBytes="480"/>')
    with pytest.raises(DamagedFile, match="range of bytes"):
        array[...]
    array = opened(tmp_path, '<dmrpp:block offset="18446744073709551000" nBytes="480"/>')
    with pytest.raises(DamagedFile):
        array[...]
