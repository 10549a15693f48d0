//! Where a file at a URL may lead: to what is in its own folder, and below it. docs/security.md has the rule.

use std::cell::RefCell;

use hyperslab_engine::{URL_SCHEMES, UrlParts};
use hyperslab_libhdf5::{Layout, Library};

use super::failure::Failure;
use crate::request::Call;

thread_local! {
    /// Why a file could not be opened that another one leads to.
    static FAILED: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// The URL that a name means which libhdf5 made of a link's: it puts the folder of the file in front, and the working directory
/// in front of that. An error if the file `document` may not lead there.
pub(super) fn target(document: &str, url: &str, name: &str) -> Result<String, String> {
    let own = without_query(url);
    let folder = own.rsplit_once('/').map_or(own, |(folder, _)| folder);
    let found = starts(name).find_map(|start| {
        let parts = UrlParts::parse(&name[start..])?;
        let below = UrlParts::parse(&format!("{folder}/"))?;
        (parts.is_straight && parts.is_below(&below)).then(|| name[start..].to_owned())
    });
    found.ok_or_else(|| {
        let location = starts(name).next().map_or(name, |start| &name[start..]);
        let folder = document.rsplit_once('/').map_or(document, |(folder, _)| folder);
        let said = format!(
            "{document} leads to {location:?}, which is not in {folder}, so it is not followed (docs/security.md)"
        );
        // A plain name is the last that libhdf5 tries for a file which is nowhere.
        if name.starts_with('/') || name.contains("://") {
            failed(&said);
        }
        said
    })
}

/// A file that another one leads to cannot be opened. What is not there may be missing.
pub(super) fn not_opened(failure: &Failure) {
    if failure.number != libc::ENOENT {
        failed(&failure.text);
    }
}

fn failed(text: &str) {
    FAILED.set(Some(text.to_owned()));
}

/// Lets libhdf5 read arrays that lead to other files: those at a URL lead nowhere else. Where libhdf5 cannot open a source of a
/// virtual array, it fills in; but what may not be reached, or does not answer, is not missing. `None` if there are none.
pub(crate) fn guarded(library: &Library, calls: &[Call], read: impl FnOnce() -> usize) -> Option<usize> {
    const FAILURE: usize = usize::MAX;
    let leads: Vec<Leads> = calls.iter().filter_map(|call| Leads::of(library, call)).collect();
    if leads.contains(&Leads::Outside) {
        library.tell_read_failed(
            "an array is in a file outside of HDF5, to which a file at a URL may not lead (docs/security.md)",
        );
        return Some(FAILURE);
    }
    if leads.is_empty() {
        return None;
    }
    FAILED.set(None);
    let result = read();
    match FAILED.take() {
        Some(text) => {
            library.tell_read_failed(&text);
            Some(FAILURE)
        }
        None => Some(result),
    }
}

/// Where an array of a file at a URL leads.
#[derive(PartialEq, Eq)]
enum Leads {
    /// To arrays of other files.
    Arrays,
    /// To bytes of other files.
    Outside,
}

impl Leads {
    /// `None` for arrays that are where they are, and those of other files.
    fn of(library: &Library, call: &Call) -> Option<Self> {
        let array = library.array(call.array);
        array.file()?.driven()?;
        let creation = array.creation()?;
        if creation.is_external() {
            return Some(Self::Outside);
        }
        (creation.layout() == Some(Layout::Virtual)).then_some(Self::Arrays)
    }
}

fn without_query(url: &str) -> &str {
    if url.starts_with("http") { url.split(['?', '#']).next().unwrap_or(url) } else { url }
}

/// Where URLs begin in a name.
fn starts(name: &str) -> impl Iterator<Item = usize> {
    name.match_indices("://").filter_map(|(end, _)| {
        let start = name[..end].rfind('/').map_or(0, |slash| slash + 1);
        URL_SCHEMES.contains(&&name[start..end]).then_some(start)
    })
}
