"""Files by h5py that the expressions are run on."""

from __future__ import annotations

from pathlib import Path

import h5py
import numpy as np


def basics(path: Path) -> None:
    """Groups, links of every kind, chunks, filters, attributes."""
    with h5py.File(path.with_name("other.h5"), "w") as other:
        other["there"] = np.arange(4)
        other.create_group("group/inner")
    with h5py.File(path, "w") as f:
        f.attrs["title"] = "a file"
        f.attrs["numbers"] = np.arange(3, dtype=">i2")
        x = f.create_dataset("x", data=np.arange(60).reshape(3, 4, 5))
        x.attrs.update(
            {"units": "m", "scale": 2.5, "flag": True, "n": 7, "texts": ["a", "bé"], "raw": np.bytes_(b"ab")}
        )
        x.attrs["nothing"] = h5py.Empty("f4")
        x.attrs["object"] = x.ref
        f.create_dataset("line", data=np.arange(10))
        f.create_dataset("scalar", data=3.5)
        f.create_dataset("empty", data=h5py.Empty("f4"))
        f.create_dataset("none", shape=(0, 3), dtype="i4", maxshape=(None, 3))
        f.create_dataset("unwritten", shape=(4, 4), dtype="f4", chunks=(2, 2), fillvalue=-9)
        options = {"compression": "gzip", "compression_opts": 7, "shuffle": True, "fletcher32": True}
        f.create_dataset("packed", data=np.arange(1000.0).reshape(20, 50), chunks=(7, 13), **options)
        f.create_dataset("lzf", data=np.arange(100), compression="lzf", maxshape=(None,))
        f.create_dataset("offset", data=np.arange(100), scaleoffset=0)
        f.create_dataset("places", data=np.arange(100.0), scaleoffset=3)
        g = f.create_group("g")
        g.create_dataset("y", data=np.arange(6, dtype="<f4").reshape(2, 3))
        g.create_group("deep/deeper")["z"] = 1
        g.attrs["note"] = "here"
        ordered = f.create_group("ordered", track_order=True)
        for name in ("zz", "aa", "mm"):
            ordered[name] = 0
            ordered.attrs[name] = name
        f["soft"] = h5py.SoftLink("/g/y")
        f["softgroup"] = h5py.SoftLink("g")
        f["dangling"] = h5py.SoftLink("/nowhere")
        f["hard"] = g
        f["external"] = h5py.ExternalLink("other.h5", "/there")
        f["lost"] = h5py.ExternalLink("missing.h5", "/there")
        f["é"] = 1


def kinds(path: Path) -> None:
    """A dataset of each dtype, and attributes of them."""
    with h5py.File(path, "w") as f:
        f["vlen_str"] = ["a", "bé", ""]
        f.create_dataset("vlen_ascii", data=[b"a", b"bc"], dtype=h5py.string_dtype("ascii"))
        f["fixed"] = np.array([b"ab", b"c", b""])
        f["fixed_utf8"] = np.array(["é".encode(), b"b"], h5py.string_dtype("utf-8", 4))
        f["one_text"] = "hello"
        f["flags"] = np.array([True, False, True])
        f.create_dataset("enum", data=[0, 2, 1], dtype=h5py.enum_dtype({"A": 0, "B": 1, "C": 2}, "i1"))
        f["complex"] = np.array([1 + 2j, 3j])
        f["complex64"] = np.array([1 + 2j, 3j], "c8")
        f["half"] = np.arange(3, dtype="f2")
        f["big"] = np.arange(3, dtype=">i4")
        f["bytes"] = np.array([b"abc", b"xyz"], "V3")
        f["dates"] = np.array(["2020-01-01", "NaT"], "M8[D]").astype(h5py.opaque_dtype("M8[D]"))
        record = np.dtype([("a", "i4"), ("b", "f8"), ("s", "S3"), ("v", "i2", (2,))])
        f["record"] = np.array([(1, 2.5, b"x", (1, 2)), (3, 4.5, b"yz", (3, 4)), (5, 6.5, b"", (5, 6))], record)
        f["nested"] = np.zeros(2, [("p", [("x", "f4"), ("y", "f4")]), ("n", "u1")])
        mixed = np.dtype([("k", "i4"), ("t", h5py.string_dtype()), ("r", h5py.ref_dtype)])
        f.create_dataset("mixed", (2,), mixed)
        f["mixed"][0] = (1, "text", f["record"].ref)
        f.create_dataset("subarray", (3,), np.dtype(("f4", (2, 2))))
        f["subarray"][1] = [[1, 2], [3, 4]]
        sequences = f.create_dataset("sequences", (3,), h5py.vlen_dtype("i4"))
        sequences[0], sequences[2] = [1, 2, 3], [4]
        f.create_dataset("references", data=[f["record"].ref, f.ref], dtype=h5py.ref_dtype)
        f.create_dataset("regions", (2,), h5py.regionref_dtype)
        f["regions"][0] = f["vlen_str"].regionref[0:2]
        f["named"] = np.dtype("i4")
        f["typed"] = np.arange(3)
        f.create_dataset("of_named", (2,), dtype=f["named"])
        f.create_dataset("text_fill", (2,), h5py.string_dtype(), fillvalue="none")
        for name in ("vlen_str", "fixed", "flags", "complex", "record", "big", "half", "sequences"):
            f.attrs[name] = f[name][...]
        f.attrs.create("enum", 1, dtype=h5py.enum_dtype({"A": 0, "B": 1}, "i1"))
        f.attrs["reference"] = f["record"].ref
        f.attrs["region"] = f["vlen_str"].regionref[0:2]
        f.attrs["empty_text"] = ""
        f.attrs["bool"] = np.bool_(True)
        f.attrs["nothing"] = h5py.Empty("S4")


def dimensions(path: Path) -> None:
    """Scales and labels, virtual and external datasets."""
    with h5py.File(path, "w") as f:
        f["t"] = np.arange(4.0)
        f["t"].make_scale("time")
        f["lon"], f["lat"] = np.arange(3.0), np.arange(3.0)
        f["lon"].make_scale("longitude")
        f["lat"].make_scale()
        v = f.create_dataset("v", data=np.arange(12).reshape(4, 3))
        v.dims[0].label, v.dims[1].label = "T", "X"
        v.dims[0].attach_scale(f["t"])
        v.dims[1].attach_scale(f["lon"])
        v.dims[1].attach_scale(f["lat"])
        layout = h5py.VirtualLayout((8, 3), "i8")
        layout[:4] = h5py.VirtualSource(v)
        layout[4:] = h5py.VirtualSource(v)
        f.create_virtual_dataset("virtual", layout, fillvalue=-1)
        raw = path.with_name("raw.bin")
        raw.write_bytes(np.arange(6, dtype="i4").tobytes())
        f.create_dataset("raw", (2, 3), "i4", external=[(str(raw), 0, h5py.h5f.UNLIMITED)])
        f.create_dataset("compact", data=np.arange(3))
        f.create_dataset("plain", (3, 3), "i8")


FILES = {"basics": basics, "kinds": kinds, "dimensions": dimensions}
