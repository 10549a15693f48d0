//! A caller's options for a far store.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::byte_cache::ByteCache;

/// How to reach and read a remote file.
#[derive(Clone)]
pub struct RemoteOptions {
    /// Keys that `object_store` knows (`aws_access_key_id`, `google_service_account`, ...) with their values.
    pub config: Vec<(String, String)>,
    /// HTTP headers of every request for bytes.
    pub headers: Vec<(String, String)>,
    /// How long to wait for a connection.
    pub connect_timeout: Duration,
    /// How long to wait for the next byte.
    pub timeout: Duration,
    /// The maximum number of attempts before a failure is reported.
    pub most_attempts: u32,
    /// How long attempts may go on.
    pub patience: Duration,
    /// The maximum number of requests in flight to the host; `None` for no change.
    pub most_in_flight: Option<usize>,
    /// URLs to which a server may redirect besides its own, with all below them; `None` for no limit.
    pub allowed: Option<Vec<String>>,
    /// The cache of fetched bytes, for all stores that share these options.
    pub cache: Arc<ByteCache>,
    /// The name by which the cache knows the object; by default its own, so that all who open it share what is kept.
    pub kept_as: Option<Arc<str>>,
}

impl Default for RemoteOptions {
    fn default() -> Self {
        Self {
            config: Vec::new(),
            headers: Vec::new(),
            connect_timeout: Duration::from_secs(10),
            timeout: Duration::from_secs(30),
            most_attempts: 6,
            patience: Duration::from_secs(180),
            most_in_flight: None,
            allowed: None,
            cache: Arc::new(ByteCache::new(0)),
            kept_as: None,
        }
    }
}

impl fmt::Debug for RemoteOptions {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> =
            self.config.iter().chain(&self.headers).map(|(name, _)| name.as_str()).collect();
        out.debug_struct("RemoteOptions").field("given", &names).finish_non_exhaustive() // values may be secret
    }
}
