//! Where the HDF5 library searches for files that a file names. Each kind of link has its own environment variable and
//! order.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use hyperslab_core::Tree;
use hyperslab_engine::{ReadError, Store, Stores};

use crate::format::Format;
use crate::source_resolver::SourceResolver;
use crate::sources::LocalSource;

impl SourceResolver {
    /// The file that an external link of the file `own` leads to, searched for as the HDF5 library does; `None` if
    /// there is none.
    pub fn linked_file(&self, own: &Path, name: &str) -> Result<Option<PathBuf>, ReadError> {
        find(Naming::Link, own, name, self)
    }

    /// The same for the source of a virtual array.
    pub fn virtual_source(&self, own: &Path, name: &str) -> Result<Option<PathBuf>, ReadError> {
        find(Naming::Virtual, own, name, self)
    }

    /// The external raw file of an array of the file `own`. Fails unless it is a regular file that may be opened.
    pub fn raw_file(&self, own: &Path, name: &str) -> Result<PathBuf, ReadError> {
        let path = raw(own, name);
        self.open_file(&path)?;
        Ok(path)
    }
}

/// What names the file.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Naming {
    Virtual,
    Link,
}

const ORIGIN: &str = "${ORIGIN}";

/// The first HDF5 file among the candidates, or else the first file; `None` if there is none. Candidates that are not
/// allowed are skipped as if they could not be opened. If nothing else is found, the error names them.
fn find(
    naming: Naming,
    own: &Path,
    name: &str,
    resolver: &SourceResolver,
) -> Result<Option<PathBuf>, ReadError> {
    let (mut refused, mut other) = (None, None);
    for path in candidates(naming, own, name) {
        if !resolver.allowed().permits(&path) {
            refused.get_or_insert(path);
            continue;
        }
        match std::fs::metadata(&path) {
            Err(_) => {}
            Ok(metadata) if metadata.is_dir() => {}
            Ok(_) if is_hdf5(&path, resolver)? => return Ok(Some(path)),
            Ok(_) => drop(other.get_or_insert(path)),
        }
    }
    match (other, refused) {
        (Some(path), _) => Ok(Some(path)),
        (None, Some(path)) => Err(resolver.refused_file(&path)),
        (None, None) => Ok(None),
    }
}

fn is_hdf5(path: &Path, resolver: &SourceResolver) -> Result<bool, ReadError> {
    let store = resolver.open_file(path)?;
    Ok(matches!(Format::of(&LocalSource(&store)), Ok(Format::Hdf5)))
}

/// In the library's order (`H5F_prefix_open_file` in its H5Fint.c).
fn candidates(naming: Naming, own: &Path, name: &str) -> Vec<PathBuf> {
    let folder = own.parent().map(Path::to_owned).unwrap_or_default();
    let asked = PathBuf::from(name);
    let mut paths = Vec::new();
    let name = if asked.is_absolute() {
        let last = asked.file_name().map(PathBuf::from).unwrap_or_default();
        paths.push(asked);
        last
    } else {
        asked
    };
    let variable = if naming == Naming::Virtual { "HDF5_VDS_PREFIX" } else { "HDF5_EXT_PREFIX" };
    let prefixes = std::env::var(variable).unwrap_or_default();
    paths.extend(prefixes.split(':').filter(|one| !one.is_empty()).map(|one| Path::new(one).join(&name)));
    if naming == Naming::Virtual {
        paths.extend(expanded(&prefixes, &folder).map(|prefix| prefix.join(&name)));
    }
    paths.push(folder.join(&name));
    paths.push(name.clone());
    // The file may be a link to a file in another folder.
    paths.extend(own.canonicalize().ok().and_then(|path| Some(path.parent()?.join(&name))));
    paths
}

/// Where an external raw file is: below `HDF5_EXTFILE_PREFIX`, or else relative to the working directory. It is not
/// relative to the folder of the file that names it (`H5D__build_file_prefix` in the library's H5Dint.c).
pub(crate) fn raw(own: &Path, name: &str) -> PathBuf {
    let folder = own.parent().map(Path::to_owned).unwrap_or_default();
    let prefix = std::env::var("HDF5_EXTFILE_PREFIX").ok();
    let prefix = prefix.and_then(|prefix| expanded(&prefix, &folder));
    let path = prefix.map_or_else(|| PathBuf::from(name), |prefix| prefix.join(name));
    std::path::absolute(&path).unwrap_or(path)
}

/// The stores of a file: the file itself, and the external raw files that it names.
pub(crate) fn stores(own: &Path, opened: Arc<dyn Store>, tree: &Tree, resolver: &SourceResolver) -> Stores {
    let others = tree.other_files.iter().map(|name| raw(own, name)).collect();
    let name = opened.name().to_owned();
    Stores::with_opener(Some(opened), name, others, resolver.opener()).with_padded_others()
}

/// The prefix that the library makes from the variable, if any.
fn expanded(prefix: &str, folder: &Path) -> Option<PathBuf> {
    match prefix.strip_prefix(ORIGIN) {
        _ if prefix.is_empty() || prefix == "." => None,
        Some(rest) => Some(folder.join(rest.trim_start_matches('/'))),
        None => Some(PathBuf::from(prefix)),
    }
}
