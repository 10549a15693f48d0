"""CONTRIBUTING's recipe for a codec: one line in the table, and every command and format knows it."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
from hyperslab.storage import table

# The line of the recipe. The engine has no decoder of this name, so another one stands in for our encoder's step.
table.TABLE += (table.KnownCodec(
    "novel", hdf5=32999, parameters="7 level", numcodecs="novel strength=level", zarr3="novel level", step="zstd level",
    level=6, most=12, h5repack="UD=32999,0,2,7,{level}", netcdf="novel", like="zstd:3",
),)

from hyperslab.conversion.equivalents import equivalents
from hyperslab.conversion.wishes import wish
from hyperslab.errors import UsageError
from hyperslab.formats import format_class
from hyperslab.formats.netcdf4 import _COMPRESSIONS
from hyperslab.formats.zarr_metadata import v2_codec, v2_codec_json, v3_codec, v3_codec_json
from hyperslab.model.predict import parse_layout
from hyperslab.storage.chain import Codec, CodecChain, hdf5_steps, needs

chain = CodecChain.parse("shuffle+novel-9")
assert str(chain) == "shuffle+novel:9"
assert chain.hdf5(4, 400) == ([(2, 1, (4,)), (32999, 1, (7, 9))], [("shuffle", [4]), ("zstd", [9])])
assert Codec.of_hdf5(32999, (7, 9)) == Codec("novel", 9)
assert hdf5_steps([(32999, (7, 9))]) == [("zstd", [9])]
assert needs([32999]) == "hdf5plugin or `hyperslab run` (novel)"
assert CodecChain.nearest(["shuffle", "novel"], [(32999, (7, 9))]) == chain
for name in ("hdf5", "null", "zarr2", "zarr3", "zarr3-sharded", "zarrs", "tensorstore", "netcdf4"):
    assert "novel" in format_class(name).capabilities.codecs, name
assert _COMPRESSIONS["novel"] == ("novel", None)
novel = Codec("novel", 9)
assert v2_codec_json(novel, 4) == {"id": "novel", "strength": 9}
assert v3_codec_json(novel, 4) == {"name": "novel", "configuration": {"level": 9}}
assert v3_codec(v3_codec_json(novel, 4)) == novel
assert wish(codec="shuffle+novel:9").every.codec == chain
asked = wish(codec="shuffle+novel:9")
assert equivalents("a.h5", "b.h5", "hdf5", "hdf5", asked) == ["h5repack -f SHUF -f UD=32999,0,2,7,9 a.h5 b.h5"]
assert str(parse_layout("100x8:shuffle+novel:9=2.5")) == "100x8:shuffle+novel:9=2.5"
assert v2_codec(v2_codec_json(novel, 4)) == novel
try:
    CodecChain.parse("novl")
except UsageError as error:
    assert "did you mean 'novel'" in str(error)
else:
    raise AssertionError
"""


def test_one_line_in_the_table_makes_a_codec_known_everywhere() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
