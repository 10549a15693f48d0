//! What remote reads share in one process: the network runtime, connections, hosts.
//!
//! A forked child inherits none of the threads behind these, so it makes its own. It leaves its parent's untouched,
//! because dropping them would wait for threads that do not exist.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};

use super::host::Host;

/// Threads that drive sockets. Decoding happens elsewhere.
const NETWORK_THREADS: usize = 2;

/// The state of one process, in a list by descent: the first process that asked, then its child that did, and so on.
pub(super) struct Process {
    id: u32,
    runtime: OnceLock<Result<Runtime, String>>,
    clients: Mutex<HashMap<(Timeouts, Way), reqwest::Client>>,
    hosts: Mutex<HashMap<String, Arc<Host>>>,
    child: OnceLock<Box<Process>>,
}

/// How long a connection may make us wait. This tells clients apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Timeouts {
    /// For a new connection.
    pub connect: Duration,
    /// For the next byte.
    pub read: Duration,
}

/// How requests leave this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Way {
    /// As the environment says: through its proxies, if there are any.
    Usual,
    /// Directly. A proxy must not see what a machine tells its own processes.
    Straight,
}

static FIRST: OnceLock<Process> = OnceLock::new();

impl Process {
    fn new() -> Self {
        Self {
            id: std::process::id(),
            runtime: OnceLock::new(),
            clients: Mutex::default(),
            hosts: Mutex::default(),
            child: OnceLock::new(),
        }
    }

    /// The state of this process.
    pub fn current() -> &'static Self {
        let id = std::process::id();
        let mut process = FIRST.get_or_init(Self::new);
        while process.id != id {
            process = process.child.get_or_init(|| Box::new(Self::new()));
        }
        process
    }

    /// The runtime. It is made on first use.
    pub fn runtime(&self) -> Result<&Runtime, String> {
        let make = || {
            let mut builder = Builder::new_multi_thread();
            builder.worker_threads(NETWORK_THREADS).thread_name("hyperslab-network").enable_all();
            builder.build().map_err(|error| format!("cannot start a thread for the network: {error}"))
        };
        self.runtime.get_or_init(make).as_ref().map_err(Clone::clone)
    }

    /// A client for requests with these timeouts. It follows no redirects: `redirect` decides on them.
    pub fn client(&self, timeouts: Timeouts, way: Way) -> Result<reqwest::Client, reqwest::Error> {
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(client) = clients.get(&(timeouts, way)) {
            return Ok(client.clone());
        }
        // We use ring rather than aws-lc, because a C compiler is enough to build it. This fails if a provider is
        // installed already.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let builder = reqwest::Client::builder();
        let builder = if way == Way::Straight { builder.no_proxy() } else { builder };
        let client = builder
            .http1_only() // ranges come side by side over several connections; HTTP/2 would put them on one
            .redirect(reqwest::redirect::Policy::none())
            .referer(false)
            .connect_timeout(timeouts.connect)
            .read_timeout(timeouts.read)
            .user_agent(concat!("hyperslab/", env!("CARGO_PKG_VERSION")))
            .build()?;
        clients.insert((timeouts, way), client.clone());
        Ok(client)
    }

    /// A host by its name.
    pub fn host(&self, name: &str) -> Arc<Host> {
        let mut hosts = self.hosts.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(hosts.entry(name.to_owned()).or_default())
    }

    /// All hosts that have been asked anything.
    pub fn hosts(&self) -> Vec<(String, Arc<Host>)> {
        let hosts = self.hosts.lock().unwrap_or_else(PoisonError::into_inner);
        hosts.iter().map(|(name, host)| (name.clone(), Arc::clone(host))).collect()
    }
}
