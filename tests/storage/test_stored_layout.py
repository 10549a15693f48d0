"""A layout is said once; what was saved in its old form is read."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hyperslab.model import Layout
from hyperslab.storage.chain import PLAIN, CodecChain
from hyperslab.storage.layout import StoredLayout

# As journals of the cost model have it.
SAVED = {
    "chunk_shape": (100, 8), "shard_shape": None, "ratio": 2.5, "codec": "zstd:3", "contiguous": False,
    "manifest": None, "compact": False, "max_shape": None, "index": None, "wide_lengths": False,
}  # fmt: skip


def test_a_saved_layout_is_read_and_saved_in_the_same_form() -> None:
    layout = StoredLayout(**SAVED)  # type: ignore[arg-type]
    assert layout.codecs == CodecChain.parse("zstd:3")
    assert layout.to_dict() == SAVED
    assert str(layout) == "100x8:zstd:3=2.5"
    assert layout.words == "chunks 100×8, zstd:3"


def test_the_name_and_the_arguments_of_the_public_layout_stay() -> None:
    assert Layout is StoredLayout
    assert Layout((9, 9), None, 2.5, "zstd") == Layout((9, 9), ratio=2.5, codecs=CodecChain.parse("zstd"))
    assert replace(Layout((9, 9), ratio=2.0, codec="lzf"), ratio=None, codecs=PLAIN) == Layout((9, 9))


@pytest.mark.parametrize(
    "layout", [StoredLayout(), StoredLayout(None, codecs=PLAIN), StoredLayout((), contiguous=True)]
)
def test_without_chunks_an_array_is_in_one_piece(layout: StoredLayout) -> None:
    assert layout.contiguous
    assert (str(layout), layout.words) == ("contiguous", "contiguous, uncompressed")
    assert layout == StoredLayout()
    assert hash(layout) == hash(StoredLayout())
