//! Redirects. We follow them ourselves, because what we send to one server is not meant for the next.
//!
//! We only follow redirects for files on web servers. A signed request is of no use elsewhere, and servers that hand
//! out credentials do not redirect.

use std::net::IpAddr;

use http::header::{
    ACCEPT, IF_MATCH, IF_MODIFIED_SINCE, IF_NONE_MATCH, IF_UNMODIFIED_SINCE, LOCATION, RANGE,
};
use http::{HeaderMap, HeaderName, Request, StatusCode};
use object_store::client::{HttpRequest, HttpRequestBody, HttpResponse};
use url::{Host, Url};

use super::url_parts::UrlParts;

/// We follow no more than this. Browsers follow 20, curl 50; servers of files need 1 or 2.
const MOST_REDIRECTS: usize = 10;
/// What another server is sent: which bytes we want, and of which version. It is not told who wants them, or anything
/// that the user gave.
const CARRIED: [HeaderName; 6] =
    [ACCEPT, RANGE, IF_MATCH, IF_NONE_MATCH, IF_MODIFIED_SINCE, IF_UNMODIFIED_SINCE];

/// The servers, besides its own, to which a URL may redirect: those below these URLs; `None` for any.
///
/// A server may move its own files freely. If the user limits what is allowed, other servers need permission.
#[derive(Clone, Debug)]
pub(super) struct Follows(pub Option<Vec<UrlParts>>);

/// Why a redirect is not followed. Leaves out paths and queries, which may be secret.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum NotFollowed {
    /// We would never follow it.
    Never(String),
    /// The user does not allow it.
    NotAllowed(String),
}

/// The URLs of a request so far.
pub(super) struct Route<'a> {
    follows: &'a Follows,
    passed: Vec<Url>,
    headers: HeaderMap,
}

impl<'a> Route<'a> {
    /// The start of a request; `None` if we do not follow redirects for it.
    pub fn of(request: &HttpRequest, follows: &'a Follows) -> Option<Self> {
        let url = Url::parse(&request.uri().to_string()).ok()?;
        Some(Self { follows, passed: vec![url], headers: request.headers().clone() })
    }

    /// The request that an answer redirects to, and its URL; `None` if it does not redirect.
    pub fn next(&mut self, answer: &HttpResponse) -> Result<Option<(HttpRequest, Url)>, NotFollowed> {
        let never = |problem: &str| NotFollowed::Never(problem.to_owned());
        let (Some(here), Some(first)) = (self.passed.last(), self.passed.first()) else { return Ok(None) };
        let Some(next) = led_to(answer, here).map_err(never)? else { return Ok(None) };
        if let Some(problem) = problem(first, here, &next) {
            return Err(NotFollowed::Never(format!("it redirects {problem}, which is never followed")));
        }
        if !self.passed.iter().any(|passed| is_same_server(passed, &next)) && !self.follows.permits(&next) {
            return Err(NotFollowed::NotAllowed(next.origin().ascii_serialization()));
        }
        if self.passed.contains(&next) {
            return Err(never("its redirects go round in a circle"));
        }
        if self.passed.len() > MOST_REDIRECTS {
            return Err(NotFollowed::Never(format!("it redirects more than {MOST_REDIRECTS} times")));
        }
        if here.origin() != next.origin() {
            self.headers = carried(&self.headers);
        }
        let mut request = Request::new(HttpRequestBody::empty());
        *request.uri_mut() =
            next.as_str().parse().map_err(|_| never("it redirects to something that is not a URL"))?;
        *request.headers_mut() = self.headers.clone();
        self.passed.push(next.clone());
        Ok(Some((request, next)))
    }
}

impl Follows {
    fn permits(&self, url: &Url) -> bool {
        let Some(allowed) = &self.0 else { return true };
        UrlParts::parse(url.as_str()).is_some_and(|url| allowed.iter().any(|target| url.is_below(target)))
    }
}

/// Whether both are on one server, possibly with encryption on only one of them.
fn is_same_server(one: &Url, other: &Url) -> bool {
    let is_usual = |url: &Url| url.port().is_none();
    one.origin() == other.origin() || (one.host() == other.host() && is_usual(one) && is_usual(other))
}

/// Where an answer redirects to, if it does. A user and a password in the target are not ours, so they are dropped.
fn led_to(answer: &HttpResponse, here: &Url) -> Result<Option<Url>, &'static str> {
    let leads = matches!(
        answer.status(),
        StatusCode::MOVED_PERMANENTLY
            | StatusCode::FOUND
            | StatusCode::SEE_OTHER
            | StatusCode::TEMPORARY_REDIRECT
            | StatusCode::PERMANENT_REDIRECT
    );
    let Some(location) = answer.headers().get(LOCATION).filter(|_| leads) else { return Ok(None) };
    let target = location.to_str().ok().and_then(|text| here.join(text).ok());
    let mut next = target.ok_or("it redirects to something that is not a URL")?;
    next.set_fragment(None);
    let _ = next.set_username("");
    let _ = next.set_password(None);
    Ok(Some(next))
}

/// Why a step is not taken.
fn problem(first: &Url, here: &Url, next: &Url) -> Option<String> {
    let (from, to) = (here.origin().ascii_serialization(), next.origin().ascii_serialization());
    match next.scheme() {
        "https" => {}
        "http" if here.scheme() == "http" => {}
        "http" => {
            return Some(format!(
                "from {from} to {to}, where anyone on the way can read and change the data"
            ));
        }
        other => return Some(format!("from {from} to a URL that starts with {other}:")),
    }
    (is_here(next) && !is_here(first))
        .then(|| format!("from {from} to {to}, an address of this machine or of its cloud provider"))
}

/// Whether it names this machine, or an address that only this machine's own processes should ask, such as a cloud's
/// metadata.
fn is_here(url: &Url) -> bool {
    let address = match url.host() {
        Some(Host::Ipv4(address)) => IpAddr::V4(address),
        Some(Host::Ipv6(address)) => IpAddr::V6(address).to_canonical(),
        Some(Host::Domain(name)) => {
            let name = name.trim_end_matches('.');
            return name == "localhost" || name.ends_with(".localhost");
        }
        None => return false,
    };
    match address {
        IpAddr::V4(address) => address.is_loopback() || address.is_link_local() || address.is_unspecified(),
        IpAddr::V6(address) => {
            address.is_loopback() || address.is_unspecified() || (address.segments()[0] & 0xffc0) == 0xfe80
        }
    }
}

fn carried(headers: &HeaderMap) -> HeaderMap {
    CARRIED.iter().filter_map(|name| Some((name.clone(), headers.get(name)?.clone()))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(from: &str, to: &str) -> bool {
        let (Ok(from), Ok(to)) = (Url::parse(from), Url::parse(to)) else { return true };
        problem(&from, &from, &to).is_some()
    }

    #[test]
    fn other_servers_are_those_of_another_name_or_port() {
        let is_same = |one, other| match (Url::parse(one), Url::parse(other)) {
            (Ok(one), Ok(other)) => is_same_server(&one, &other),
            _ => false,
        };
        assert!(is_same("http://a/x", "https://A/y") && is_same("http://a:81/x", "http://a:81/y"));
        for other in ["http://b/x", "http://a:81/x", "https://a:80/x", "http://a.b/x"] {
            assert!(!is_same("http://a/x", other), "{other}");
        }
    }

    #[test]
    fn nothing_leads_out_of_encryption_or_onto_this_machine() {
        assert!(!refused("http://a/x", "https://b/x"));
        assert!(!refused("http://a/x", "http://b:81/x"));
        assert!(refused("https://a/x", "http://a/x"));
        assert!(refused("https://a/x", "file:///etc/passwd"));
        for here in
            ["127.0.0.1", "localhost", "x.localhost.", "169.254.169.254", "0x7f.1", "[::1]", "0", "[fe80::1]"]
        {
            assert!(refused("http://a.example/x", &format!("http://{here}/x")), "{here}");
        }
        assert!(refused("http://a.example/x", "http://[::ffff:127.0.0.1]/x"));
        assert!(!refused("http://127.0.0.1/x", "http://127.0.0.1:81/x"));
    }
}
