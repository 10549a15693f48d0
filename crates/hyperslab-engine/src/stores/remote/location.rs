//! From a URL and options to the object that they name.

use std::sync::Arc;

use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderName, HeaderValue};
use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::azure::MicrosoftAzureBuilder;
use object_store::gcp::GoogleCloudStorageBuilder;
use object_store::http::HttpBuilder;
use object_store::path::{Path, PathPart};
use object_store::{ObjectStore, RetryConfig};
use url::Url;

use super::host::host_name;
use super::options::RemoteOptions;
use super::process::Timeouts;
use super::redirect::Follows;
use super::transport::{Transport, is_word};
use super::url_parts::UrlParts;

/// One object of one store.
#[derive(Clone)]
pub struct Location {
    /// Its URL without credentials and query, for people.
    pub name: String,
    /// The host that its requests count for.
    pub host: String,
    /// The login that every request carries, if the user gave one.
    pub login: Option<HeaderValue>,
    /// The store to ask.
    pub store: Arc<dyn ObjectStore>,
    /// The object to ask for.
    pub path: Path,
    /// Whether what lies below can be listed.
    pub lists: bool,
    /// Whether we can ask for its last bytes without knowing its length.
    pub has_last: bool,
}

impl Location {
    /// The object that a URL names. Keys of object stores are taken literally, as fsspec does.
    ///
    /// Errors tell what is wrong with the URL or an option, without showing any value.
    pub fn of_url(text: &str, options: &RemoteOptions) -> Result<Self, String> {
        let (scheme, rest) = text.split_once("://").ok_or("this is not a URL")?;
        let is_http = matches!(scheme, "http" | "https");
        let (bucket, key) = rest.split_once('/').unwrap_or((rest, ""));
        let parsed = if is_http { Url::parse(text) } else { Url::parse(&format!("{scheme}://{bucket}/")) };
        let url = parsed.map_err(|error| format!("this is not a URL: {error}"))?;
        options.config.iter().try_for_each(|(key, value)| check_option(key, value))?;
        let host = host(&url, options);
        let transport = transport(&host, options, is_http)?;
        let login = transport.headers.get(AUTHORIZATION).cloned();
        let is_s3 = matches!(scheme, "s3" | "s3a");
        let is_azure = matches!(scheme, "az" | "azure" | "abfs" | "abfss" | "adl");
        let (slashes, below) = key.split_at(key.len() - key.trim_start_matches('/').len());
        if !is_http && ((!is_s3 && !slashes.is_empty()) || (is_azure && key.ends_with('/'))) {
            return Err(format!(
                "{key:?} begins or ends with a slash: such a key cannot be asked for in this kind of store"
            ));
        }
        let store = match scheme {
            "http" | "https" => http(&url, transport)?,
            "s3" | "s3a" => s3(&url, slashes, transport, options)?,
            "gs" | "gcs" => gcs(&url, transport, options)?,
            _ if is_azure => azure(&url, transport, options)?,
            other => return Err(format!("URLs that start with {other}: are not supported")),
        };
        if is_http {
            let (name, path) = (shown(&url), Path::default());
            return Ok(Self { name, host, login, store, path, lists: false, has_last: true });
        }
        let (name, path) = (format!("{}{key}", shown(&url)), with_key(Path::default(), below)?);
        Ok(Self { name, host, login, store, path, lists: slashes.is_empty(), has_last: !is_azure })
    }
}

impl Location {
    /// The object with a key below this one.
    ///
    /// Errors tell what is wrong with the key.
    pub fn below(&self, key: &str) -> Result<Self, String> {
        let path = if key.is_empty() { self.path.clone() } else { with_key(self.path.clone(), key)? };
        let name = format!("{}/{key}", self.name.trim_end_matches('/'));
        Ok(Self { name, path, ..self.clone() })
    }
}

/// What a key names below a path, part by part as written: empty parts count, as in `a//b`.
fn with_key(base: Path, key: &str) -> Result<Path, String> {
    if base.is_root() && key.starts_with('/') {
        return Err(format!("{key:?} begins with a slash: such a key cannot be asked for here"));
    }
    if base.is_root() && key.is_empty() {
        return Ok(base);
    }
    let part = |part| {
        PathPart::parse(part).map_err(|_| format!("{key:?} cannot be part of a URL, because of {part:?}"))
    };
    key.split('/').try_fold(base, |path, next| Ok(path.join(part(next)?)))
}

/// A URL without its secrets: user, password, query.
fn shown(url: &Url) -> String {
    let mut shown = url.clone();
    shown.set_query(None);
    shown.set_fragment(None);
    if !matches!(url.scheme(), "abfs" | "abfss" | "az") {
        let _ = shown.set_username(""); // there it is the container's name
    }
    let _ = shown.set_password(None);
    shown.to_string()
}

/// The endpoint, the server, or the bucket.
fn host(url: &Url, options: &RemoteOptions) -> String {
    let given = options.config.iter().find(|(key, _)| key == "aws_endpoint" || key == "azure_endpoint");
    let endpoint = given.and_then(|(_, endpoint)| Url::parse(endpoint).ok());
    let server = endpoint.as_ref().unwrap_or(url);
    host_name(server)
}

/// Refuses what cannot be part of a URL: `object_store` would panic when it asks.
fn check_option(key: &str, value: &str) -> Result<(), String> {
    if key.ends_with("endpoint") || key.ends_with("endpoint_url") || key.ends_with("base_url") {
        if key.ends_with("use_fabric_endpoint") || Url::parse(value).is_ok_and(|url| url.has_host()) {
            return Ok(());
        }
        return Err(format!("the option {key:?} is not a URL such as https://host:port"));
    }
    if key.ends_with("region") && !is_word(value) {
        return Err(format!("the option {key:?} is not the name of a region"));
    }
    Ok(())
}

fn transport(host: &str, options: &RemoteOptions, is_http: bool) -> Result<Transport, String> {
    let mut headers = HeaderMap::new();
    for (name, value) in &options.headers {
        let known = HeaderName::try_from(name)
            .map_err(|_| format!("{name:?} is not a valid name of an HTTP header"))?;
        let mut value = HeaderValue::try_from(value)
            .map_err(|_| format!("the value of the HTTP header {name:?} is malformed"))?;
        value.set_sensitive(true);
        headers.insert(known, value);
    }
    let timeouts = Timeouts { connect: options.connect_timeout, read: options.timeout };
    let allowed =
        |prefixs: &Vec<String>| prefixs.iter().filter_map(|prefix| UrlParts::parse(prefix)).collect();
    let follows = is_http.then(|| Follows(options.allowed.as_ref().map(allowed)));
    Ok(Transport { host: host.to_owned(), headers, timeouts, follows })
}

/// We alone retry requests, because we count retries and honour `Retry-After`.
fn no_retries() -> RetryConfig {
    RetryConfig { max_retries: 0, ..RetryConfig::default() }
}

fn http(url: &Url, transport: Transport) -> Result<Arc<dyn ObjectStore>, String> {
    let mut url = url.clone();
    url.set_fragment(None);
    let builder = HttpBuilder::new().with_url(url).with_http_connector(transport).with_retry(no_retries());
    Ok(Arc::new(builder.build().map_err(|error| safe(&error))?))
}

/// A bucket. Slashes at the start of a key go after the bucket's name in URLs, because paths of `object_store` cannot
/// start with one.
fn s3(
    url: &Url,
    slashes: &str,
    transport: Transport,
    options: &RemoteOptions,
) -> Result<Arc<dyn ObjectStore>, String> {
    let bucket = url.host_str().unwrap_or_default();
    let mut builder = s3_of_environment(options).with_bucket_name(format!("{bucket}{slashes}"));
    for (key, value) in &options.config {
        builder = builder.with_config(key.parse().map_err(|_| unknown(key))?, value);
    }
    let names_host = builder.get_config_value(&AmazonS3ConfigKey::VirtualHostedStyleRequest);
    if !slashes.is_empty() && names_host.is_some_and(|value| value.eq_ignore_ascii_case("true")) {
        return Err(
            "a key that begins with a slash cannot be asked for where the bucket is in the host's name"
                .to_owned(),
        );
    }
    let builder = builder.with_http_connector(transport).with_retry(no_retries());
    Ok(Arc::new(builder.build().map_err(|error| safe(&error))?))
}

/// The environment's options, except its keys if the caller gives a key: its token belongs to another key.
fn s3_of_environment(options: &RemoteOptions) -> AmazonS3Builder {
    let is_of_key = |name: &AmazonS3ConfigKey| {
        use AmazonS3ConfigKey::{AccessKeyId, SecretAccessKey, Token};
        matches!(name, AccessKeyId | SecretAccessKey | Token)
    };
    let has_key = options.config.iter().any(|(name, _)| name.parse().is_ok_and(|name| is_of_key(&name)));
    std::env::vars_os().fold(AmazonS3Builder::new(), |builder, (name, value)| {
        let name = name.to_str().filter(|name| name.starts_with("AWS_")).map(str::to_ascii_lowercase);
        let name = name.and_then(|name| name.parse().ok()).filter(|name| !(has_key && is_of_key(name)));
        match (name, value.to_str()) {
            (Some(name), Some(value)) => builder.with_config(name, value),
            _ => builder,
        }
    })
}

fn gcs(url: &Url, transport: Transport, options: &RemoteOptions) -> Result<Arc<dyn ObjectStore>, String> {
    let bucket = url.host_str().unwrap_or_default();
    let mut builder = GoogleCloudStorageBuilder::from_env().with_bucket_name(bucket);
    for (key, value) in &options.config {
        builder = builder.with_config(key.parse().map_err(|_| unknown(key))?, value);
    }
    let builder = builder.with_http_connector(transport).with_retry(no_retries());
    Ok(Arc::new(builder.build().map_err(|error| safe(&error))?))
}

fn azure(url: &Url, transport: Transport, options: &RemoteOptions) -> Result<Arc<dyn ObjectStore>, String> {
    let mut builder = MicrosoftAzureBuilder::from_env().with_url(url.as_str());
    for (key, value) in &options.config {
        builder = builder.with_config(key.parse().map_err(|_| unknown(key))?, value);
    }
    let builder = builder.with_http_connector(transport).with_retry(no_retries());
    Ok(Arc::new(builder.build().map_err(|error| safe(&error))?))
}

fn unknown(key: &str) -> String {
    format!("the option {key:?} is not known for this kind of URL")
}

/// Builders name keys and repeat URLs in their errors, but never the values of secrets. A query would be such a value.
fn safe(error: &object_store::Error) -> String {
    let text = error.to_string();
    text.split_once('?').map_or_else(|| text.clone(), |(before, _)| before.to_owned())
}
