//! Logins that a host has not judged yet. What is sent side by side with one would repeat a wrong password as often, and
//! hosts lock accounts for that: so one request tries it, and the others wait for what becomes of it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use http::HeaderValue;
use tokio::sync::OnceCell;

use super::refusal::Refusal;

/// What became of a login: nothing, or how it was refused.
pub(super) type Trial = OnceCell<Option<Refusal>>;

/// The logins of a host.
#[derive(Debug, Default)]
pub(super) struct Logins {
    trials: Mutex<HashMap<HeaderValue, Arc<Trial>>>,
}

impl Logins {
    /// The trial of one, made by whoever asks first.
    pub fn trial(&self, login: &HeaderValue) -> Arc<Trial> {
        Arc::clone(self.trials().entry(login.clone()).or_default())
    }

    /// Whether one was sent, and nothing was said against it.
    pub fn accept(&self, login: &HeaderValue) -> bool {
        self.trials().get(login).is_some_and(|trial| matches!(trial.get(), Some(None)))
    }

    /// It was refused; who asks from now on tries it again.
    pub fn forget(&self, login: &HeaderValue) {
        self.trials().remove(login);
    }

    fn trials(&self) -> MutexGuard<'_, HashMap<HeaderValue, Arc<Trial>>> {
        self.trials.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
