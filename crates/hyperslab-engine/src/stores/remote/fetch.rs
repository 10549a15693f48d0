//! Fetches one range of an object: asks until it has come, or until it is clear that it will not.

use std::time::{Duration, Instant};

use futures_util::TryStreamExt;
use futures_util::future::{join, join_all};
use http::StatusCode;
use object_store::{Error, GetOptions, GetRange};
use rand::RngExt as _;

use super::host::Host;
use super::identity::Identity;
use super::location::Location;
use super::options::RemoteOptions;
use super::process::Process;
use super::refusal::{NoCredentials, NotAllowed, Refusal};
use crate::read_error::ReadError;

/// The first wait before a retry, and the longest. Each wait is twice the one before, then drawn from its upper half.
const FIRST_WAIT: Duration = Duration::from_millis(100);
const LONGEST_WAIT: Duration = Duration::from_secs(10);
/// How many connections the first request to a host opens.
const FIRST_CONNECTIONS: usize = 8;
/// A request that brings fewer bytes per second is given up, however steadily they come.
const LEAST_NBYTES_PER_SECOND: u64 = 16 << 10;

/// Why an attempt brought no bytes.
enum Failure {
    /// A retry would fail in the same way.
    Lasting(ReadError),
    /// A retry may succeed.
    Passing { problem: String, wait: Option<Duration>, is_overload: bool },
}

/// Which bytes of an object to ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    /// The bytes from this offset on.
    From(u64),
    /// The last bytes.
    Last,
}

impl Wanted {
    /// Where they start, for messages.
    fn offset(self) -> u64 {
        match self {
            Self::From(offset) => offset,
            Self::Last => 0,
        }
    }

    /// `nbytes` of them.
    fn range(self, nbytes: u64) -> GetRange {
        match self {
            Self::From(offset) => GetRange::Bounded(offset..offset.saturating_add(nbytes)),
            Self::Last => GetRange::Suffix(nbytes),
        }
    }
}

/// An object, what it was when it was opened, and how to ask for it.
pub(super) struct Fetcher<'a> {
    pub location: &'a Location,
    pub options: &'a RemoteOptions,
    /// `None` while it is being opened.
    pub identity: Option<&'a Identity>,
    /// The references that name it, unless it was opened directly.
    pub references: Option<&'a str>,
}

impl Fetcher<'_> {
    /// Fills `out` with the wanted bytes. If the object is shorter, or if it is another one, fills only the first part.
    /// Returns what the object is.
    pub async fn fetch(&self, wanted: Wanted, out: &mut [u8]) -> Result<Identity, ReadError> {
        self.persist(wanted.offset(), async |host: &Host| {
            let (identity, nbytes) = self.attempt(host, wanted, out).await?;
            Ok((identity, nbytes))
        })
        .await
    }

    /// The first bytes of an object that is being opened. If this process has not asked the host yet, the bytes are
    /// fetched in several parts: their connections are made together, in the time of one, and the next requests find
    /// them open. With a login that the host has not accepted yet, the first part goes ahead of the others. The first
    /// part tells what the object is. If another part is missing, `out` ends there.
    pub async fn fetch_head(&self, out: &mut Vec<u8>) -> Result<Identity, ReadError> {
        let host = Process::current().host(&self.location.host);
        let parts = self.options.most_in_flight.unwrap_or(FIRST_CONNECTIONS).clamp(1, FIRST_CONNECTIONS);
        let part_nbytes = if host.was_asked() { out.len() } else { out.len().div_ceil(parts) };
        let (first, rest) = out.split_at_mut(part_nbytes);
        let rest =
            rest.chunks_mut(part_nbytes.max(1)).zip((part_nbytes as u64..).step_by(part_nbytes.max(1)));
        let rest = join_all(rest.map(async |(part, offset)| {
            let _turn = host.turn().await;
            self.attempt(&host, Wanted::From(offset), part).await.ok()
        }));
        let login = self.location.login.as_ref();
        let (identity, rest) = if login.is_some_and(|login| !host.logins.accept(login)) {
            (self.fetch(Wanted::From(0), first).await?, rest.await) // a wrong password is sent once
        } else {
            let (identity, rest) = join(self.fetch(Wanted::From(0), first), rest).await;
            (identity?, rest)
        };
        let come = rest.into_iter().map_while(|part| part.filter(|(found, _)| identity.agrees(found)));
        let nbytes = part_nbytes + come.map(|(_, nbytes)| nbytes).sum::<usize>();
        out.truncate(nbytes.min(usize::try_from(identity.nbytes).unwrap_or(usize::MAX)));
        Ok(identity)
    }

    /// The names of the folders in the one at the object's path.
    pub async fn folders(&self) -> Result<Vec<String>, ReadError> {
        self.persist(0, async |_: &Host| {
            let path = &self.location.path;
            let asked =
                self.location.store.list_with_delimiter(Some(path).filter(|path| !path.as_ref().is_empty()));
            let listed = tokio::time::timeout(self.options.patience, asked).await;
            let late = |_| {
                let problem = "the list did not come in time".to_owned();
                Failure::Passing { problem, wait: None, is_overload: false }
            };
            let listed = listed.map_err(late)?.map_err(|error| self.classified(0, &error))?;
            let names =
                listed.common_prefixes.iter().filter_map(|prefix| prefix.filename().map(str::to_owned));
            Ok((names.collect(), 0))
        })
        .await
    }

    /// Makes attempts, one after another, until one succeeds or none will. Each returns its bytes too.
    async fn persist<T>(
        &self,
        offset: u64,
        mut attempt: impl AsyncFnMut(&Host) -> Result<(T, usize), Failure>,
    ) -> Result<T, ReadError> {
        let host = Process::current().host(&self.location.host);
        let begun = Instant::now();
        let mut attempts = 1;
        loop {
            let turn = host.turn().await;
            let (problem, asked, wait) = match attempt(&host).await {
                Ok((done, nbytes)) => {
                    turn.came(nbytes);
                    return Ok(done);
                }
                Err(Failure::Lasting(error)) => return Err(error),
                Err(Failure::Passing { problem, wait, is_overload }) => {
                    if is_overload {
                        host.slow_down();
                    }
                    (problem, wait, wait.unwrap_or_default().max(backoff(attempts)))
                }
            };
            drop(turn);
            let is_late = begun.elapsed().saturating_add(wait) >= self.options.patience;
            if attempts >= self.options.most_attempts || is_late {
                let asked = asked
                    .filter(|_| is_late)
                    .map(|asked| format!("; it asks us to wait {} s", asked.as_secs()));
                let asked = asked.unwrap_or_default();
                let problem = format!("{problem}{asked}; given up after {attempts} attempts");
                return Err(self.failed(offset, problem, "try again later, or allow more attempts or time"));
            }
            tokio::time::sleep(wait).await;
            host.retried();
            attempts += 1;
        }
    }

    async fn attempt(
        &self,
        host: &Host,
        wanted: Wanted,
        out: &mut [u8],
    ) -> Result<(Identity, usize), Failure> {
        let fair = Duration::from_secs(out.len() as u64 / LEAST_NBYTES_PER_SECOND);
        let limit = (self.options.connect_timeout + self.options.timeout + fair).min(self.options.patience);
        let done = tokio::time::timeout(limit, self.receive(host, wanted, out)).await;
        done.unwrap_or_else(|_| {
            let problem = format!("fewer than {LEAST_NBYTES_PER_SECOND} bytes a second came");
            Err(Failure::Passing { problem, wait: None, is_overload: false })
        })
    }

    async fn receive(
        &self,
        host: &Host,
        wanted: Wanted,
        out: &mut [u8],
    ) -> Result<(Identity, usize), Failure> {
        let offset = wanted.offset();
        let options = GetOptions {
            range: Some(wanted.range(out.len() as u64)),
            if_match: self.identity.and_then(Identity::strong_etag),
            ..GetOptions::default()
        };
        let answer = self.location.store.get_opts(&self.location.path, options).await;
        let answer = answer.map_err(|error| self.classified(offset, &error))?;
        let identity = Identity::of(&answer.meta);
        if let Some(opened) = self.identity {
            self.check(opened, &identity).map_err(Failure::Lasting)?;
        }
        let due = usize::try_from(answer.range.end - answer.range.start).unwrap_or(usize::MAX);
        let mut stream = answer.into_stream();
        let mut filled = 0;
        loop {
            let part = stream.try_next().await.map_err(|error| self.classified(offset, &error))?;
            let Some(part) = part else { break };
            host.received(part.len());
            let room = out.get_mut(filled..filled + part.len());
            let Some(room) = room else { return Err(wrong_length(filled + part.len(), due)) };
            room.copy_from_slice(&part);
            filled += part.len();
        }
        let expected =
            out.len().min(usize::try_from(identity.nbytes.saturating_sub(offset)).unwrap_or(usize::MAX));
        if filled == expected { Ok((identity, filled)) } else { Err(wrong_length(filled, expected)) }
    }

    fn classified(&self, offset: u64, error: &Error) -> Failure {
        if let Some(refusal) = cause::<Refusal>(error) {
            return self.refused(offset, refusal);
        }
        if let Some(refused) = cause::<NotAllowed>(error) {
            let said = format!("{}: {refused}", self.location.name);
            return Failure::Lasting(ReadError::NotAllowed { said });
        }
        if cause::<NoCredentials>(error).is_some() {
            return Failure::Lasting(self.failed(offset, NoCredentials.to_string(), CREDENTIALS));
        }
        let status = match error {
            Error::NotFound { .. } => StatusCode::NOT_FOUND,
            Error::Precondition { .. } => StatusCode::PRECONDITION_FAILED,
            Error::PermissionDenied { .. } => StatusCode::FORBIDDEN,
            Error::Unauthenticated { .. } => StatusCode::UNAUTHORIZED,
            Error::NotSupported { .. } | Error::NotImplemented { .. } => StatusCode::NOT_IMPLEMENTED,
            _ => return Failure::Passing { problem: root_cause(error), wait: None, is_overload: false },
        };
        self.refused(offset, &Refusal { status, code: None, retry_after: None, problem: None })
    }

    fn refused(&self, offset: u64, refusal: &Refusal) -> Failure {
        let remedy = match refusal.status {
            StatusCode::PRECONDITION_FAILED => return Failure::Lasting(self.changed()),
            StatusCode::RANGE_NOT_SATISFIABLE if self.identity.is_some() => {
                return Failure::Lasting(self.changed());
            }
            StatusCode::NOT_FOUND | StatusCode::GONE => {
                return Failure::Lasting(ReadError::NoSuchObject { url: self.location.name.clone() });
            }
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN | StatusCode::BAD_REQUEST => CREDENTIALS,
            StatusCode::OK => "its server ignores byte ranges: download the file, and open the copy",
            StatusCode::PARTIAL_CONTENT | StatusCode::NOT_IMPLEMENTED => {
                "its server cannot send parts of files: download the file, and open the copy"
            }
            StatusCode::RANGE_NOT_SATISFIABLE if self.references.is_some() => {
                "the references point past its end: they are stale, index it again"
            }
            StatusCode::RANGE_NOT_SATISFIABLE => "the file is empty",
            status if status.is_redirection() => {
                "open the URL that it redirects to, or give the right region"
            }
            status if is_passing(status) => {
                let is_overload =
                    matches!(status, StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE);
                let (problem, wait) = (refusal.to_string(), refusal.retry_after);
                return Failure::Passing { problem, wait, is_overload };
            }
            _ => "the server does not accept the request",
        };
        Failure::Lasting(self.failed(offset, refusal.to_string(), remedy))
    }

    /// Fails unless an answer is about the object that was opened.
    pub fn check(&self, opened: &Identity, answer: &Identity) -> Result<(), ReadError> {
        if opened.agrees(answer) {
            return Ok(());
        }
        if self.references.is_none() && opened.is_withheld_by(answer) {
            return Err(ReadError::Unidentified { file: self.location.name.clone() });
        }
        Err(self.changed())
    }

    fn changed(&self) -> ReadError {
        let file = self.location.name.clone();
        match self.references {
            Some(references) => ReadError::StaleReferences { file, references: references.to_owned() },
            None => ReadError::FileChanged { file },
        }
    }

    fn failed(&self, offset: u64, problem: String, remedy: &'static str) -> ReadError {
        ReadError::Remote { url: self.location.name.clone(), offset, problem, remedy }
    }
}

const CREDENTIALS: &str = "check the credentials: storage_options=..., hyperslab.credentials(URL, ...), or the \
                           environment of this process";

/// Whether a retry of the same request may be answered.
fn is_passing(status: StatusCode) -> bool {
    let is_early =
        matches!(status, StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_EARLY | StatusCode::TOO_MANY_REQUESTS);
    is_early || status.is_server_error()
}

fn wrong_length(nbytes: usize, due: usize) -> Failure {
    let problem = format!("{nbytes} bytes came, but {due} were expected");
    Failure::Passing { problem, wait: None, is_overload: false }
}

/// Twice as long as before the last attempt, drawn at random so that many readers do not return together.
fn backoff(attempt: u32) -> Duration {
    let longest = FIRST_WAIT.saturating_mul(1 << attempt.min(16).saturating_sub(1)).min(LONGEST_WAIT);
    longest.mul_f64(rand::rng().random_range(0.5..=1.0))
}

/// The first error of a kind in the chain of causes.
fn cause<E: std::error::Error + 'static>(error: &Error) -> Option<&E> {
    let mut next: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(error) = next {
        if let Some(found) = error.downcast_ref() {
            return Some(found);
        }
        next = error.source();
    }
    None
}

/// The last of the causes. Those before it repeat URLs with their queries.
fn root_cause(error: &Error) -> String {
    let mut last: &(dyn std::error::Error + 'static) = error;
    while let Some(next) = last.source() {
        last = next;
    }
    last.to_string()
}
