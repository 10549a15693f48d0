//! What is done when a process begins, forks and ends.

#![allow(unsafe_code)]

use std::ffi::c_int;

use hyperslab_libhdf5::objects;

use crate::{binding, counts, entries, far, known, lock, prefetching, recording, settings, write_queue};

/// Replaces libc's function, which runs nothing at the end of a process.
#[unsafe(no_mangle)]
pub extern "C" fn _exit(status: c_int) -> ! {
    end(status)
}

/// The same by its other name.
#[unsafe(no_mangle)]
pub extern "C" fn _Exit(status: c_int) -> ! {
    end(status)
}

fn end(status: c_int) -> ! {
    counts::write();
    recording::end();
    loop {
        // SAFETY: the system call ends the process.
        unsafe { libc::syscall(libc::SYS_exit_group, status) };
    }
}

/// The linker calls it when the library is loaded.
#[used]
#[unsafe(link_section = ".init_array")]
static START: extern "C" fn() = {
    extern "C" fn start() {
        settings::settings();
        objects::start();
        std::panic::set_hook(Box::new(|_| {})); // a panic of ours is no message of the program
        counts::start();
        recording::start();
        entries::tell();
        binding::start();
        // SAFETY: the function does only what may be done after a fork.
        unsafe {
            libc::pthread_atfork(Some(forking), Some(has_forked), Some(forked));
        }
    }
    start
};

/// The linker calls it when the process ends.
#[used]
#[unsafe(link_section = ".fini_array")]
static END: extern "C" fn() = {
    extern "C" fn end() {
        prefetching::end();
        counts::write();
        recording::end();
    }
    end
};

extern "C" fn forking() {
    lock::before_fork();
    write_queue::before_fork();
    prefetching::before_fork();
    known::before_fork();
    far::before_fork();
}

extern "C" fn has_forked() {
    far::after_fork();
    known::after_fork();
    prefetching::after_fork();
    write_queue::after_fork();
    lock::after_fork();
}

/// A child that was forked begins anew: locks may be held by threads that it does not have.
extern "C" fn forked() {
    lock::forked();
    write_queue::forked();
    far::forked();
    known::forked();
    binding::forget();
    prefetching::forget();
    counts::start();
    recording::forked();
}
