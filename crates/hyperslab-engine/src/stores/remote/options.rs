//! What a caller says about a store far away.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::byte_cache::ByteCache;

/// How a file far away is reached and read.
#[derive(Clone)]
pub struct RemoteOptions {
    /// Keys as `object_store` knows them (`aws_access_key_id`, `google_service_account`, ...) with their values.
    pub config: Vec<(String, String)>,
    /// HTTP headers of every request for bytes.
    pub headers: Vec<(String, String)>,
    /// How long to wait for a connection.
    pub connect_timeout: Duration,
    /// How long to wait for any next byte.
    pub timeout: Duration,
    /// How often a request is made at most before its failure is told.
    pub most_attempts: u32,
    /// How long a request is repeated at most.
    pub patience: Duration,
    /// Requests to the host in flight at most; None leaves it as it is.
    pub most_in_flight: Option<usize>,
    /// URLs that a server may lead on to from its own, with all below them; None: wherever redirects may lead at all.
    pub allowed: Option<Vec<String>>,
    /// Bytes that were fetched, kept for all stores that share these options.
    pub cache: Arc<ByteCache>,
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
