//! The table against the libhdf5 of the system, if there is one: `libhdf5-dev`, in `tests/system-packages.txt`.

#![cfg(target_os = "linux")]
#![allow(unsafe_code, clippy::unwrap_used, clippy::panic)]

use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};
use std::fs;
use std::mem::transmute;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::ptr;
use std::sync::{Mutex, MutexGuard, PoisonError};

use hyperslab_core::AxisIndices;
use hyperslab_libhdf5::libraries::{Libhdf5, libhdf5_at, library_at};
use hyperslab_libhdf5::{
    Boxes, Class, Dataspace, Id, Kind, Layout, Library, MOST_NDIM, Module, Order, Owned, Problem, Quiet,
    Selected, SelectionKind, SetAside, Space, has_failed, intervals,
};

/// libhdf5 is called by one thread at a time.
static ONE: Mutex<()> = Mutex::new(());

/// `H5F_ACC_TRUNC`, `H5F_ACC_RDONLY`.
const NEW: usize = 2;
const READ: usize = 0;

/// A libhdf5, and the functions of it that only the tests call: with numbers alone, which have a register each.
struct System {
    libhdf5: &'static Libhdf5,
    module: Module,
    _one: MutexGuard<'static, ()>,
}

type Called = unsafe extern "C" fn(usize, usize, usize, usize, usize, usize) -> usize;
type Create = unsafe extern "C" fn(Id, *const c_char, Id, Id, Id, Id, Id) -> Id;

/// `None` if the system has none, which is said.
fn system() -> Option<System> {
    let one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(path) = found() else {
        eprintln!("left out: the system has no libhdf5 (libhdf5-dev)");
        return None;
    };
    let name = CString::new(path.as_os_str().as_bytes()).unwrap();
    // SAFETY: libhdf5 may be loaded at any time, and is never unloaded.
    let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW) };
    assert!(!handle.is_null(), "{} cannot be loaded", path.display());
    let module = Module::loaded(&name).unwrap();
    let libhdf5 = libhdf5_at(module.find(c"H5Dread") as usize).unwrap();
    let system = System { libhdf5, module, _one: one };
    system.call(c"H5open", &[]);
    Some(system)
}

fn found() -> Option<PathBuf> {
    let folders = fs::read_dir("/usr/lib").ok()?.filter_map(|entry| Some(entry.ok()?.path()));
    let files = folders.filter_map(|folder| fs::read_dir(folder).ok()).flatten();
    let paths = files.filter_map(|entry| Some(entry.ok()?.path()));
    let is_it = |path: &PathBuf| path.to_string_lossy().contains("/libhdf5_serial.so.");
    paths.filter(is_it).min()
}

impl System {
    fn library(&self) -> &'static Library {
        self.libhdf5.library().unwrap()
    }

    fn call(&self, name: &CStr, arguments: &[usize]) -> Id {
        let address = self.module.find(name);
        assert!(!address.is_null(), "{name:?}");
        let mut all = [0; 6];
        all[..arguments.len()].copy_from_slice(arguments);
        let [first, second, third, fourth, fifth, sixth] = all;
        // SAFETY: the tests pass what the function takes; the registers of more arguments are not looked at.
        let result =
            unsafe { transmute::<*mut c_void, Called>(address)(first, second, third, fourth, fifth, sixth) };
        result.cast_signed() as Id
    }

    /// The value of a variable of libhdf5's.
    fn id(&self, name: &CStr) -> usize {
        let address = self.module.find(name).cast::<Id>();
        // SAFETY: the variable is libhdf5's.
        number(unsafe { *address })
    }

    /// A file with an array of 20 rows and 30 columns in chunks of 8 by 10, of big-endian floats, with shuffle and deflate.
    fn file(&self, name: &str) -> TestFile<'_> {
        let path = std::env::temp_dir().join(format!("hyperslab-{}-{name}.h5", std::process::id()));
        let text = CString::new(path.as_os_str().as_bytes()).unwrap();
        let file = self.call(c"H5Fcreate", &[text.as_ptr() as usize, NEW, 0, 0]);
        let space = Space::created(self.library(), &[20, 30]).unwrap();
        let class = self.id(c"H5P_CLS_DATASET_CREATE_ID_g");
        let creation = self.call(c"H5Pcreate", &[class]);
        let chunk = [8_u64, 10];
        self.call(c"H5Pset_chunk", &[number(creation), 2, chunk.as_ptr() as usize]);
        self.call(c"H5Pset_shuffle", &[number(creation)]);
        self.call(c"H5Pset_deflate", &[number(creation), 1]);
        let create = self.module.find(c"H5Dcreate2");
        let kind = Id::try_from(self.id(c"H5T_IEEE_F32BE_g")).unwrap();
        // SAFETY: the function of this name has this signature.
        let array = unsafe {
            transmute::<*mut c_void, Create>(create)(file, c"a".as_ptr(), kind, space.id(), 0, creation, 0)
        };
        assert!(array > 0);
        self.call(c"H5Pclose", &[number(creation)]);
        TestFile { system: self, path, file, array }
    }
}

struct TestFile<'s> {
    system: &'s System,
    path: PathBuf,
    file: Id,
    array: Id,
}

impl TestFile<'_> {
    /// The same file, read only.
    fn reopen(&mut self) {
        self.close();
        let text = CString::new(self.path.as_os_str().as_bytes()).unwrap();
        self.file = self.system.call(c"H5Fopen", &[text.as_ptr() as usize, READ, 0]);
        self.array = self.system.call(c"H5Dopen2", &[number(self.file), c"a".as_ptr() as usize, 0]);
    }

    fn close(&self) {
        self.system.call(c"H5Dclose", &[number(self.array)]);
        self.system.call(c"H5Fclose", &[number(self.file)]);
    }
}

impl Drop for TestFile<'_> {
    fn drop(&mut self) {
        self.close();
        let _ = fs::remove_file(&self.path);
    }
}

fn number(id: Id) -> usize {
    usize::try_from(id).unwrap()
}

#[test]
fn a_library_is_found_by_the_address_of_any_of_its_functions() {
    let Some(system) = system() else { return };
    let by_other = libhdf5_at(system.module.find(c"H5Tequal") as usize).unwrap();
    assert_eq!((by_other.number(), by_other.order), (system.libhdf5.number(), system.libhdf5.order));
    assert!(system.libhdf5.is_real && system.library().is_new_enough_to_write());
    assert!(libhdf5_at(libc::malloc as *const () as usize).is_none());
    let libc = library_at(libc::malloc as *const () as usize).unwrap();
    assert!(!libc.is_real && libc.library().is_none());
    let function = system.libhdf5.function(c"H5Dread").unwrap();
    assert!(system.libhdf5.contains(function as *const () as usize));
}

#[test]
fn an_older_library_or_one_that_lacks_functions_has_no_table() {
    unsafe extern "C" fn old(major: *mut c_uint, minor: *mut c_uint, release: *mut c_uint) -> c_int {
        // SAFETY: the table passes three places.
        unsafe { (*major, *minor, *release) = (1, 8, 22) };
        0
    }
    let Some(system) = system() else { return };
    let variable = |name: &CStr| system.module.find(name);
    let older = |name: &CStr| {
        if name == c"H5get_libversion" { old as *mut c_void } else { system.module.find(name) }
    };
    let without = |name: &CStr| {
        if name == c"H5Sget_select_bounds" { ptr::null_mut() } else { system.module.find(name) }
    };
    let reading = |name: &CStr| {
        if name == c"H5Dwrite_chunk" { ptr::null_mut() } else { system.module.find(name) }
    };
    // SAFETY: these are libhdf5's functions, or none.
    unsafe {
        assert!(Library::find(older, variable).is_none());
        assert!(Library::find(without, variable).is_none());
        assert!(!Library::find(reading, variable).unwrap().is_new_enough_to_write());
    }
}

#[test]
fn wrong_identifiers_are_refused_without_a_word() {
    let Some(system) = system() else { return };
    let file = system.file("wrong");
    let library = system.library();
    let kinds = [Kind::File, Kind::Type, Kind::Space, Kind::Array, Kind::Object, Kind::CreationOfArray];
    let quiet = Quiet::new(library).unwrap();
    for id in [0, -1, 1, 99, i64::MAX, i64::MIN, file.file + 1000] {
        for kind in kinds {
            assert!(!library.is(kind, id), "{id} {kind:?}");
        }
        assert!(Dataspace::of(library.space(id)).is_none());
        assert!(library.space(id).count() < 0 && library.space(id).bounds().is_none());
        assert!(library.space(id).blocks(3).is_none() && library.space(id).points(3).is_none());
        assert!(library.array(id).space().is_none() && library.array(id).place().is_none());
        assert!(library.array(id).file().is_none() && library.array(id).name().is_none());
        assert!(library.file(id).intent().is_none() && library.file(id).descriptor().is_none());
        assert_eq!((library.datatype(id).class(), library.datatype(id).nbytes()), (None, 0));
        assert!(library.datatype(id).member_name(7).is_none() && library.datatype(id).base().is_none());
        assert!(library.properties(id).layout().is_none() && library.properties(id).chunk_cache().is_none());
        assert!(matches!(library.stored_chunks(id), Err(Problem::NotA(Kind::Array, _))));
        assert!(library.held_space(id).is_err() && library.comment(id).is_err());
    }
    drop(quiet);
    let kinds = kinds.map(|kind| library.is(kind, file.array));
    assert_eq!(kinds, [false, false, false, true, true, false]);
    assert!(matches!(library.set_bounds(file.array, (0, 0)), Err(Problem::NotA(Kind::File, _))));
}

#[test]
fn an_array_is_described() {
    let Some(system) = system() else { return };
    let mut file = system.file("described");
    file.reopen();
    let count = || system.call(c"H5Iget_ref", &[number(file.file)]);
    let before = count();
    let array = system.library().array(file.array);
    assert_eq!(array.name().unwrap(), "/a");
    assert_eq!(array.file_name().unwrap(), file.path.to_string_lossy());
    let opened = array.file().unwrap();
    let intent = opened.intent().unwrap();
    assert!(!intent.is_writable() && !intent.is_swmr());
    let descriptor = opened.descriptor().unwrap();
    let leads_to = fs::read_link(format!("/proc/self/fd/{descriptor}")).unwrap();
    assert_eq!(leads_to, file.path.canonicalize().unwrap());
    let (creation, mut room) = (array.creation().unwrap(), [0; MOST_NDIM]);
    assert_eq!(creation.layout(), Some(Layout::Chunked));
    assert_eq!(creation.chunk_shape(&mut room).unwrap(), [8, 10]);
    assert_eq!((creation.filters().unwrap(), creation.lacked_filter()), (vec![2, 1], None));
    assert!(creation.is_filtered() && creation.fills() && !array.is_allocated());
    assert_eq!(array.access().unwrap().chunk_cache().unwrap().nbytes, 1 << 20);
    let stored = array.stored_type().unwrap();
    assert_eq!((stored.class(), stored.order(), stored.nbytes()), (Some(Class::Float), Some(Order::Big), 4));
    let swapped = stored.with_order(Order::Little).unwrap();
    assert_eq!((stored.own_number(), swapped.own_number()), (None, Some(8)));
    assert!(swapped.equals(swapped.own_number_id().unwrap()));
    assert!(system.libhdf5.contains(stored.converter(swapped.id())));
    assert_eq!(array.place(), system.library().array(file.array).place());
    assert!(system.library().decodes(1) && !system.library().decodes(31999));
    assert!(system.library().properties(0).is_default_transfer());
    assert_eq!(count(), before + 1);
    let ids = [creation.id(), stored.id(), swapped.id()];
    assert!(ids.iter().all(|&id| system.call(c"H5Iis_valid", &[number(id)]) > 0));
    drop((opened, creation, stored, swapped));
    assert_eq!(count(), before);
    assert!(ids.iter().all(|&id| system.call(c"H5Iis_valid", &[number(id)]) == 0), "they are closed by now");
}

fn selected(space: &Owned<Space<'_>>) -> Vec<Vec<u64>> {
    let Some(Selected::Axes(axes)) = Dataspace::of(**space).map(|space| space.selected) else {
        panic!("no axes")
    };
    let indices = |axis: &AxisIndices| match axis {
        AxisIndices::Listed(indices) => indices.clone(),
        AxisIndices::Regular(along) => (0..along.count())
            .flat_map(|k| (0..along.block()).map(move |j| along.start() + k * along.stride() + j))
            .collect(),
    };
    axes.iter().map(indices).collect()
}

#[test]
fn what_is_selected_is_told_axis_by_axis() {
    let Some(system) = system() else { return };
    let library = system.library();
    let space = Space::created(library, &[20, 30]).unwrap();
    assert!(matches!(Dataspace::of(*space).unwrap().selected, Selected::All));
    assert_eq!((space.count(), space.selection_kind()), (600, Some(SelectionKind::All)));
    let select = |how: usize, [start, stride, count]: [[u64; 2]; 3]| {
        let (start, stride, count) =
            (start.as_ptr() as usize, stride.as_ptr() as usize, count.as_ptr() as usize);
        system.call(c"H5Sselect_hyperslab", &[number(space.id()), how, start, stride, count, 0])
    };
    select(0, [[1, 2], [4, 5], [3, 2]]);
    assert!(space.is_regular() && space.count() == 6);
    assert_eq!(selected(&space), [vec![1, 5, 9], vec![2, 7]]);
    let (low, high) = space.bounds().unwrap();
    assert_eq!((&low[..2], &high[..2]), (&[1, 2][..], &[9, 7][..]));
    // Rows 1, 5 and 9, and row 11: no regular hyperslab, and still a product of lists.
    select(1, [[11, 2], [4, 5], [1, 2]]);
    assert_eq!(selected(&space), [vec![1, 5, 9, 11], vec![2, 7]]);
    assert_eq!(space.blocks(space.block_count().unwrap()).unwrap().len(), 8 * 4);
    // One element more is none.
    select(1, [[15, 20], [1, 1], [1, 1]]);
    assert!(Dataspace::of(*space).is_none());
    let indices: [u64; 4] = [3, 4, 0, 29];
    system.call(c"H5Sselect_elements", &[number(space.id()), 0, 2, indices.as_ptr() as usize]);
    let Selected::Points(points) = Dataspace::of(*space).unwrap().selected else { panic!("no points") };
    assert_eq!(points.iter().map(<[u64]>::to_vec).collect::<Vec<_>>(), [[3, 4], [0, 29]]);
    // A selection that was moved is another one than its numbers say.
    let offset: [i64; 2] = [1, 0];
    system.call(c"H5Soffset_simple", &[number(space.id()), offset.as_ptr() as usize]);
    assert!(Dataspace::of(*space).is_none());
    system.call(c"H5Sselect_none", &[number(space.id())]);
    assert!(Dataspace::of(*space).is_none() && space.count() == 0);
}

#[test]
fn intervals_are_found_if_blocks_are_their_product() {
    let product = [[0, 0, 1, 1], [0, 5, 1, 5], [3, 0, 3, 1], [3, 5, 3, 5]].concat();
    assert_eq!(intervals(&product, 2).unwrap(), [[(0, 1), (3, 3)], [(0, 1), (5, 5)]]);
    assert!(intervals(&product[..12], 2).is_none());
    assert!(intervals(&[0, 0, 1, 1, 1, 5, 2, 5], 2).is_none(), "they overlap on the first axis");
}

#[test]
fn boxes_lie_in_their_dataspace() {
    let Some(system) = system() else { return };
    let boxes = Boxes::of(Space::created(system.library(), &[20, 30]).unwrap()).unwrap();
    boxes.select(&[18, 0], &[2, 30]).unwrap();
    assert_eq!(boxes.space().count(), 60);
    for (start, shape) in
        [(&[19, 0][..], &[2, 1][..]), (&[0], &[1]), (&[0, 0, 0], &[1, 1, 1]), (&[u64::MAX, 0], &[2, 1])]
    {
        assert!(matches!(boxes.select(start, shape), Err(Problem::Misfit(_))), "{start:?} {shape:?}");
    }
    let boxes = boxes.growing();
    boxes.select(&[100, 0], &[2, 30]).unwrap();
    assert!(boxes.select(&[u64::MAX, 0], &[2, 30]).is_err());
}

#[test]
fn chunks_are_written_as_they_are_stored() {
    let Some(system) = system() else { return };
    let mut file = system.file("written");
    let silence = Quiet::new(system.library()).unwrap();
    let chunks = system.library().stored_chunks(file.array).unwrap();
    assert_eq!((&chunks.shape[..], chunks.nbytes, &chunks.filters[..]), (&[8, 10][..], 320, &[2, 1][..]));
    let bytes: Vec<u8> = (0..80_u16).flat_map(|value| f32::from(value).to_be_bytes()).collect();
    chunks.write(&[8, 10], &bytes, 3).unwrap();
    for (start, bytes, mask) in [
        (&[20, 0][..], &bytes[..], 3),
        (&[8], &bytes, 3),
        (&[8, 10], &bytes[..319], 3),
        (&[8, 11], &bytes, 3),
    ] {
        assert!(chunks.write(start, bytes, mask).is_err(), "{start:?}");
    }
    drop((chunks, silence));
    file.reopen();
    let memory = Space::created(system.library(), &[8, 10]).unwrap();
    let space = Boxes::of(system.library().array(file.array).space().unwrap()).unwrap();
    space.select(&[8, 10], &[8, 10]).unwrap();
    let mut values = [0_f32; 80];
    let read = system.libhdf5.function(c"H5Dread").unwrap();
    let (kind, out) = (system.id(c"H5T_NATIVE_FLOAT_g"), values.as_mut_ptr() as usize);
    // SAFETY: there is room for the elements that are selected.
    let done =
        unsafe { read(number(file.array), kind, number(memory.id()), number(space.space().id()), 0, out) };
    assert!(!has_failed(done));
    assert!(values.iter().flat_map(|value| value.to_be_bytes()).eq(bytes));
}

#[test]
fn errors_are_put_back_or_forgotten() {
    let Some(system) = system() else { return };
    let library = system.library();
    let silence = Quiet::new(library).unwrap(); // the test prints nothing
    let count = || system.call(c"H5Eget_num", &[0]);
    system.call(c"H5Dclose", &[99]);
    let some = count();
    assert!(some > 0);
    let errors = SetAside::new(library);
    assert_eq!(count(), 0);
    drop(errors);
    assert_eq!(count(), some);
    SetAside::new(library).forget();
    assert_eq!(count(), 0);
    system.call(c"H5Dclose", &[99]);
    drop(silence);
    assert_eq!(count(), 0, "what is printed to nobody is not left either");
}

#[test]
fn a_printer_of_the_old_kind_stays() {
    let Some(system) = system() else { return };
    let (function, data) = printer(&system);
    system.call(c"H5Eset_auto1", &[function, data]);
    assert!(Quiet::new(system.library()).is_none());
    let (mut now, mut its_data) = (0_usize, 0_usize);
    system.call(c"H5Eget_auto1", &[(&raw mut now) as usize, (&raw mut its_data) as usize]);
    system.call(c"H5Eset_auto2", &[0, function, data]);
    assert_eq!(now, function);
}

#[test]
fn a_module_that_is_not_loaded_is_none() {
    assert!(Module::loaded(c"/none.so").is_none());
    assert!(Module::loaded(c"").is_some(), "the program itself");
}

/// What libhdf5 calls to print errors.
fn printer(system: &System) -> (usize, usize) {
    let (mut function, mut data) = (0_usize, 0_usize);
    system.call(c"H5Eget_auto2", &[0, (&raw mut function) as usize, (&raw mut data) as usize]);
    (function, data)
}

#[test]
fn errors_are_printed_again_by_whoever_printed_them_before() {
    let Some(system) = system() else { return };
    let before = printer(&system);
    let quiet = Quiet::new(system.library()).unwrap();
    assert_eq!(printer(&system), (0, 0));
    let within = Quiet::new(system.library()).unwrap();
    drop(within);
    assert_eq!(printer(&system), (0, 0));
    drop(quiet);
    assert_eq!(printer(&system), before);
    assert!(before.0 != 0);
}
