"""Every format keeps the promises of its capabilities for whole arrays, and refuses everything else.

The suite does not know any format by name: the tests follow from `capabilities` and `refusal` alone. Parts of arrays,
growth and compound types are in test_conformance_parts.py.
"""

from __future__ import annotations

import sys
from contextlib import closing
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest
from storing import (
    CHUNK,
    NO_NEED,
    SHAPE,
    SHARD,
    description,
    holds,
    layouts,
    path_of,
    plain_spec,
    round_trip,
    same,
    sample,
    store,
    stored_bytes,
    values,
)

from hyperslab.errors import HyperslabError, UsageError
from hyperslab.formats.contract import NUMERIC_DTYPES, ArraySpec, Format, Need
from hyperslab.storage.chain import Codec, CodecChain
from hyperslab.storage.layout import StoredLayout

SHAPES = [(7,), (1,), (3, 7), (5, 1), (1, 5), (2, 3, 5), (2, 1, 3, 4), (2, 2, 2, 2, 2)]
LEVELLED = frozenset(["deflate", "zstd", "blosc-lz4", "blosc-zstd", "bzip2"])
COMPRESSIBLE_SHAPE = (512, 160)


def test_it_explains_itself(contender: Format) -> None:
    library = contender.library()
    assert library.name
    assert library.version
    assert contender.extension.startswith(".")
    assert contender.default_layout
    assert contender.capabilities.dtypes <= NUMERIC_DTYPES
    manual_page = sys.modules[type(contender).__module__].__doc__ or ""
    assert len(manual_page) > 200


@pytest.mark.parametrize("dtype", sorted(NUMERIC_DTYPES))
def test_every_dtype(contender: Format, dtype: str, tmp_path: Path) -> None:
    spec = ArraySpec(SHAPE[: contender.capabilities.max_ndim], np.dtype(dtype))
    reason = contender.refusal(spec, NO_NEED)
    if dtype not in contender.capabilities.dtypes:
        assert dtype in str(reason)
        return
    if reason and contender.capabilities.compound:
        assert "compound" in reason
        spec = ArraySpec(SHAPE[:1], np.dtype([("x", dtype), ("y", "f8")]))
        reason = contender.refusal(spec, NO_NEED)
    assert reason is None
    round_trip(contender, path_of(contender, tmp_path), spec, _typed_sample(spec))


def _typed_sample(spec: ArraySpec) -> np.ndarray:
    if spec.dtype.names is None:
        return sample(spec)
    data = np.zeros(spec.shape, spec.dtype)
    data["x"] = values(spec.shape, spec.dtype["x"])
    return data


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_every_ndim(contender: Format, shape: tuple[int, ...], tmp_path: Path) -> None:
    most = contender.capabilities.max_ndim
    if most is not None and len(shape) > most:
        assert "dimensions" in str(contender.refusal(ArraySpec(shape, np.dtype("f4")), NO_NEED))
        return
    spec = plain_spec(contender, shape)
    assert spec.shape == shape
    round_trip(contender, path_of(contender, tmp_path), spec)


def test_every_layout(contender: Format, tmp_path: Path) -> None:
    can, found = contender.capabilities, layouts(contender)
    assert any(layout.contiguous for layout in found) == can.contiguous
    assert any(not layout.contiguous for layout in found) == can.chunks
    assert any(layout.shard_shape is not None for layout in found) == can.shards
    for index, layout in enumerate(found):
        spec, path = plain_spec(contender, layout=layout), path_of(contender, tmp_path, index)
        round_trip(contender, path, spec)
        if can.self_describing:
            assert description(contender, path) == spec


@pytest.mark.slow
def test_every_codec(contender: Format, tmp_path: Path) -> None:
    asked = [(name, level) for name in sorted(contender.capabilities.codecs) for level in _levels(name)]
    for index, (name, level) in enumerate(asked):
        layout = _layout_with(contender, Codec(name, level))
        path = path_of(contender, tmp_path, index)
        _compresses(contender, path, plain_spec(contender, COMPRESSIBLE_SHAPE, layout=layout))
        if contender.capabilities.self_describing:
            _is_stored_with(description(contender, path).layout, layout)


def _levels(codec_name: str) -> list[int | None]:
    return [None, 1, 7] if codec_name in LEVELLED else [None]


def _layout_with(contender: Format, codec: Codec) -> StoredLayout:
    """The last accepted layout whose chain has the codec: alone, or with another one that it needs."""
    others = [Codec(name) for name in sorted(contender.capabilities.codecs - {codec.name})]
    for chain in [[codec], *([codec, other] for other in others), *([other, codec] for other in others)]:
        if found := layouts(contender, chain, scale=16):
            return found[-1]
    chunk_shape = CHUNK[: len(plain_spec(contender).shape)]
    spec = replace(plain_spec(contender), layout=StoredLayout(chunk_shape, codecs=CodecChain([codec])))
    reason = contender.refusal(spec, NO_NEED)
    if "pip install" in str(reason):
        pytest.skip(f"not installed: {reason}")
    raise AssertionError(f"{contender.name} claims {codec} but takes no layout with it: {reason}")


def _compresses(contender: Format, path: Path, spec: ArraySpec) -> None:
    """Repetitive data are read back unchanged and take less space, unless the chain only rearranges them."""
    data = np.zeros(spec.shape, spec.dtype)
    data[::2] = np.ones((), spec.dtype)
    round_trip(contender, path, spec, data)
    layout = spec.layout or StoredLayout()
    plain = replace(spec, layout=replace(layout, codecs=CodecChain()))
    rearranged = all(codec.name in ("shuffle", "bitshuffle") for codec in layout.codecs)
    if contender.capabilities.exact and not rearranged and contender.refusal(plain, NO_NEED) is None:
        uncompressed = path.with_name(f"plain-{path.name}")
        store(contender, uncompressed, plain, data)
        assert len(stored_bytes(path)) < len(stored_bytes(uncompressed)) / 2


def _is_stored_with(stored: StoredLayout | None, asked: StoredLayout) -> None:
    assert stored is not None
    assert (stored.chunk_shape, stored.shard_shape) == (asked.chunk_shape, asked.shard_shape)
    assert [codec.name for codec in stored.codecs] == [codec.name for codec in asked.codecs]
    for got, wanted in zip(stored.codecs, asked.codecs, strict=True):
        assert wanted.level is None or got.level == wanted.level, f"{wanted} asked, {got} stored"


def test_many_arrays(contender: Format, tmp_path: Path) -> None:
    path = path_of(contender, tmp_path)
    specs = {f"array_{index:03d}": plain_spec(contender, (3 + index, 4)) for index in range(9)}
    with closing(contender.create(path)) as file:
        handles = {name: file.create_array(name, spec) for name, spec in specs.items()}
        for name, handle in reversed(handles.items()):
            handle.write(sample(specs[name]))
    with closing(contender.open(path)) as file:
        for name, spec in specs.items():
            same(contender, file.open_array(name, spec).read(), sample(spec))
        if contender.capabilities.self_describing:
            assert sorted(file.array_names()) == sorted(specs)
    if not contender.capabilities.many_arrays:
        assert len(list(path.iterdir())) >= len(specs)


def test_self_description(contender: Format, tmp_path: Path) -> None:
    path, spec = path_of(contender, tmp_path), plain_spec(contender)
    store(contender, path, spec, sample(spec))
    with closing(contender.open(path)) as file:
        if not contender.capabilities.self_describing:
            with pytest.raises(UsageError):
                file.open_array("a")
            return
        assert file.array_names() == ["a"]
        described = file.describe("a")
        assert (described.shape, described.growable) == (spec.shape, False)
        assert described.dtype.newbyteorder("=") == spec.dtype
        assert isinstance(described.layout, StoredLayout)
        same(contender, file.open_array("a").read(), sample(spec))


def test_byte_order(contender: Format, tmp_path: Path) -> None:
    """The test searches the file for the bytes. The values that are read are right in any case."""
    can = contender.capabilities
    spec = plain_spec(contender, layout=(layouts(contender) or [None])[0])
    if not can.exact or spec.dtype.fields:
        pytest.skip("nothing to look for: stores no plain numbers")
    data = np.arange(12345, 12345 + 11111 * np.prod(spec.shape), 11111, spec.dtype).reshape(spec.shape)
    for order in "<>":
        asked, path = replace(spec, dtype=spec.dtype.newbyteorder(order)), path_of(contender, tmp_path, ord(order))
        if can.byte_order == "native" and not asked.dtype.isnative:
            assert "byte order" in str(contender.refusal(asked, NO_NEED))
            continue
        round_trip(contender, path, asked, data)
        stored = {"native": "=", "big": ">", "either": order}.get(can.byte_order)
        third = data.flat[2:3].astype(data.dtype.newbyteorder(stored)).tobytes() if stored else b"34567"
        assert third in stored_bytes(path)


def test_opening_what_is_not_there(contender: Format, tmp_path: Path) -> None:
    with pytest.raises(HyperslabError):
        contender.open(path_of(contender, tmp_path, "absent"))
    if not contender.capabilities.exact:
        return
    spec, path = plain_spec(contender), path_of(contender, tmp_path)
    store(contender, path, spec, sample(spec))
    with closing(contender.open(path)) as file, pytest.raises(UsageError, match="absent"):
        file.open_array("absent", spec)


def test_creating_over_an_existing_file(contender: Format, tmp_path: Path) -> None:
    path, spec = path_of(contender, tmp_path), plain_spec(contender)
    store(contender, path, spec, sample(spec))
    with pytest.raises(Exception):  # noqa: B017, PT011 - each library raises its own error
        contender.create(path)
    holds(contender, path, spec, sample(spec))


def test_threads_option(contender: Format, tmp_path: Path) -> None:
    if not contender.capabilities.threads:
        with pytest.raises(TypeError):
            type(contender)(threads=2)
        return
    round_trip(type(contender)(threads=2), path_of(contender, tmp_path), plain_spec(contender))


def test_everything_not_claimed_is_refused(contender: Format) -> None:
    can, spec = contender.capabilities, plain_spec(contender)
    for need in fields(Need):
        reason = contender.refusal(spec, Need(**{need.name: True}))
        assert bool(reason) == (not getattr(can, need.name)), f"{need.name}: {reason}"
    ndim = len(spec.shape)
    refused = [
        StoredLayout(CHUNK[:ndim], codecs=CodecChain([Codec("no-such-codec")])),
        StoredLayout((4,) * (ndim + 1)),
        StoredLayout((0,) * ndim),
        *([] if can.contiguous else [StoredLayout()]),
        *([] if can.chunks else [StoredLayout(CHUNK[:ndim])]),
        *([] if can.shards else [StoredLayout(CHUNK[:ndim], SHARD[:ndim])]),
    ]
    for layout in refused:
        assert contender.refusal(replace(spec, layout=layout), NO_NEED), layout
