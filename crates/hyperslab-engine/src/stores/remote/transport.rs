//! HTTP as `object_store` wants it, with every request counted, and every answer to a range judged before anything
//! believes it.

use std::error::Error;
use std::fmt;
use std::time::Duration;

use http::header::{AUTHORIZATION, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_RANGE, RANGE, RETRY_AFTER};
use http::{HeaderMap, HeaderValue, StatusCode};
use object_store::ClientOptions;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse, HttpService,
};

use super::process::{Process, Timeouts};

/// More of a server's explanation is not read.
const MOST_EXPLANATION_NBYTES: usize = 16 << 10;
/// How long to wait for credentials: a machine that gives any is near.
const CREDENTIALS_TIMEOUT: Duration = Duration::from_secs(5);

/// An answer to a range that is not that range.
#[derive(Debug)]
pub(super) struct Refusal {
    pub status: StatusCode,
    /// The server's own word for it, as S3 and Azure give one.
    pub code: Option<String>,
    /// How long the server wants us to wait.
    pub retry_after: Option<Duration>,
    /// What is wrong with an answer that is no refusal.
    pub problem: Option<&'static str>,
}

impl fmt::Display for Refusal {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "HTTP {}", self.status)?;
        if let Some(code) = &self.code {
            write!(out, " ({code})")?;
        }
        self.problem.map_or(Ok(()), |problem| write!(out, ": {problem}"))
    }
}

impl Error for Refusal {}

/// A request for credentials that nobody granted. Nothing of the answer is kept: it may be secret.
#[derive(Debug)]
pub(super) struct NoCredentials;

impl fmt::Display for NoCredentials {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("no credentials that are accepted were given, or found on this machine")
    }
}

impl Error for NoCredentials {}

/// The requests of one store.
#[derive(Clone)]
pub(super) struct Transport {
    /// Whom they count for.
    pub host: String,
    /// Sent with every request for a range.
    pub headers: HeaderMap,
    pub timeouts: Timeouts,
}

impl fmt::Debug for Transport {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Transport").field("host", &self.host).finish_non_exhaustive() // headers may be secret
    }
}

impl HttpConnector for Transport {
    fn connect(&self, _: &ClientOptions) -> object_store::Result<HttpClient> {
        Ok(HttpClient::new(self.clone()))
    }
}

#[async_trait::async_trait]
impl HttpService for Transport {
    async fn call(&self, mut request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let process = Process::current();
        let client =
            process.client(self.timeouts).map_err(|error| HttpError::new(HttpErrorKind::Unknown, error))?;
        process.host(&self.host).requested();
        if is_list(&request) {
            let answer = client.call(request).await?;
            return if answer.status().is_success() { Ok(answer) } else { Err(refused(answer).await) };
        }
        if !request.headers().contains_key(RANGE) {
            let asked = tokio::time::timeout(CREDENTIALS_TIMEOUT, client.call(request)).await;
            let given = asked.ok().and_then(Result::ok).filter(|answer| answer.status().is_success());
            return given.ok_or_else(|| HttpError::new(HttpErrorKind::Unknown, NoCredentials));
        }
        for (name, value) in &self.headers {
            request.headers_mut().insert(name, value.clone());
        }
        if let Some(authorization) = request.headers_mut().get_mut(AUTHORIZATION) {
            authorization.set_sensitive(true);
        }
        judged(client.call(request).await?).await
    }
}

/// Whether it asks for a list of objects: of S3's and Google's protocol, or of Azure's.
fn is_list(request: &HttpRequest) -> bool {
    let query = request.uri().query().unwrap_or_default();
    query.split('&').any(|one| matches!(one, "list-type=2" | "comp=list"))
}

/// The part of a file that was asked for; everything else is a `Refusal`.
async fn judged(mut response: HttpResponse) -> Result<HttpResponse, HttpError> {
    if response.status() != StatusCode::PARTIAL_CONTENT {
        return Err(refused(response).await);
    }
    let headers = response.headers_mut();
    let is_encoded = headers.get(CONTENT_ENCODING).is_some_and(|encoding| encoding != "identity");
    if is_encoded {
        return Err(misanswered("the server compresses what it sends, so its bytes are not the file's"));
    }
    let Some(nbytes) = headers.get(CONTENT_RANGE).and_then(range_nbytes) else {
        return Err(misanswered("the server does not say which bytes it sends, or how long the file is"));
    };
    if !headers.contains_key(CONTENT_LENGTH) {
        headers.insert(CONTENT_LENGTH, HeaderValue::from(nbytes));
    }
    Ok(response)
}

/// Bytes in `bytes FIRST-LAST/LENGTH` (RFC 9110, 14.4); the length must be there.
fn range_nbytes(value: &HeaderValue) -> Option<u64> {
    let (range, length) = value.to_str().ok()?.trim().strip_prefix("bytes ")?.split_once('/')?;
    let (first, last) = range.split_once('-')?;
    length.parse::<u64>().ok()?;
    last.parse::<u64>().ok()?.checked_sub(first.parse().ok()?)?.checked_add(1)
}

fn misanswered(problem: &'static str) -> HttpError {
    let (status, code, retry_after) = (StatusCode::PARTIAL_CONTENT, None, None);
    HttpError::new(HttpErrorKind::Unknown, Refusal { status, code, retry_after, problem: Some(problem) })
}

async fn refused(response: HttpResponse) -> HttpError {
    let status = response.status();
    let retry_after = response.headers().get(RETRY_AFTER).and_then(seconds);
    // A whole file, where a part was asked for, is not read: it may be large.
    let code = if status.is_success() { None } else { explained(response).await };
    HttpError::new(HttpErrorKind::Unknown, Refusal { status, code, retry_after, problem: None })
}

fn seconds(value: &HeaderValue) -> Option<Duration> {
    value.to_str().ok()?.trim().parse().ok().map(Duration::from_secs)
}

/// The word in an XML answer's `<Code>`. Nothing else of it is kept: servers repeat parts of credentials.
async fn explained(response: HttpResponse) -> Option<String> {
    let length = response.headers().get(CONTENT_LENGTH)?.to_str().ok()?.parse::<usize>().ok()?;
    if length > MOST_EXPLANATION_NBYTES {
        return None;
    }
    let text = String::from_utf8(response.into_body().bytes().await.ok()?.to_vec()).ok()?;
    let (_, rest) = text.split_once("<Code>")?;
    let (code, _) = rest.split_once("</Code>")?;
    let is_word =
        !code.is_empty() && code.len() <= 64 && code.bytes().all(|byte| byte.is_ascii_alphanumeric());
    is_word.then(|| code.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_ranges() {
        let nbytes = |text| range_nbytes(&HeaderValue::from_static(text));
        assert_eq!(nbytes("bytes 10-19/100"), Some(10));
        for wrong in ["bytes 10-19/*", "bytes 19-10/100", "10-19/100", "bytes */100", "bytes a-b/c"] {
            assert_eq!(nbytes(wrong), None);
        }
    }
}
