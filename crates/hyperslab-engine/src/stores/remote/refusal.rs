//! Answers that do not bring what was asked for.

use std::borrow::Cow;
use std::error::Error;
use std::fmt;
use std::time::Duration;

use http::StatusCode;

/// An answer to a range request that does not bring that range.
#[derive(Clone, Debug)]
pub(super) struct Refusal {
    pub status: StatusCode,
    /// The server's own code for it, as S3 and Azure give one.
    pub code: Option<String>,
    /// How long the server asks us to wait.
    pub retry_after: Option<Duration>,
    /// What is wrong with an answer that is not a refusal.
    pub problem: Option<Cow<'static, str>>,
}

impl fmt::Display for Refusal {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "HTTP {}", self.status)?;
        if let Some(code) = &self.code {
            write!(out, " ({code})")?;
        }
        self.problem.as_ref().map_or(Ok(()), |problem| write!(out, ": {problem}"))
    }
}

impl Error for Refusal {}

/// A refused request for credentials. Keeps nothing of the answer, which may be secret.
#[derive(Debug)]
pub(super) struct NoCredentials;

impl fmt::Display for NoCredentials {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("no accepted credentials were given, or found on this machine")
    }
}

impl Error for NoCredentials {}

/// A redirect to a server that the user does not allow.
#[derive(Debug)]
pub(super) struct NotAllowed {
    /// How its URLs begin.
    pub server: String,
}

impl fmt::Display for NotAllowed {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            out,
            "its server redirects to {0}, which is not allowed, so it is not followed. If you trust that server, add \
             {0:?} to allowed=[...] (docs/security.md)",
            self.server
        )
    }
}

impl Error for NotAllowed {}
