//! Whether a URL is at or below another one: compares the kind of store, the server or bucket, and the parts of the
//! path.

use url::Url;

use super::host::host_name;

/// After this many decodings, a path must hide nothing more.
const MOST_ENCODINGS: usize = 8;

/// The schemes of URLs that stores are opened for. `python/hyperslab/archive/far/url_prefix.py` has them by store.
pub const URL_SCHEMES: [&str; 11] =
    ["http", "https", "s3", "s3a", "gs", "gcs", "az", "azure", "abfs", "abfss", "adl"];

/// An HTTP URL in parts, parsed as requests parse it: both must agree on what names the server.
pub struct WebUrl {
    /// `http` or `https`.
    pub scheme: String,
    /// As encoded in the URL; may be empty.
    pub user: String,
    /// As encoded in the URL; may be empty.
    pub password: String,
    /// Name or address, and the port if it is not the default.
    pub server: String,
    /// With `.` and `..` resolved.
    pub path: String,
    /// The part after `?`.
    pub query: Option<String>,
}

impl WebUrl {
    /// `None` if it is not an HTTP URL.
    pub fn parse(text: &str) -> Option<Self> {
        let url = Url::parse(text).ok().filter(|url| matches!(url.scheme(), "http" | "https"))?;
        Some(Self {
            scheme: url.scheme().to_owned(),
            user: url.username().to_owned(),
            password: url.password().unwrap_or_default().to_owned(),
            server: host_name(&url),
            path: url.path().to_owned(),
            query: url.query().map(str::to_owned),
        })
    }
}

/// A URL in parts. Schemes of the same store are one kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UrlParts {
    /// The scheme that stands for the kind of store.
    pub kind: String,
    /// Name or address, with the port if it is not the default. For object stores the bucket; empty for all buckets.
    pub server: String,
    /// The parts of the path between slashes. HTTP paths are decoded.
    pub path: Vec<Vec<u8>>,
    /// Whether the path never goes up (`..`), not even harmlessly, and hides nothing.
    pub is_straight: bool,
}

impl UrlParts {
    /// `None` if it names no server, or if its path can be read in two ways.
    pub fn parse(text: &str) -> Option<Self> {
        let (scheme, rest) = text.split_once("://")?;
        let is_visible = !text.chars().any(|sign| sign < ' ' || matches!(sign, '\\' | '\x7f'));
        let is_straight = is_visible && !goes_up(text.split(['?', '#']).next()?.as_bytes());
        let kind = scheme.to_ascii_lowercase();
        if !matches!(kind.as_str(), "http" | "https") {
            let (server, key) = rest.split_once('/').unwrap_or((rest, ""));
            let path = parts(key).map(<[u8]>::to_vec).collect();
            let found = Self { kind: store(kind), server: server.to_owned(), path, is_straight };
            return (is_visible && !goes_up(key.as_bytes())).then_some(found);
        }
        let url = WebUrl::parse(text)?;
        let (name, port) = match url.server.rsplit_once(':').filter(|_| !url.server.ends_with(']')) {
            Some((name, port)) => (name, format!(":{port}")),
            None => (url.server.as_str(), String::new()),
        };
        let server = format!("{}{port}", name.strip_suffix('.').unwrap_or(name));
        let path = url.path.strip_prefix('/').unwrap_or(&url.path);
        let is_known = !name.is_empty() && !goes_up(path.as_bytes());
        let path = parts(path).map(decoded).collect();
        is_known.then_some(Self { kind, server, path, is_straight })
    }

    /// Whether this is at or below another one.
    pub fn is_below(&self, prefix: &Self) -> bool {
        let is_any = prefix.server.is_empty(); // no HTTP URL has an empty server
        self.kind == prefix.kind
            && (is_any || self.server == prefix.server)
            && self.path.starts_with(&prefix.path)
    }
}

/// The scheme that stands for all schemes of a kind of store.
fn store(scheme: String) -> String {
    match scheme.as_str() {
        "s3a" => "s3".to_owned(),
        "gcs" => "gs".to_owned(),
        "azure" | "abfs" | "abfss" | "adl" => "az".to_owned(),
        _ => scheme,
    }
}

fn parts(path: &str) -> impl Iterator<Item = &[u8]> {
    let written = path.strip_suffix('/').unwrap_or(path);
    written.as_bytes().split(|&byte| byte == b'/').filter(|_| !path.is_empty())
}

/// Whether a path goes up or nowhere, as written or after one or several decodings.
fn goes_up(path: &[u8]) -> bool {
    let mut path = path.to_vec();
    for _ in 0..MOST_ENCODINGS {
        if path.split(|byte| matches!(byte, b'/' | b'\\')).any(|part| part == b"." || part == b"..") {
            return true;
        }
        let next = decoded(&path);
        if next == path {
            return false;
        }
        path = next;
    }
    true
}

/// The bytes, with each `%` and two hexadecimal digits decoded.
fn decoded(text: &[u8]) -> Vec<u8> {
    let digit = |at: usize| text.get(at).and_then(|&byte| char::from(byte).to_digit(16));
    let mut found = Vec::with_capacity(text.len());
    let mut at = 0;
    while let Some(&byte) = text.get(at) {
        let code = if byte == b'%' { digit(at + 1).zip(digit(at + 2)) } else { None };
        let code = code.and_then(|(high, low)| u8::try_from(16 * high + low).ok());
        found.push(code.unwrap_or(byte));
        at += if code.is_some() { 3 } else { 1 };
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_below(url: &str, prefix: &str) -> bool {
        let (url, prefix) = (UrlParts::parse(url), UrlParts::parse(prefix));
        url.zip(prefix).is_some_and(|(url, prefix)| url.is_below(&prefix))
    }

    #[test]
    fn parts_are_compared_as_servers_read_them() {
        for inside in ["https://h/a", "https://H:443/a/b?q", "https://u:p@h./%61/b#c", "https://h/b/../a"] {
            assert!(is_below(inside, "https://h/a/"), "{inside}");
        }
        for outside in [
            "https://h/ab",
            "http://h/a",
            "https://h:1/a",
            "https://h.evil/a",
            "https://h@evil/a",
            "https://h/a/../b",
            "https://h/a/..%2fa",
            "https://h/a/%252e%252e/a",
            "https://evil\\@h/a",
            "https://",
            "https://[/a",
            "h/a",
        ] {
            assert!(!is_below(outside, "https://h/a"), "{outside}");
        }
        assert!(is_below("s3a://b/k//x", "s3://b/k/") && is_below("s3://b/k", "s3://"));
        assert!(
            !is_below("s3://b//k", "s3://b/k")
                && !is_below("s3://b/k", "s3://b//")
                && !is_below("s3://b/k/../x", "s3://b/k")
        );
        assert!(UrlParts::parse("https://h/b/../a").is_some_and(|url| !url.is_straight));
        assert!(UrlParts::parse("https://h/a?x/../y").is_some_and(|url| url.is_straight));
    }
}
