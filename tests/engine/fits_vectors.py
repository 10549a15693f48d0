"""Golden vectors of FITS's codecs: chunks that cfitsio encoded, called through astropy."""

from __future__ import annotations

import itertools
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

Maker = Callable[[int, str], "np.ndarray[Any, Any]"]
Vector = tuple[str, str, bytes, bytes]


def vectors(smooth: Maker, noise: Maker) -> Iterator[Vector]:
    """Name, chain, encoded and decoded bytes of each; `smooth` and `noise` make elements."""
    from astropy.io.fits.hdu.compressed import _codecs
    from astropy.io.fits.hdu.compressed._quantization import Quantize

    for dtype, block in itertools.product(["u1", "i2", "i4"], [32, 16, 7]):
        width = np.dtype(dtype).itemsize
        for what, values in [
            ("smooth", smooth(300, dtype)),
            ("noise", noise(100, dtype)),
            ("same", np.full(99, 5, dtype)),
        ]:
            one = _codecs.Rice1(blocksize=block, bytepix=width, tilesize=values.size)
            yield (f"rice_{dtype}_{block}_{what}", f"rice:{width},{block}", bytes(one.encode(values)), big(values))
    masks = {
        "steps": np.repeat([0, 3, 0, 900, 5000], 40),
        "points": (np.arange(200) % 7 == 0) * 9,
        "none": np.zeros(50),
    }
    for name, mask in masks.items():
        values = mask.astype("i4")
        words = np.frombuffer(bytes(_codecs.PLIO1(tilesize=values.size).encode(values)), "<i2")  # swapped on writing
        yield (f"plio_{name}", "plio", big(words), big(values))
    for dtype, (number, method) in itertools.product(["f4", "f8"], enumerate([-1, 1, 2])):
        values = smooth(25_000, dtype)
        values[::5] = 0
        one = Quantize(row=7777, dither_method=method, quantize_level=16, bitpix=-8 * values.itemsize)
        integers, scale, zero = one.encode_quantized(values)
        decoded = one.decode_quantized(integers, scale, zero)
        chain = f"quantize:{scale!r},{zero!r},none,7776,{number},>{dtype};zlib"
        packed = zlib.compress(big(np.asarray(integers, "i4")))
        yield (f"quantize_{dtype}_{method}", chain, packed, big(np.asarray(decoded, dtype)))


def big(values: np.ndarray) -> bytes:
    """Big-endian."""
    return values.astype(values.dtype.newbyteorder(">")).tobytes()
