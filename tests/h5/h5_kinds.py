"""What users of h5py write to read datasets of each dtype, and dimensions: as in `h5_expressions`."""

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
