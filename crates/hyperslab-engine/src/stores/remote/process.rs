//! What reading from far away shares in one process: the runtime that waits for networks, connections, hosts.
//!
//! A forked child inherits none of the threads that all this lives on, so it makes its own. What its parent made
//! stays untouched: dropping it would wait for threads that do not exist.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};

use super::host::Host;

/// Threads that drive sockets; decoding happens elsewhere.
const NETWORK_THREADS: usize = 2;

/// One process's own, in a list by descent: the first process that asked, then its child that did, and so on.
pub(super) struct Process {
    id: u32,
    runtime: OnceLock<Result<Runtime, String>>,
    clients: Mutex<HashMap<Timeouts, reqwest::Client>>,
    hosts: Mutex<HashMap<String, Arc<Host>>>,
    child: OnceLock<Box<Process>>,
}

/// How long a connection may keep us waiting: what tells clients apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Timeouts {
    /// To be made.
    pub connect: Duration,
    /// For any next byte.
    pub read: Duration,
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

    /// This process's.
    pub fn current() -> &'static Self {
        let id = std::process::id();
        let mut process = FIRST.get_or_init(Self::new);
        while process.id != id {
            process = process.child.get_or_init(|| Box::new(Self::new()));
        }
        process
    }

    /// The runtime, made when it is first asked for.
    pub fn runtime(&self) -> Result<&Runtime, String> {
        let make = || {
            let mut builder = Builder::new_multi_thread();
            builder.worker_threads(NETWORK_THREADS).thread_name("hyperslab-network").enable_all();
            builder.build().map_err(|error| format!("no thread for the network: {error}"))
        };
        self.runtime.get_or_init(make).as_ref().map_err(Clone::clone)
    }

    /// The connections for requests with these timeouts.
    pub fn client(&self, timeouts: Timeouts) -> Result<reqwest::Client, reqwest::Error> {
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(client) = clients.get(&timeouts) {
            return Ok(client.clone());
        }
        // ring rather than aws-lc: a C compiler is enough to build it. Fails if it is installed already.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = reqwest::Client::builder()
            .http1_only() // ranges come side by side over several connections, which one of HTTP/2 would share
            .connect_timeout(timeouts.connect)
            .read_timeout(timeouts.read)
            .user_agent(concat!("hyperslab/", env!("CARGO_PKG_VERSION")))
            .build()?;
        clients.insert(timeouts, client.clone());
        Ok(client)
    }

    /// A host by its name.
    pub fn host(&self, name: &str) -> Arc<Host> {
        let mut hosts = self.hosts.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(hosts.entry(name.to_owned()).or_default())
    }

    /// All hosts that were asked anything.
    pub fn hosts(&self) -> Vec<(String, Arc<Host>)> {
        let hosts = self.hosts.lock().unwrap_or_else(PoisonError::into_inner);
        hosts.iter().map(|(name, host)| (name.clone(), Arc::clone(host))).collect()
    }
}
