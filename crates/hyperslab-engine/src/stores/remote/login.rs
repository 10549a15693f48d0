//! Logins that a host has not judged yet. Requests sent side by side would repeat a wrong password, and hosts lock
//! accounts for that. So one request tries the login, and the others wait for the result.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use http::HeaderValue;
use tokio::sync::OnceCell;

use super::refusal::Refusal;

/// The result for a login: accepted so far, or how it was refused.
pub(super) type Trial = OnceCell<Option<Refusal>>;

/// The logins of a host.
#[derive(Debug, Default)]
pub(super) struct Logins {
    trials: Mutex<HashMap<HeaderValue, Arc<Trial>>>,
}

impl Logins {
    /// The trial of a login, made by whoever asks first.
    pub fn trial(&self, login: &HeaderValue) -> Arc<Trial> {
        Arc::clone(self.trials().entry(login.clone()).or_default())
    }

    /// Whether one was sent and not refused.
    pub fn accept(&self, login: &HeaderValue) -> bool {
        self.trials().get(login).is_some_and(|trial| matches!(trial.get(), Some(None)))
    }

    /// It was refused. The next request tries it again.
    pub fn forget(&self, login: &HeaderValue) {
        self.trials().remove(login);
    }

    fn trials(&self) -> MutexGuard<'_, HashMap<HeaderValue, Arc<Trial>>> {
        self.trials.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
