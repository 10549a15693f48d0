//! The lock of a library that only one thread may call at a time. Whoever holds it may take it again: libraries call each
//! other, and the program calls them from callbacks and signal handlers.
//!
//! Threads take it in any order. Who has waited for long gets it next. Nothing here allocates, so a signal handler may take it.

#![allow(unsafe_code)]

use std::cell::Cell;
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicUsize, Ordering};
use std::time::Duration;

use crate::counts::{self, Count, now};
use crate::python::Released;
use crate::stack;

/// Nobody holds the lock.
const FREE: u32 = 0;
/// The lock is free, but only for those who have waited for long. Threads have smaller numbers.
const RESERVED: u32 = 1 << 30;
/// Besides the holder's number: others sleep until the lock is free.
const AWAITED: u32 = 1 << 31;
/// How often a thread looks before it sleeps.
const LOOKS: usize = 100;
/// After how many nanoseconds the lock is reserved for those who wait.
const LONG: u64 = 1_000_000;
/// After how many nanoseconds a thread lets Python's other threads run: the holder may be in a callback that needs them.
const LONG_WITH_PYTHON: u64 = 10_000_000;
/// How long a thread sleeps at most, before it looks whether the holder still exists.
const LONGEST_SLEEP: u64 = 1_000_000_000;
/// How long a fork waits for other threads.
const MOST_NANOSECONDS_OF_FORKS: u64 = 100_000_000;

/// The lock of a library, or of several that call each other.
#[derive(Default)]
pub(crate) struct Lock {
    state: AtomicU32,
    /// How often the holder has taken it besides. Only the holder changes what follows.
    depth: AtomicU32,
    /// Where on the holder's stack its first call is.
    outermost: AtomicUsize,
    /// Whether it is held so that the process can fork.
    is_forking: AtomicU32,
    /// How many threads have waited for long.
    waiting_long: AtomicU32,
    next: AtomicPtr<Lock>,
}

static LOCKS: AtomicPtr<Lock> = AtomicPtr::new(ptr::null_mut());

thread_local! {
    /// The system's number of this thread; 0 if that is not known yet.
    static NUMBER: Cell<u32> = const { Cell::new(0) };
}

#[inline]
fn own_number() -> u32 {
    NUMBER.with(|number| if number.get() == 0 { found_number(number) } else { number.get() })
}

#[cold]
fn found_number(number: &Cell<u32>) -> u32 {
    number.set(rustix::thread::gettid().as_raw_pid().cast_unsigned());
    number.get()
}

/// While it lives, the thread has the lock.
pub(crate) struct Held {
    lock: &'static Lock,
    owner: u32,
    /// How often the thread had it before.
    depth: u32,
}

impl Drop for Held {
    #[inline]
    fn drop(&mut self) {
        // What was taken since then was left by jumping over the calls that took it.
        if self.depth > 0 {
            self.lock.depth.store(self.depth - 1, Ordering::Relaxed);
        } else {
            self.lock.free(self.owner);
        }
    }
}

fn all() -> impl Iterator<Item = &'static Lock> {
    // SAFETY: locks are never freed.
    let at = |place: &AtomicPtr<Lock>| unsafe { place.load(Ordering::Acquire).as_ref() };
    std::iter::successors(at(&LOCKS), move |lock| at(&lock.next))
}

impl Lock {
    /// A lock for good.
    pub fn new() -> &'static Self {
        let lock: &'static Self = Box::leak(Box::default());
        let new = ptr::from_ref(lock).cast_mut();
        let mut first = LOCKS.load(Ordering::Acquire);
        loop {
            lock.next.store(first, Ordering::Relaxed);
            match LOCKS.compare_exchange(first, new, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return lock,
                Err(other) => first = other,
            }
        }
    }

    /// Whether the calling thread has it.
    pub fn is_own(&self) -> bool {
        self.state.load(Ordering::Relaxed) & !AWAITED == own_number()
    }

    /// Takes the lock for a call at this address of the stack. Waits for other threads.
    #[inline]
    pub fn hold(&'static self, place: usize) -> Held {
        let owner = own_number();
        match self.state.compare_exchange(FREE, owner, Ordering::Acquire, Ordering::Relaxed) {
            Ok(_) => self.taken(owner, place),
            Err(state) if state & !AWAITED == owner => self.taken_again(owner, place),
            Err(_) => self.wait(owner, place),
        }
    }

    #[inline]
    fn taken(&'static self, owner: u32, place: usize) -> Held {
        self.depth.store(0, Ordering::Relaxed);
        self.outermost.store(place, Ordering::Relaxed);
        Held { lock: self, owner, depth: 0 }
    }

    #[inline]
    fn taken_again(&'static self, owner: u32, place: usize) -> Held {
        if place >= self.outermost.load(Ordering::Relaxed) && self.is_left(place) {
            return self.taken(owner, place);
        }
        let depth = self.depth.load(Ordering::Relaxed) + 1;
        self.depth.store(depth, Ordering::Relaxed);
        Held { lock: self, owner, depth }
    }

    /// Whether the call that took the lock has been left without coming back, as `longjmp` does. Calls from within it are
    /// at lower addresses of the same stack.
    #[cold]
    fn is_left(&self, place: usize) -> bool {
        stack::contains(place) && stack::contains(self.outermost.load(Ordering::Relaxed))
    }

    #[inline]
    fn free(&self, owner: u32) {
        if self.state.compare_exchange(owner, FREE, Ordering::Release, Ordering::Relaxed).is_err() {
            self.free_and_wake(own_number()); // which is another one since the thread has forked
        }
    }

    #[cold]
    fn free_and_wake(&self, owner: u32) {
        if self.state.load(Ordering::Relaxed) & !AWAITED != owner {
            return; // it was given up for lost
        }
        if self.waiting_long.load(Ordering::SeqCst) > 0 {
            self.state.store(RESERVED, Ordering::SeqCst);
            self.wake(i32::MAX as usize); // some of them may not have it
        } else {
            self.state.store(FREE, Ordering::SeqCst);
            self.wake(1);
        }
    }

    #[cold]
    fn wait(&'static self, owner: u32, place: usize) -> Held {
        for _ in 0..LOOKS {
            std::hint::spin_loop();
            let is_free = self.state.load(Ordering::Relaxed) == FREE;
            if is_free
                && self.state.compare_exchange(FREE, owner, Ordering::Acquire, Ordering::Relaxed).is_ok()
            {
                return self.taken(owner, place);
            }
        }
        let begun = now();
        counts::add(Count::Waits, 1);
        let mut released = None;
        self.sleep(owner, begun, true, |waited| {
            if released.is_none() && waited >= LONG_WITH_PYTHON {
                released = Some(Released::new());
            }
        });
        counts::add(Count::WaitedNanoseconds, now() - begun);
        let held = self.taken(owner, place);
        // If Python ends meanwhile, the thread never comes back.
        if released.as_ref().is_some_and(Released::is_lost) {
            drop(held);
            drop(released);
            return self.hold(place);
        }
        drop(released);
        held
    }

    /// Sleeps until the thread has the lock, or has waited for as long as a fork may if that is all it wants.
    fn sleep(&self, owner: u32, begun: u64, is_patient: bool, mut waits: impl FnMut(u64)) -> bool {
        let (mut has_waited_long, mut looked) = (false, begun);
        let gives_up = |waited: u64| !is_patient && waited >= MOST_NANOSECONDS_OF_FORKS;
        let has_it = loop {
            let state = self.state.load(Ordering::SeqCst);
            let is_free = state == FREE || (state == RESERVED && has_waited_long);
            let wanted = if is_free { owner | AWAITED } else { state | AWAITED };
            if (is_free || (state != RESERVED && state & AWAITED == 0))
                && self.state.compare_exchange(state, wanted, Ordering::SeqCst, Ordering::SeqCst).is_err()
            {
                continue;
            }
            if is_free {
                break true;
            }
            let waited = now() - begun;
            if gives_up(waited) {
                break false;
            }
            if waited >= LONG && !has_waited_long {
                has_waited_long = true;
                self.waiting_long.fetch_add(1, Ordering::SeqCst);
                continue; // it may be reserved since a moment ago
            }
            waits(waited);
            if now() - looked >= LONGEST_SLEEP {
                looked = now();
                self.give_up_for_lost(state);
            }
            let expected = if state == RESERVED { RESERVED } else { state | AWAITED };
            sleep_while(&self.state, expected, waited.clamp(LONG, LONGEST_SLEEP));
        };
        if has_waited_long {
            self.waiting_long.fetch_sub(1, Ordering::SeqCst);
        }
        has_it
    }

    /// Frees the lock if the thread that holds it does not exist any more.
    fn give_up_for_lost(&self, state: u32) {
        let number = state & !AWAITED;
        if number == FREE || number == RESERVED {
            return;
        }
        // SAFETY: signal 0 only asks whether the thread exists.
        if unsafe { system_call(libc::SYS_tgkill, [std::process::id() as usize, number as usize, 0, 0]) } != 0
            && self.state.compare_exchange(state | AWAITED, FREE, Ordering::SeqCst, Ordering::SeqCst).is_ok()
        {
            self.depth.store(0, Ordering::Relaxed);
        }
    }

    fn wake(&self, count: usize) {
        let wake = (libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG) as usize;
        // SAFETY: the call only wakes threads that sleep at this address.
        unsafe { system_call(libc::SYS_futex, [self.state.as_ptr() as usize, wake, count, 0]) };
    }
}

/// Sleeps unless the value is another one by now.
fn sleep_while(value: &AtomicU32, expected: u32, nanoseconds: u64) {
    let duration = Duration::from_nanos(nanoseconds);
    let most = libc::timespec {
        tv_sec: duration.as_secs().cast_signed(),
        tv_nsec: i64::from(duration.subsec_nanos()),
    };
    let wait = (libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG) as usize;
    let words = [value.as_ptr() as usize, wait, expected as usize, (&raw const most) as usize];
    // SAFETY: both addresses are valid during the call.
    unsafe { system_call(libc::SYS_futex, words) };
}

/// A call of the system; `errno` is the program's.
unsafe fn system_call(number: libc::c_long, [first, second, third, fourth]: [usize; 4]) -> libc::c_long {
    // SAFETY: as the caller promises.
    unsafe {
        let error = *libc::__errno_location();
        let result = libc::syscall(number, first, second, third, fourth);
        *libc::__errno_location() = error;
        result
    }
}

/// The process is about to fork. The thread that forks takes all locks that others let go soon: then the child finds the
/// libraries as they are between two calls.
pub(crate) fn before_fork() {
    let owner = own_number();
    for lock in all() {
        let free = lock.state.compare_exchange(FREE, owner, Ordering::Acquire, Ordering::Relaxed);
        let is_own = free.is_err_and(|state| state & !AWAITED == owner);
        if !is_own && (free.is_ok() || lock.sleep(owner, now(), false, |_| ())) {
            lock.is_forking.store(1, Ordering::Relaxed);
        }
    }
}

/// It has forked, and this is the parent.
pub(crate) fn after_fork() {
    let owner = own_number();
    for lock in all() {
        let is_own = lock.state.load(Ordering::Relaxed) & !AWAITED == owner;
        if is_own && lock.is_forking.swap(0, Ordering::Relaxed) == 1 {
            lock.free(owner);
        }
    }
}

/// It has forked, and this is the child: it has no other threads, and its own has another number.
pub(crate) fn forked() {
    let before = NUMBER.take();
    let owner = own_number();
    for lock in all() {
        let is_own = before != 0 && lock.state.load(Ordering::Relaxed) & !AWAITED == before;
        let is_held = is_own && lock.is_forking.load(Ordering::Relaxed) == 0;
        if !is_held {
            lock.depth.store(0, Ordering::Relaxed);
        }
        lock.is_forking.store(0, Ordering::Relaxed);
        lock.waiting_long.store(0, Ordering::Relaxed);
        lock.state.store(if is_held { owner } else { FREE }, Ordering::Release);
    }
}
