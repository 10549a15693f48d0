//! Repeats steps, round after round, until all the bytes they need have come.

use crate::error::Error;
use crate::pages::Pages;

/// Runs one step, and repeats it after each fetch until it needs nothing more.
pub(crate) fn settle<T>(
    pages: &mut Pages<'_>,
    mut step: impl FnMut(&Pages<'_>) -> Result<T, Error>,
) -> Result<T, Error> {
    loop {
        match step(pages) {
            Err(error) if error.is_not_held() => {
                if !pages.fetch()? {
                    return Err(error);
                }
            }
            result => return result,
        }
    }
}

/// Runs independent steps, one for each key. The bytes that a round of them lacks are fetched together.
pub(crate) fn settle_each<K, T>(
    pages: &mut Pages<'_>,
    keys: &[K],
    step: impl Fn(&Pages<'_>, &K) -> Result<T, Error>,
) -> Result<Vec<Result<T, Error>>, Error> {
    let mut results: Vec<Result<T, Error>> = keys.iter().map(|key| step(pages, key)).collect();
    while results.iter().any(is_open) {
        if !pages.fetch()? {
            break;
        }
        for (key, result) in keys.iter().zip(&mut results) {
            if is_open(result) {
                *result = step(pages, key);
            }
        }
    }
    Ok(results)
}

fn is_open<T>(result: &Result<T, Error>) -> bool {
    result.as_ref().is_err_and(Error::is_not_held)
}

/// Reads the parts of an object one after another. If one part lacks bytes, the others still get to note what they
/// lack.
pub(crate) fn gather<T, U>(
    items: impl IntoIterator<Item = T>,
    read: impl Fn(T) -> Result<U, Error>,
) -> Result<Vec<U>, Error> {
    let (mut gathered, mut missing) = (Vec::new(), None);
    for item in items {
        match read(item) {
            Ok(part) => gathered.push(part),
            Err(error) if error.is_not_held() => missing = Some(error),
            Err(error) => return Err(error),
        }
    }
    missing.map_or(Ok(gathered), Err)
}
