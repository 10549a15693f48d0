"""What users of h5py write to read, from its documentation: `f` is the file, `h5py` the module, `np` NumPy."""

from h5_kinds import DIMENSIONS, KINDS

BASICS = """
f
f.name
f.filename.rsplit("/")[-1]
f.mode
f.driver
f.libver
f.swmr_mode
f.userblock_size
f.meta_block_size
bool(f)
len(f)
list(f)
list(reversed(f))
f.keys()
list(f.keys())
list(f.values())
list(f.items())
list(reversed(f.keys()))
"x" in f.keys()
f["x"] in f.values()
("x", f["x"]) in f.items()
"x" in f
"/g/y" in f
"g/y" in f
"g/nothing" in f
"dangling" in f
"soft" in f
"/" in f
"" in f
3 in f
b"x" in f
f["x"]
f["/x"]
f["g/y"]
f[b"g/y"]
f["g"]["deep"]["deeper/z"]
f["g/deep/../y"]
f["."]
f["/"]
f[""]
f["nothing"]
f["x/y"]
f["dangling"]
f["lost"]
f[3]
f[None]
f["é"][()]
f["soft"].name
f["soft"][0]
f["softgroup"].name
f["softgroup/y"].name
f["softgroup"]["deep"].name
f["hard"].name
f["hard"] == f["g"]
f["external"][:]
f["external"].name
f["external"].file.filename.rsplit("/")[-1]
f["g"].parent
f["g/y"].parent.name
f["x"].parent == f
f["x"].file == f
f["x"].file.filename == f.filename
f == f["/"]
f["x"] == f["/x"]
f["x"] == f["g/y"]
f["x"] == 3
hash(f["x"]) == hash(f["/x"])
hash(f) == hash(f["/"])
f.get("x")
f.get("nothing")
f.get("nothing", 5)
f.get("x", getclass=True)
f.get("g", getclass=True)
f.get("soft", getclass=True)
f.get("dangling", getclass=True)
f.get("nothing", getclass=True)
f.get("x", getlink=True)
f.get("soft", getlink=True)
f.get("soft", getlink=True).path
f.get("external", getlink=True)
f.get("external", getlink=True).filename
f.get("external", getlink=True).path
f.get("soft", getclass=True, getlink=True)
f.get("external", getclass=True, getlink=True)
f.get("x", getclass=True, getlink=True)
f.get("dangling", getlink=True)
f.get("dangling")
f.get("g/y", getlink=True)
f.get("nothing", default="no", getlink=True)
isinstance(f["x"], h5py.Dataset)
isinstance(f["g"], h5py.Group)
isinstance(f, h5py.Group)
type(f["x"])
[n for n in f["g"]]
list(f["ordered"])
list(reversed(f["ordered"]))
list(f["ordered"].attrs)
visited(f.visit)
visited(f["g"].visit)
visited(f.visititems)
visited(f.visit_links)
visited(f.visititems_links)
f.visit(lambda name: name if name.endswith("z") else None)
f.visititems(lambda name, found: found if isinstance(found, h5py.Dataset) else None)
f["x"].name
f["x"].shape
f["x"].dtype
f["x"].ndim
f["x"].size
f["x"].nbytes
f["x"].chunks
f["x"].maxshape
f["x"].fillvalue
f["x"].compression
f["x"].compression_opts
f["x"].shuffle
f["x"].fletcher32
f["x"].scaleoffset
f["x"].external
f["x"].is_virtual
f["x"].is_scale
f["x"].virtual_sources()
f["x"].filter_ids
f["x"].filter_names
f["packed"].chunks
f["packed"].compression
f["packed"].compression_opts
f["packed"].shuffle
f["packed"].fletcher32
f["packed"].filter_ids
f["packed"].filter_names
f["lzf"].compression
f["lzf"].compression_opts
f["lzf"].maxshape
f["offset"].scaleoffset
f["places"].scaleoffset
f["places"][:5]
f["unwritten"].fillvalue
f["unwritten"][...]
f["unwritten"].id.get_num_chunks()
f["x"][...]
f["x"][()]
f["x"][:]
f["x"][0]
f["x"][-1]
f["x"][0, 1]
f["x"][0, 1, 2]
f["x"][0, ..., 2]
f["x"][..., 0]
f["x"][1:3]
f["x"][::2, 1:4:2, -3:]
f["x"][2:1]
f["x"][5:9]
f["x"][0:0]
f["x"][::-1]
f["x"][0, 0, 0, 0]
f["x"][..., ...]
f["x"][3]
f["x"][-4]
f["x"][None]
f["x"][np.newaxis, 0]
f["x"][[0, 2]]
f["x"][:, [1, 3]]
f["x"][:, [1, 3], 0]
f["x"][[0, 1], [0, 1]]
f["x"][[1, 0]]
f["x"][[0, 0]]
f["x"][[]]
f["x"][np.array([0, 2])]
f["x"][np.int64(1)]
f["x"][[True, False, True]]
f["x"][np.array([True, False, True])]
f["x"][:, np.array([True, False, True, True])]
f["x"][f["x"][:] > 30]
f["x"][np.zeros((3, 4, 5), bool)]
f["x"][np.ones((2, 2), bool)]
f["x"][np.array([[0, 1]])]
f["x"][1.0]
f["x"]["field"]
f["x"][h5py.MultiBlockSlice(0, 2, 2, 1)]
f["x"][:, h5py.MultiBlockSlice(start=0, stride=3, count=1, block=2)]
f["x"][h5py.MultiBlockSlice(count=9)]
f["line"][[0, 3, 9]]
f["line"][np.arange(10) % 2 == 0]
f["line"][[True] * 10]
f["line"][10]
f["line"][-10]
f["line"][2:8:3]
f["scalar"][()]
f["scalar"][...]
f["scalar"][0]
f["scalar"][:]
f["scalar"].shape
f["scalar"].ndim
float(f["scalar"][()])
len(f["scalar"])
list(f["scalar"])
f["empty"].shape
f["empty"].size
f["empty"].nbytes
f["empty"].ndim
f["empty"].dtype
f["empty"].maxshape
f["empty"][()]
f["empty"][...]
f["empty"][0]
f["empty"]
len(f["empty"])
f["none"].shape
f["none"].maxshape
f["none"][...]
f["none"][:, 1]
f["none"][0]
len(f["x"])
f["x"].len()
list(f["line"])
[row.sum() for row in f["x"]]
np.asarray(f["x"])
np.array(f["x"], dtype="f4")
np.array(f["scalar"])
np.sum(f["line"])
f["x"].astype("f4")[0]
f["x"].astype("i1")[:]
f["x"].astype("u1")[0, 0]
f["x"].astype("f8").dtype
f["x"].astype("f8").shape
len(f["x"].astype("f8"))
np.asarray(f["x"].astype("f4"))
f["x"].astype("S3")[0]
f["x"].astype("U3")[0]
f["packed"].astype("i2")[3, 4:9]
f["x"].asstr()
f["x"].fields("a")
list(f["packed"].iter_chunks())
list(f["packed"].iter_chunks(np.s_[0:9, 5:20]))
list(f["x"].iter_chunks())
list(f["packed"].iter_chunks(np.s_[0:99, 5:20]))
list(f["packed"].iter_chunks(np.s_[0:9]))
filled(f["x"], (3, 4, 5), "i8")
filled(f["x"], (4, 5), "f4", np.s_[1])
filled(f["x"], (20,), "f8", np.s_[0, 0, :], np.s_[5:10])
filled(f["x"], (3,), "f8")
f["x"].attrs
len(f["x"].attrs)
list(f["x"].attrs)
f["x"].attrs.keys()
list(f["x"].attrs.values())
dict(f["x"].attrs)
f["x"].attrs["units"]
f["x"].attrs["scale"]
f["x"].attrs["flag"]
f["x"].attrs["n"]
f["x"].attrs["texts"]
f["x"].attrs["raw"]
f["x"].attrs["nothing"]
f["x"].attrs["nope"]
f["x"].attrs.get("nope")
f["x"].attrs.get("units", "?")
"units" in f["x"].attrs
b"units" in f["x"].attrs
f["x"].attrs[b"units"]
f["x"].attrs.get_id("scale").dtype
f["x"].attrs.get_id("numbers" if "numbers" in f["x"].attrs else "n").shape
f.attrs["title"]
f.attrs["numbers"]
f.attrs["numbers"].dtype
f["g"].attrs["note"]
f[f["x"].attrs["object"]]
f[f["x"].ref].name
f["g"][f["x"].ref].name
f[f["g"].ref]
bool(f["x"].ref)
f["x"].ref
f["x"].regionref[0:2, 1]
f["x"][f["x"].regionref[0:2, 1, 2:4]]
f["line"][f["line"].regionref[[1, 3, 4]]]
f["x"].regionref.shape(f["x"].regionref[0])
f["x"].regionref.selection(f["x"].regionref[0])
f["line"][f["x"].regionref[0]]
f["g"].regionref[0]
f["x"].id.get_offset() == None
f["x"].id.get_storage_size()
f["packed"].id.get_num_chunks()
f["packed"].id.get_chunk_info(3)
f["packed"].id.get_chunk_info_by_coord((7, 13))
f["packed"].id.get_chunk_info(99)
f["x"].id.get_num_chunks()
f["x"].id.shape
f["x"].id.rank
f["x"].id.get_space().get_simple_extent_dims()
f["x"].id.get_type().dtype
f["x"].id.valid
f["x"].id == f["/x"].id
f["x"].id.get_create_plist().get_nfilters()
f["x"].dims[0].label
len(f["x"].dims)
len(f["x"].dims[0])
f["x"].dims[0].keys()
f["x"].dims[7]
f["x"].dims[0][0]
f["x"].make_scale()
f["x"].resize((9,))
f["lzf"].resize((9,))
f.create_group("new")
f.create_dataset("new", data=1)
f.require_group("g")
f.require_group("new")
f.require_group("x")
f.require_dataset("line", (10,), "i8")
f.require_dataset("line", (11,), "i8")
f.require_dataset("line", (10,), "i4", exact=True)
f.move("x", "z")
f.copy("x", "z")
f.__setitem__("new", 1)
f.__delitem__("x")
f["x"].__setitem__(0, 1)
f.attrs.__setitem__("new", 1)
f.attrs.create("new", 1)
f.attrs.__delitem__("title")
f.pop("x")
f.flush()
f["x"].flush()
f["x"].refresh()
h5py.is_hdf5(f.filename)
h5py.is_hdf5("/no/such/file")
h5py.File("/no/such/file.h5")
h5py.File(__file__)
h5py.File(f.filename, "q")
h5py.File(f.filename, "r", nonsense=1)
h5py.File(f.filename, driver="nonsense")
h5py.File(f.filename.encode(), "r")
h5py.File(f.filename, "r", rdcc_nbytes=1 << 20, libver="latest")
f.swmr_mode
""".strip().splitlines()

EXPRESSIONS = {"basics": BASICS, "kinds": KINDS, "dimensions": DIMENSIONS}
