//! Whether a URL is at or below another one: by the kind of store, the server or bucket, and the parts of the path.

use super::location::WebUrl;

/// Decoded so often, a path must say all that it hides.
const MOST_ENCODINGS: usize = 8;

/// A URL, taken apart. Schemes that mean the same store are one kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UrlParts {
    /// The scheme that the kind of store is known by.
    pub kind: String,
    /// Name or address, with the port where it is not the usual one; of object stores the bucket, empty for all.
    pub server: String,
    /// What is between the slashes of the path, decoded on the web.
    pub path: Vec<Vec<u8>>,
    /// Whether nothing in it goes up, not even where that leads back to the same, and all of it can be seen.
    pub is_straight: bool,
}

impl UrlParts {
    /// None if it names no server, or its path can be read in two ways.
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
        let is_any = prefix.server.is_empty(); // which no URL of the web is
        self.kind == prefix.kind
            && (is_any || self.server == prefix.server)
            && self.path.starts_with(&prefix.path)
    }
}

/// The scheme that stands for all of one kind of store.
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

/// Whether a path goes up or nowhere, as it is written or decoded once or several times.
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

/// Bytes in which `%` and two hexadecimal digits stand for one.
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
