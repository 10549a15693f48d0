"""What users of h5py write to read, from its documentation: `f` is the file, `h5py` the module, `np` NumPy."""

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

KINDS = """
f["vlen_str"].dtype
f["vlen_str"][:]
f["vlen_str"][1]
f["vlen_str"][()]
f["vlen_str"].asstr()[:]
f["vlen_str"].asstr()[1]
f["vlen_str"].asstr("ascii", errors="replace")[:]
f["vlen_str"].asstr("ascii")[:]
np.asarray(f["vlen_str"].asstr())
f["vlen_str"].astype("T")[:]
f["vlen_str"].astype("S2")[:]
list(f["vlen_str"])
f["vlen_ascii"].dtype
f["vlen_ascii"][:]
h5py.check_string_dtype(f["vlen_str"].dtype)
h5py.check_string_dtype(f["vlen_ascii"].dtype)
h5py.check_string_dtype(f["fixed"].dtype)
h5py.check_string_dtype(f["fixed_utf8"].dtype)
h5py.check_string_dtype(f["enum"].dtype)
h5py.check_vlen_dtype(f["vlen_str"].dtype)
h5py.check_vlen_dtype(f["sequences"].dtype)
h5py.check_enum_dtype(f["enum"].dtype)
h5py.check_ref_dtype(f["references"].dtype)
h5py.check_dtype(vlen=f["vlen_str"].dtype)
h5py.check_dtype(enum=f["enum"].dtype)
h5py.check_dtype(ref=f["regions"].dtype)
h5py.check_dtype(nonsense=f["regions"].dtype)
f["fixed"].dtype
f["fixed"][:]
f["fixed"][0]
f["fixed"].asstr()[:]
f["fixed"].astype("S1")[:]
f["fixed_utf8"][:]
f["fixed_utf8"].asstr()[0]
f["fixed_utf8"].asstr()[:]
f["fixed"].astype("T")[:]
f["one_text"][()]
f["one_text"][...]
f["one_text"].asstr()[()]
f["one_text"][()].decode()
f["one_text"].dtype
f["flags"].dtype
f["flags"][:]
f["flags"][0]
f["flags"].astype("i4")[:]
f["enum"].dtype
f["enum"][:]
f["enum"][1]
f["enum"].astype("i8")[:]
f["complex"][:]
f["complex"].dtype
f["complex64"][:]
f["complex64"].astype("c16")[:]
f["complex"]["r"]
f["half"][:]
f["half"].astype("f8")[:]
f["big"].dtype
f["big"][:]
f["big"].astype("<i4")[:]
f["big"][1]
f["bytes"].dtype
f["bytes"][:]
f["bytes"][0]
f["dates"].dtype
f["dates"][:]
f["dates"][0]
f["record"].dtype
f["record"].dtype.names
f["record"][:]
f["record"][0]
f["record"][0]["a"]
f["record"]["a"]
f["record"]["a", 0]
f["record"][0, "a"]
f["record"]["a"][1:]
f["record"]["a", "b"]
f["record"]["a", "b", 1:]
f["record"][1:, "b"]
f["record"]["nope"]
f["record"]["a", "nope"]
f["record"]["v"]
f["record"]["s", 0]
f["record"].fields("a")[:]
f["record"].fields("a")[0]
f["record"].fields(["b", "a"])[:]
f["record"].fields(["b"])[:]
f["record"].fields("a").dtype
f["record"].fields(["a", "b"]).dtype
len(f["record"].fields("a"))
np.asarray(f["record"].fields("b"))
f["record"].fields("nope")
f["record"].fields(["a"])[1:]
f["record"][f["record"]["a"] > 2]
f["record"][[0, 2]]
f["record"].astype([("a", "f8")])[:]
f["record"].nbytes
f["nested"].dtype
f["nested"][:]
f["nested"]["p"]
f["nested"]["p"]["x"]
f["mixed"].dtype
f["mixed"][:]
f["mixed"][0]
f["mixed"]["t"]
f["mixed"][0]["t"]
f["mixed"]["k"]
f[f["mixed"][0]["r"]].name
f["mixed"]["r"]
f["subarray"].dtype
f["subarray"].shape
f["subarray"][:]
f["subarray"][1]
f["subarray"][0:2]
f["subarray"].nbytes
f["sequences"].dtype
f["sequences"][:]
f["sequences"][0]
f["sequences"][1]
f["sequences"][0].dtype
[len(one) for one in f["sequences"]]
f["references"].dtype
f["references"][:]
f["references"][0]
f[f["references"][0]].name
f[f["references"][1]].name
[f[one].name for one in f["references"]]
f["regions"].dtype
f["regions"][:]
f[f["regions"][0]].name
f["vlen_str"][f["regions"][0]]
f["vlen_str"].regionref.selection(f["regions"][0])
f["vlen_str"].regionref.shape(f["regions"][0])
bool(f["regions"][1])
f[f["regions"][1]]
f["named"]
f["named"].dtype
f["named"].name
isinstance(f["named"], h5py.Datatype)
f.get("named", getclass=True)
f["of_named"].dtype
f["of_named"].id.get_type().committed()
f["typed"].id.get_type().committed()
f["text_fill"].fillvalue
f["text_fill"][:]
f["vlen_str"].fillvalue
f["record"].fillvalue
f["enum"].fillvalue
f["fixed"].fillvalue
f["flags"].fillvalue
{name: f.attrs[name] for name in f.attrs}
{name: f.attrs.get_id(name).dtype for name in f.attrs}
{name: f.attrs.get_id(name).shape for name in f.attrs}
f.attrs["vlen_str"]
f.attrs["fixed"]
f.attrs["enum"]
f.attrs["bool"]
f.attrs["empty_text"]
f.attrs["record"]
f.attrs["sequences"]
f[f.attrs["reference"]].name
f["vlen_str"][f.attrs["region"]]
f.attrs["nothing"]
{name: one.dtype for name, one in f.items()}
{name: repr(one) for name, one in f.items()}
{name: one.nbytes for name, one in f.items() if isinstance(one, h5py.Dataset)}
h5py.string_dtype()
h5py.string_dtype("ascii", 5)
h5py.string_dtype("latin-1")
h5py.string_dtype(length="x")
h5py.vlen_dtype("i4")
h5py.enum_dtype({"A": 1})
h5py.enum_dtype({"A": 1}, "f4")
h5py.special_dtype(vlen=str)
h5py.special_dtype(enum=("i1", {"A": 1}))
h5py.special_dtype(ref=h5py.Reference)
h5py.special_dtype(nonsense=1)
h5py.special_dtype(vlen=str, ref=1)
h5py.opaque_dtype("M8[s]")
h5py.check_opaque_dtype(f["dates"].dtype)
h5py.ref_dtype
h5py.regionref_dtype
h5py.Empty("f4")
h5py.Empty("f4") == h5py.Empty("f4")
h5py.Empty("f4").shape
h5py.MultiBlockSlice(0, 1, 2, 3)
h5py.MultiBlockSlice(2)
""".strip().splitlines()

DIMENSIONS = """
f["v"].dims
f["v"].dims[0].label
f["v"].dims[1].label
[one.label for one in f["v"].dims]
len(f["v"].dims)
len(f["v"].dims[0])
len(f["v"].dims[1])
f["v"].dims[0].keys()
f["v"].dims[1].keys()
f["v"].dims[1].items()
f["v"].dims[1].values()
list(f["v"].dims[1])
f["v"].dims[0][0]
f["v"].dims[0][0][:]
f["v"].dims[0]["time"]
f["v"].dims[1]["longitude"][0]
f["v"].dims[1][1].name
f["v"].dims[1]["nope"]
f["v"].dims[1][5]
f["v"].dims[9]
f["v"].dims[0] == f["v"].dims[0]
f["t"].is_scale
f["v"].is_scale
f["lat"].is_scale
f["plain"].dims[0].label
f["plain"].dims[0].keys()
list(f["plain"].dims[0])
f["t"].attrs["CLASS"]
f["t"].attrs["NAME"]
f["t"].attrs["REFERENCE_LIST"]
f["v"].attrs["DIMENSION_LABELS"]
f["v"].attrs["DIMENSION_LIST"]
[f[one[0]].name for one in f["v"].attrs["DIMENSION_LIST"]]
f["v"].dims[0].attach_scale(f["lon"])
f["virtual"].shape
f["virtual"].dtype
f["virtual"].is_virtual
f["virtual"].chunks
f["virtual"].fillvalue
f["virtual"].maxshape
f["virtual"][...]
f["virtual"][3:6, 1]
f["virtual"][[0, 5]]
[one.file_name for one in f["virtual"].virtual_sources()]
[one.dset_name for one in f["virtual"].virtual_sources()]
[one.vspace.get_select_bounds() for one in f["virtual"].virtual_sources()]
[one.vspace.shape for one in f["virtual"].virtual_sources()]
f["virtual"].virtual_sources()[0].file_name
f["virtual"].id.get_storage_size()
f["raw"].external[0][1:]
f["raw"].external[0][0].rsplit("/")[-1]
f["raw"][...]
f["raw"].chunks
f["raw"].id.get_offset()
f["compact"][:]
f["plain"][...]
f["plain"].id.get_offset()
f["plain"].id.get_storage_size()
f["v"].id.get_storage_size()
""".strip().splitlines()

EXPRESSIONS = {"basics": BASICS, "kinds": KINDS, "dimensions": DIMENSIONS}
