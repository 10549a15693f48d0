//! A host: how many requests it gets at a time, and what it has been asked so far.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use hyperslab_core::FIRST_IN_FLIGHT;
use tokio::sync::{Semaphore, SemaphorePermit};
use url::Url;

use super::login::Logins;

/// The maximum number of requests in flight, unless the user sets one.
pub(super) const MOST_ALLOWED: usize = 64;
/// More requests in flight are worth it while they bring this many times more bytes per second.
const WORTHWHILE: f64 = 1.1;

/// Refusals within this time count as one: they answer requests that were in flight together.
const BURST: Duration = Duration::from_secs(1);

/// What hosts were asked, and what they sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RemoteStatistics {
    /// Requests sent, including retries.
    pub request_count: u64,
    /// The retries among them.
    pub retry_count: u64,
    /// Answers that led elsewhere, where the same was asked for again. Each such hop counts as a request of its host.
    pub redirect_count: u64,
    /// How often reading metadata waited for an answer. The requests of one round go side by side.
    pub round_count: u64,
    /// Bytes of files that came, including those of failed requests.
    pub fetched_nbytes: u64,
    /// Bytes that were in the cache and not asked for again.
    pub reused_nbytes: u64,
}

/// One host.
#[derive(Debug)]
pub(super) struct Host {
    request_count: AtomicU64,
    retry_count: AtomicU64,
    redirect_count: AtomicU64,
    round_count: AtomicU64,
    fetched_nbytes: AtomicU64,
    reused_nbytes: AtomicU64,
    pub(super) logins: Logins,
    permits: Semaphore,
    pace: Mutex<Pace>,
}

/// How many requests may be in flight. The limit grows while more requests bring more bytes per second, and halves when
/// the host says that it is too much.
#[derive(Debug)]
struct Pace {
    allowed: usize,
    most: usize,
    /// Permits to take back when they return.
    owed: usize,
    in_flight: usize,
    window: Window,
    best: f64,
    /// When the host last said that it was too much. From then on the limit grows by one at a time.
    slowed: Option<Instant>,
}

/// As many requests as are allowed at a time.
#[derive(Debug)]
struct Window {
    started: Instant,
    request_count: usize,
    nbytes: u64,
}

impl Window {
    fn new() -> Self {
        Self { started: Instant::now(), request_count: 0, nbytes: 0 }
    }
}

/// The right to make one request. Give it back with `finish`.
pub(super) struct Turn<'h> {
    host: &'h Host,
    permit: Option<SemaphorePermit<'h>>,
}

impl Default for Host {
    fn default() -> Self {
        let pace = Pace {
            allowed: FIRST_IN_FLIGHT,
            most: MOST_ALLOWED,
            owed: 0,
            in_flight: 0,
            window: Window::new(),
            best: 0.0,
            slowed: None,
        };
        Self {
            request_count: AtomicU64::new(0),
            retry_count: AtomicU64::new(0),
            redirect_count: AtomicU64::new(0),
            round_count: AtomicU64::new(0),
            fetched_nbytes: AtomicU64::new(0),
            reused_nbytes: AtomicU64::new(0),
            logins: Logins::default(),
            permits: Semaphore::new(FIRST_IN_FLIGHT),
            pace: Mutex::new(pace),
        }
    }
}

impl Host {
    pub fn requested(&self) {
        self.request_count.fetch_add(1, Ordering::Relaxed);
    }

    /// Whether it has been asked anything yet.
    pub fn was_asked(&self) -> bool {
        self.request_count.load(Ordering::Relaxed) > 0
    }

    pub fn retried(&self) {
        self.retry_count.fetch_add(1, Ordering::Relaxed);
    }

    pub fn redirected(&self) {
        self.redirect_count.fetch_add(1, Ordering::Relaxed);
    }

    pub fn waited(&self) {
        self.round_count.fetch_add(1, Ordering::Relaxed);
    }

    pub fn received(&self, nbytes: usize) {
        self.fetched_nbytes.fetch_add(nbytes as u64, Ordering::Relaxed);
    }

    pub fn reused(&self, nbytes: usize) {
        self.reused_nbytes.fetch_add(nbytes as u64, Ordering::Relaxed);
    }

    pub fn statistics(&self) -> RemoteStatistics {
        RemoteStatistics {
            request_count: self.request_count.load(Ordering::Relaxed),
            retry_count: self.retry_count.load(Ordering::Relaxed),
            redirect_count: self.redirect_count.load(Ordering::Relaxed),
            round_count: self.round_count.load(Ordering::Relaxed),
            fetched_nbytes: self.fetched_nbytes.load(Ordering::Relaxed),
            reused_nbytes: self.reused_nbytes.load(Ordering::Relaxed),
        }
    }

    /// Limits the requests in flight to this many from now on.
    pub fn allow_at_most(&self, most: usize) {
        let mut pace = self.pace();
        pace.most = most.max(1);
        let allowed = pace.allowed.min(pace.most);
        self.change(&mut pace, allowed);
    }

    /// Waits until one more request may be sent.
    pub async fn turn(&self) -> Turn<'_> {
        let permit = self.permits.acquire().await.ok(); // it is never closed
        let mut pace = self.pace();
        if pace.in_flight == 0 {
            pace.window = Window::new(); // time without requests says nothing about the host
        }
        pace.in_flight += 1;
        Turn { host: self, permit }
    }

    /// The host said that it was asked too much.
    pub fn slow_down(&self) {
        let mut pace = self.pace();
        if pace.slowed.is_some_and(|last| last.elapsed() < BURST) {
            return;
        }
        pace.slowed = Some(Instant::now());
        let allowed = pace.allowed.div_ceil(2);
        self.change(&mut pace, allowed);
    }

    fn pace(&self) -> MutexGuard<'_, Pace> {
        self.pace.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, pace: &mut Pace, allowed: usize) {
        if allowed > pace.allowed {
            let more = allowed - pace.allowed;
            let forgiven = more.min(pace.owed);
            pace.owed -= forgiven;
            self.permits.add_permits(more - forgiven);
        } else {
            let fewer = pace.allowed - allowed;
            pace.owed += fewer - self.permits.forget_permits(fewer);
        }
        pace.allowed = allowed;
        pace.window = Window::new();
    }
}

impl Turn<'_> {
    /// Counts bytes that came.
    #[allow(clippy::cast_precision_loss)] // an estimate
    pub fn came(&self, nbytes: usize) {
        let mut pace = self.host.pace();
        pace.window.request_count += 1;
        pace.window.nbytes += nbytes as u64;
        if pace.window.request_count < pace.allowed {
            return;
        }
        let goodput = pace.window.nbytes as f64 / pace.window.started.elapsed().as_secs_f64().max(1e-6);
        let more = match pace.slowed {
            Some(_) => 1,
            None if goodput > pace.best * WORTHWHILE => pace.allowed / 2 + 1,
            None => 0,
        };
        pace.best = pace.best.max(goodput);
        let allowed = (pace.allowed + more).min(pace.most);
        self.host.change(&mut pace, allowed);
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let mut pace = self.host.pace();
        pace.in_flight -= 1;
        if pace.owed > 0
            && let Some(permit) = self.permit.take()
        {
            permit.forget();
            pace.owed -= 1;
        }
    }
}

/// A server's name in statistics.
pub(super) fn host_name(server: &Url) -> String {
    let name = server.host_str().unwrap_or_default();
    match (server.scheme(), server.port()) {
        ("http" | "https", Some(port)) => format!("{name}:{port}"),
        ("http" | "https", None) => name.to_owned(),
        (scheme, _) => format!("{scheme}://{name}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_that_is_asked_too_much_is_asked_half_as_much() {
        let host = Host::default();
        assert_eq!(host.permits.available_permits(), FIRST_IN_FLIGHT);
        host.slow_down();
        assert_eq!(host.permits.available_permits(), FIRST_IN_FLIGHT / 2);
        host.slow_down(); // a refusal of the same burst
        assert_eq!(host.permits.available_permits(), FIRST_IN_FLIGHT / 2);
    }

    #[test]
    fn permits_in_use_are_taken_back_when_they_return() {
        let host = Host::default();
        let runtime = tokio::runtime::Builder::new_current_thread().build();
        let turns = runtime.map(|runtime| {
            runtime.block_on(async {
                let mut turns = Vec::new();
                for _ in 0..FIRST_IN_FLIGHT {
                    turns.push(host.turn().await);
                }
                turns
            })
        });
        host.allow_at_most(4);
        drop(turns);
        assert_eq!(host.permits.available_permits(), 4);
    }

    #[test]
    fn more_goodput_allows_more() {
        let host = Host::default();
        let turn = Turn { host: &host, permit: None };
        host.pace().in_flight = 1;
        for _ in 0..FIRST_IN_FLIGHT {
            turn.came(1 << 20);
        }
        assert!(host.permits.available_permits() > FIRST_IN_FLIGHT);
        drop(turn);
    }
}
