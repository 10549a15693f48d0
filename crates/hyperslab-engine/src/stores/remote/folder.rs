//! Objects by key below one URL. Each may exist or not; only a request tells.

use std::cell::Cell;

use futures_util::future::try_join_all;

use super::fetch::{Fetcher, Wanted};
use super::{Location, Process, RemoteOptions, RemoteStore, Stop, host, part_nbytes, wait};
use crate::read_error::ReadError;
use crate::stores::Store as _;

/// How long an object is expected to be.
#[derive(Clone, Copy, Debug)]
pub struct Expected {
    /// The likely length. The first request asks for this much.
    pub likely: usize,
    /// The maximum length. Longer objects are not read.
    pub most: usize,
}

/// The end of an object that is asked for first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ObjectEnd {
    /// Its first bytes.
    First,
    /// Its last bytes.
    Last,
}

/// An object that was opened, and the bytes of one of its ends; `None` if there is no such object.
pub type OpenedEnd = Option<(RemoteStore, Vec<u8>)>;

/// Everything below a URL.
pub struct RemoteFolder {
    location: Location,
    options: RemoteOptions,
}

impl RemoteFolder {
    /// What lies below a location. Makes no request yet.
    pub fn new(location: Location, options: RemoteOptions) -> Self {
        if let Some(most) = options.most_in_flight {
            Process::current().host(&location.host).allow_at_most(most);
        }
        Self { location, options }
    }

    /// Its URL as people may see it.
    pub fn name(&self) -> &str {
        self.location.name.trim_end_matches('/')
    }

    /// How many requests may be worth making at a time.
    pub fn most_in_flight(&self) -> usize {
        self.options.most_in_flight.unwrap_or(host::MOST_ALLOWED)
    }

    /// All of an object; `None` if there is none.
    pub fn whole(&self, key: &str, expected: Expected, stop: Stop<'_>) -> Result<Option<Vec<u8>>, ReadError> {
        wait(&self.location, self.fetched(key, expected, &Cell::new(expected.most)), stop)
    }

    /// All of several objects, asked for side by side, as one round of reading metadata. What is expected bounds their
    /// sum too.
    pub fn each_whole(
        &self,
        keys: &[String],
        expected: Expected,
        stop: Stop<'_>,
    ) -> Result<Vec<Option<Vec<u8>>>, ReadError> {
        self.waited();
        let left = Cell::new(expected.most);
        wait(&self.location, try_join_all(keys.iter().map(|key| self.fetched(key, expected, &left))), stop)
    }

    /// Opens several objects side by side, as one round, by asking for `nbytes` of one of their ends.
    pub fn open_each(
        &self,
        keys: &[String],
        end: ObjectEnd,
        nbytes: usize,
        stop: Stop<'_>,
    ) -> Result<Vec<OpenedEnd>, ReadError> {
        self.waited();
        wait(&self.location, try_join_all(keys.iter().map(|key| self.opened(key, end, nbytes))), stop)
    }

    /// The names of the folders in each of several keys; `None` if the store cannot list.
    pub fn folders(&self, of: &[String], stop: Stop<'_>) -> Result<Option<Vec<Vec<String>>>, ReadError> {
        if !self.location.lists {
            return Ok(None);
        }
        self.waited();
        let listed = async |key: &String| {
            let location = &self.below(key)?;
            Fetcher { location, options: &self.options, identity: None, references: None }.folders().await
        };
        wait(&self.location, try_join_all(of.iter().map(listed)), stop).map(Some)
    }

    fn waited(&self) {
        Process::current().host(&self.location.host).waited();
    }

    fn below(&self, key: &str) -> Result<Location, ReadError> {
        let refused = |problem| ReadError::System { file: self.name().to_owned(), problem };
        self.location.below(key).map_err(refused)
    }

    async fn opened(&self, key: &str, end: ObjectEnd, nbytes: usize) -> Result<OpenedEnd, ReadError> {
        let (location, options) = (self.below(key)?, self.options.clone());
        let mut bytes = vec![0; nbytes.max(1)];
        if let Some(identity) = options.cache.identity(&location.name) {
            // What the cache keeps is of this version, so the rest must be too.
            bytes.truncate(usize::try_from(identity.nbytes).unwrap_or(usize::MAX));
            let offset = if end == ObjectEnd::Last { identity.nbytes - bytes.len() as u64 } else { 0 };
            let store = RemoteStore { location, options, identity: identity.into(), references: None };
            store.filled(vec![(offset, &mut bytes)]).await?;
            return Ok(Some((store, bytes)));
        }
        let asks_last = end == ObjectEnd::Last && location.has_last;
        let (wanted, asked) = if asks_last {
            (Wanted::Last, &mut bytes[..])
        } else if end == ObjectEnd::Last {
            (Wanted::From(0), &mut bytes[..1]) // to learn its length
        } else {
            (Wanted::From(0), &mut bytes[..])
        };
        let fetcher = Fetcher { location: &location, options: &options, identity: None, references: None };
        let identity = match fetcher.fetch(wanted, asked).await {
            Err(ReadError::NoSuchObject { .. }) => return Ok(None),
            fetched => fetched?,
        };
        let length = identity.nbytes;
        bytes.truncate(usize::try_from(length).unwrap_or(usize::MAX));
        let offset = if end == ObjectEnd::Last { length - bytes.len() as u64 } else { 0 };
        options.cache.keep_identity(&location.name, &identity);
        let store = RemoteStore { location, options, identity: identity.into(), references: None };
        if end == ObjectEnd::Last && !asks_last {
            store.filled(vec![(offset, &mut bytes)]).await?;
        } else {
            store.options.cache.keep(&store.location.name, offset, &bytes);
        }
        Ok(Some((store, bytes)))
    }

    /// All of an object, if it is not longer than what is `left` for it and those beside it.
    async fn fetched(
        &self,
        key: &str,
        expected: Expected,
        left: &Cell<usize>,
    ) -> Result<Option<Vec<u8>>, ReadError> {
        let first = expected.likely.min(part_nbytes());
        let Some((store, mut bytes)) = self.opened(key, ObjectEnd::First, first).await? else {
            return Ok(None);
        };
        let (held, nbytes) = (bytes.len(), usize::try_from(store.nbytes()).unwrap_or(usize::MAX));
        let Some(rest) = left.get().checked_sub(nbytes) else {
            let (problem, url) =
                (format!("{nbytes} bytes, but at most {} make sense", left.get()), store.location.name);
            return Err(ReadError::Remote { url, offset: 0, problem, remedy: "check what is stored there" });
        };
        left.set(rest);
        if nbytes > held {
            bytes.resize(nbytes, 0);
            store.filled(vec![(held as u64, &mut bytes[held..])]).await?;
        }
        Ok(Some(bytes))
    }
}
