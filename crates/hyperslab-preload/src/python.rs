//! Python's own lock, in processes that have a Python: a thread that waits for another one lets it go meanwhile.

#![allow(unsafe_code)]

use std::ffi::{CStr, c_int, c_void};
use std::mem::transmute_copy;
use std::ptr;

use hyperslab_libhdf5::libraries::look_up;

type State = unsafe extern "C" fn() -> *mut c_void;
type Asked = unsafe extern "C" fn() -> c_int;
type Restore = unsafe extern "C-unwind" fn(*mut c_void);

/// While it lives, the calling thread does not hold Python's lock. `None` inside if it did not before.
pub(crate) struct Released(Option<(*mut c_void, Restore)>);

impl Released {
    /// Lets go of the lock.
    pub fn new() -> Self {
        Self(released())
    }

    /// Whether this thread needs the lock, and Python is ending: then no thread but the last ever gets it again.
    pub fn is_lost(&self) -> bool {
        self.0.is_some() && is_ending()
    }
}

impl Drop for Released {
    fn drop(&mut self) {
        if let Some((state, restore)) = self.0.take() {
            // SAFETY: the state is what the thread had, and it has none now.
            unsafe { restore(state) };
        }
    }
}

/// `PyGILState_Check` says yes to all threads once there are several interpreters. So we ask what it asks: whether the state
/// that runs is the one of this thread.
fn released() -> Option<(*mut c_void, Restore)> {
    // SAFETY: functions of these names have these signatures in all versions. The thread holds the lock when it lets it go.
    unsafe {
        let running = function::<State>("PyThreadState_GetUnchecked\0")
            .or_else(|| function("_PyThreadState_UncheckedGet\0"))?;
        let (own, save) = (
            function::<State>("PyGILState_GetThisThreadState\0")?,
            function::<State>("PyEval_SaveThread\0")?,
        );
        let restore = function("PyEval_RestoreThread\0")?;
        let state = running();
        (!state.is_null() && ptr::eq(state, own())).then(|| (save(), restore))
    }
}

/// Whether Ctrl-C waits for Python to look at it. Python will find it again.
pub(crate) fn is_interrupted() -> bool {
    // SAFETY: functions of these names have these signatures in all versions. They are called with Python's lock; a thread that
    // Python knows may take it, unless Python is ending.
    unsafe {
        let Some(own) = function::<State>("PyGILState_GetThisThreadState\0") else { return false };
        let (Some(ensure), Some(release)) = (
            function::<Asked>("PyGILState_Ensure\0"),
            function::<unsafe extern "C-unwind" fn(c_int)>("PyGILState_Release\0"),
        ) else {
            return false;
        };
        let (Some(occurred), Some(again)) = (
            function::<Asked>("PyOS_InterruptOccurred\0"),
            function::<unsafe extern "C" fn()>("PyErr_SetInterrupt\0"),
        ) else {
            return false;
        };
        if own().is_null() || is_ending() {
            return false;
        }
        let state = ensure();
        let is_asked = occurred() != 0;
        if is_asked {
            again();
        }
        release(state);
        is_asked
    }
}

/// Whether Python is ending: then no thread but the last ever gets its lock again.
fn is_ending() -> bool {
    let asked = ["Py_IsFinalizing\0", "_Py_IsFinalizing\0"];
    // SAFETY: functions of these names take nothing.
    let found = asked.iter().find_map(|name| unsafe { function::<Asked>(name) });
    // SAFETY: as above.
    found.is_some_and(|is_ending| unsafe { is_ending() } != 0)
}

/// A function that any module has given to the whole process.
unsafe fn function<F>(name: &str) -> Option<F> {
    let name = CStr::from_bytes_with_nul(name.as_bytes()).ok()?;
    // SAFETY: the name ends with a zero. `dlerror` is called so that the program does not find our errors.
    let address = unsafe {
        let address = look_up()?(libc::RTLD_DEFAULT, name.as_ptr());
        libc::dlerror();
        address
    };
    // SAFETY: the caller names the function's type, which is a pointer.
    (!address.is_null()).then(|| unsafe { transmute_copy(&address) })
}
