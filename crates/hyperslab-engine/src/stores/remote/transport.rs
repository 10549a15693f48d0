//! HTTP for `object_store`. Counts every request, and checks every answer to a range before anything uses it.

use std::borrow::Cow;
use std::error::Error;
use std::fmt;
use std::time::{Duration, SystemTime};

use chrono::{DateTime, NaiveDateTime, Utc};
use http::header::{
    AUTHORIZATION, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_RANGE, DATE, RANGE, RETRY_AFTER,
};
use http::{HeaderMap, HeaderValue, StatusCode};
use object_store::ClientOptions;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse, HttpService,
};

use super::host::{Host, host_name};
use super::process::{Process, Timeouts, Way};
use super::redirect::{Follows, NotFollowed, Route};
use super::refusal::{NoCredentials, NotAllowed, Refusal};

/// The most that we read of a server's explanation.
const MOST_EXPLANATION_NBYTES: usize = 16 << 10;
/// How long to wait for credentials. A machine that gives any is near.
const CREDENTIALS_TIMEOUT: Duration = Duration::from_secs(5);

/// The requests of one store.
#[derive(Clone)]
pub(super) struct Transport {
    /// The host that they count for.
    pub host: String,
    /// Sent with every range request.
    pub headers: HeaderMap,
    pub timeouts: Timeouts,
    /// Where redirects are followed to; nowhere if requests are signed.
    pub follows: Option<Follows>,
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
        let host = process.host(&self.host);
        if is_list(&request) {
            host.requested();
            let answer = self.client(process, Way::Usual)?.call(request).await?;
            return if answer.status().is_success() { Ok(answer) } else { Err(refused(answer).await) };
        }
        if !request.headers().contains_key(RANGE) {
            host.requested();
            return self.credentials(process, request).await;
        }
        for (name, value) in &self.headers {
            request.headers_mut().insert(name, value.clone());
        }
        if let Some(authorization) = request.headers_mut().get_mut(AUTHORIZATION) {
            authorization.set_sensitive(true);
        }
        match self.headers.get(AUTHORIZATION) {
            Some(login) => self.ask_with(login, process, &host, request).await,
            None => self.ask(process, &host, request).await,
        }
    }
}

impl Transport {
    fn client(&self, process: &Process, way: Way) -> Result<reqwest::Client, HttpError> {
        process.client(self.timeouts, way).map_err(|error| HttpError::new(HttpErrorKind::Unknown, error))
    }

    /// Asks for credentials. Without encryption, they may only come from this machine's own service.
    async fn credentials(&self, process: &Process, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let way = if request.uri().scheme_str() == Some("https") { Way::Usual } else { Way::Straight };
        let client = self.client(process, way)?;
        let asked = tokio::time::timeout(CREDENTIALS_TIMEOUT, client.call(request)).await;
        let given = asked.ok().and_then(Result::ok).filter(|answer| answer.status().is_success());
        given.ok_or_else(|| HttpError::new(HttpErrorKind::Unknown, NoCredentials))
    }

    /// Asks for a range with a login. A login that the host has not judged yet is sent once; other requests wait for it
    /// and share its refusal.
    async fn ask_with(
        &self,
        login: &HeaderValue,
        process: &Process,
        host: &Host,
        request: HttpRequest,
    ) -> Result<HttpResponse, HttpError> {
        let trial = host.logins.trial(login);
        let (mut request, mut answer) = (Some(request), None);
        let judged = trial
            .get_or_try_init(async || {
                let Some(request) = request.take() else { return Err(()) };
                let came = self.ask(process, host, request).await;
                let judgement = judgement(&came);
                answer = Some(came);
                judgement
            })
            .await;
        match (answer, judged, request) {
            (Some(answer), Ok(Some(_)), _) => {
                host.logins.forget(login);
                answer
            }
            (Some(answer), ..) => answer,
            (None, Ok(Some(refusal)), _) => Err(HttpError::new(HttpErrorKind::Unknown, refusal.clone())),
            (None, _, Some(request)) => self.ask(process, host, request).await,
            (None, _, None) => Err(HttpError::new(HttpErrorKind::Unknown, NoCredentials)), // it was taken and not sent
        }
    }

    /// Asks for a range, and follows redirects.
    async fn ask(
        &self,
        process: &Process,
        host: &Host,
        request: HttpRequest,
    ) -> Result<HttpResponse, HttpError> {
        let client = self.client(process, Way::Usual)?;
        let mut route = self.follows.as_ref().and_then(|follows| Route::of(&request, follows));
        host.requested();
        let mut answer = client.call(request).await?;
        let mut asked = self.host.clone();
        while let Some(route) = route.as_mut() {
            let next = match route.next(&answer) {
                Ok(None) => break,
                Ok(Some(next)) => next,
                Err(NotFollowed::Never(problem)) => {
                    return Err(refusal(answer.status(), Cow::Owned(problem)));
                }
                Err(NotFollowed::NotAllowed(server)) => {
                    return Err(HttpError::new(HttpErrorKind::Unknown, NotAllowed { server }));
                }
            };
            let (request, url) = next;
            process.host(&asked).redirected();
            asked = host_name(&url);
            process.host(&asked).requested();
            answer = client.call(request).await?;
        }
        judged(answer).await
    }
}

/// What an answer tells of the login that came with the request: how it was refused, or `None` if it was not.
///
/// Fails if the answer tells nothing.
fn judgement(answer: &Result<HttpResponse, HttpError>) -> Result<Option<Refusal>, ()> {
    let Err(error) = answer else { return Ok(None) };
    let refusal = error.source().and_then(|cause| cause.downcast_ref::<Refusal>()).ok_or(())?;
    match refusal.status {
        StatusCode::UNAUTHORIZED => Ok(Some(refusal.clone())), // 403 may be about one file
        status if status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS => Err(()),
        _ => Ok(None),
    }
}

/// Whether it asks for a list of objects, by the protocol of S3 and Google, or of Azure.
fn is_list(request: &HttpRequest) -> bool {
    let query = request.uri().query().unwrap_or_default();
    query.split('&').any(|one| matches!(one, "list-type=2" | "comp=list"))
}

/// The part of a file that was asked for. Everything else is a `Refusal`.
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

/// Parses `bytes FIRST-LAST/LENGTH` (RFC 9110, 14.4). The length is required.
fn range_nbytes(value: &HeaderValue) -> Option<u64> {
    let (range, length) = value.to_str().ok()?.trim().strip_prefix("bytes ")?.split_once('/')?;
    let (first, last) = range.split_once('-')?;
    length.parse::<u64>().ok()?;
    last.parse::<u64>().ok()?.checked_sub(first.parse().ok()?)?.checked_add(1)
}

fn misanswered(problem: &'static str) -> HttpError {
    refusal(StatusCode::PARTIAL_CONTENT, Cow::Borrowed(problem))
}

fn refusal(status: StatusCode, problem: Cow<'static, str>) -> HttpError {
    let (code, retry_after) = (None, None);
    HttpError::new(HttpErrorKind::Unknown, Refusal { status, code, retry_after, problem: Some(problem) })
}

async fn refused(response: HttpResponse) -> HttpError {
    let status = response.status();
    let retry_after = retry_after(response.headers(), SystemTime::now());
    let region = response.headers().get("x-amz-bucket-region").filter(|_| status.is_redirection());
    let region = region.and_then(|region| region.to_str().ok()).filter(|region| is_word(region));
    let problem = region.map(|region| Cow::Owned(format!("the bucket is in the region {region}")));
    // We do not read a whole file that comes in place of a part: it may be large.
    let code = if status.is_success() { None } else { explained(response).await };
    HttpError::new(HttpErrorKind::Unknown, Refusal { status, code, retry_after, problem })
}

/// How long to wait (RFC 9110, 10.2.3): seconds, or until a date. The date is by the server's clock if the answer shows
/// it, otherwise by ours.
fn retry_after(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let text = |name| headers.get(name).and_then(|value: &HeaderValue| value.to_str().ok()).map(str::trim);
    let said = text(RETRY_AFTER)?;
    if said.bytes().all(|byte| byte.is_ascii_digit()) {
        return (!said.is_empty()).then(|| Duration::from_secs(said.parse().unwrap_or(u64::MAX)));
    }
    let now = text(DATE).and_then(date).unwrap_or_else(|| DateTime::from(now));
    Some((date(said)? - now).to_std().unwrap_or_default())
}

/// A date in any form that RFC 9110, 5.6.7, requires recipients to understand.
fn date(text: &str) -> Option<DateTime<Utc>> {
    if let Ok(date) = DateTime::parse_from_rfc2822(text) {
        return Some(date.to_utc());
    }
    let forms = ["%A, %d-%b-%y %H:%M:%S GMT", "%a %b %e %H:%M:%S %Y"];
    forms.iter().find_map(|form| NaiveDateTime::parse_from_str(text, form).ok()).map(|date| date.and_utc())
}

/// The text of `<Code>` in an XML answer. We keep nothing else, because servers repeat parts of credentials.
async fn explained(response: HttpResponse) -> Option<String> {
    let length = response.headers().get(CONTENT_LENGTH)?.to_str().ok()?.parse::<usize>().ok()?;
    if length > MOST_EXPLANATION_NBYTES {
        return None;
    }
    let text = String::from_utf8(response.into_body().bytes().await.ok()?.to_vec()).ok()?;
    let (_, rest) = text.split_once("<Code>")?;
    let (code, _) = rest.split_once("</Code>")?;
    is_word(code).then(|| code.to_owned())
}

/// Whether a server's code may be shown.
pub(super) fn is_word(text: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    !text.is_empty() && text.len() <= 64 && text.bytes().all(is_plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retry_after_is_seconds_or_a_date() {
        let now = date("Sun, 06 Nov 1994 08:49:37 GMT").map_or(SystemTime::UNIX_EPOCH, SystemTime::from);
        let seconds = |text: &'static str, sent: Option<&'static str>| {
            let mut headers = HeaderMap::new();
            headers.insert(RETRY_AFTER, HeaderValue::from_static(text));
            if let Some(sent) = sent {
                headers.insert(DATE, HeaderValue::from_static(sent));
            }
            retry_after(&headers, now).map(|wait| wait.as_secs())
        };
        assert_eq!(seconds("120", None), Some(120));
        assert_eq!(seconds("99999999999999999999", None), Some(u64::MAX));
        assert_eq!(seconds("Sun, 06 Nov 1994 08:49:47 GMT", None), Some(10));
        assert_eq!(seconds("Sunday, 06-Nov-94 08:49:47 GMT", None), Some(10));
        assert_eq!(seconds("Sun Nov  6 08:49:47 1994", None), Some(10));
        assert_eq!(seconds("Sun, 06 Nov 1994 08:49:27 GMT", None), Some(0));
        let skewed = "Sun, 06 Nov 1994 06:00:00 GMT";
        assert_eq!(seconds("Sun, 06 Nov 1994 06:00:05 GMT", Some(skewed)), Some(5));
        for wrong in ["", "-1", "soon", "1.5", "Sun, 06 Nov", "+3"] {
            assert_eq!(seconds(wrong, None), None, "{wrong}");
        }
    }

    #[test]
    fn content_ranges() {
        let nbytes = |text| range_nbytes(&HeaderValue::from_static(text));
        assert_eq!(nbytes("bytes 10-19/100"), Some(10));
        for wrong in ["bytes 10-19/*", "bytes 19-10/100", "10-19/100", "bytes */100", "bytes a-b/c"] {
            assert_eq!(nbytes(wrong), None);
        }
    }
}
