//! The Python module `hyperslab._core`: a table of contents.
//!
//! There is one file per noun. Each file converts arguments at the border, calls the other crates, and returns Python
//! values.

mod archive_file;
mod axes;
mod cache_state;
mod callbacks;
mod chunk_bytes;
mod chunk_encoding;
mod codec_names;
mod collection;
mod document_resolver;
mod dtypes;
mod errors;
mod given_file;
mod grid;
mod hyperslab;
mod integers;
mod libhdf5;
mod object_facts;
mod panics;
mod points;
mod read_plan;
mod references;
mod regular_file;
mod remote;
mod segment;
mod selection;
mod server_queues;
mod slices;
mod stored_array;
mod table_columns;
mod totals;
mod values;
mod versions;
mod zarr_array;
mod zarr_parts;

/// The compiled nouns of hyperslab; `_core.pyi` has the full documentation.
#[pyo3::pymodule]
mod _core {
    #[pymodule_export]
    use crate::archive_file::ArchiveFile;
    #[pymodule_export]
    use crate::cache_state::{CacheState, contention, reuse_distances};
    #[pymodule_export]
    use crate::chunk_bytes::{gather_chunks, hash_chunks, hash_staged, lzf, same_stored};
    #[pymodule_export]
    use crate::chunk_encoding::encode_chunks;
    #[pymodule_export]
    use crate::codec_names::codec_names;
    #[pymodule_export]
    use crate::collection::{combine, find_counterparts};
    #[pymodule_export]
    use crate::document_resolver::{DocumentResolver, refusal};
    #[pymodule_export]
    use crate::given_file::GivenFile;
    #[pymodule_export]
    use crate::grid::ChunkGrid;
    #[pymodule_export]
    use crate::hyperslab::Hyperslab;
    #[pymodule_export]
    use crate::libhdf5::LibHdf5;
    #[pymodule_export]
    use crate::points::Points;
    #[pymodule_export]
    use crate::read_plan::ReadPlan;
    #[pymodule_export]
    use crate::references::{embedded_index, save_references};
    #[pymodule_export]
    use crate::regular_file::open_regular;
    #[pymodule_export]
    use crate::remote::{RemoteFile, host_statistics, url_parts, web_url};
    #[pymodule_export]
    use crate::segment::Segment;
    #[pymodule_export]
    use crate::server_queues::serve_requests;
    #[pymodule_export]
    use crate::stored_array::StoredArray;
    #[pymodule_export]
    use crate::totals::SelectionTotals;
    #[pymodule_export]
    use crate::versions::{
        ChunkTable, chunk_slots_of, described_damage, filters_of, mapped_source, mappings_block,
    };
    #[pymodule_export]
    use crate::zarr_array::ZarrArray;
    #[pymodule_export]
    use crate::zarr_parts::ZarrParts;

    #[pymodule_init]
    #[allow(clippy::unnecessary_wraps)] // PyO3 asks for a result
    fn init(_module: &pyo3::Bound<'_, pyo3::types::PyModule>) -> pyo3::PyResult<()> {
        crate::panics::note_panics();
        Ok(())
    }

    #[pymodule_export]
    #[allow(non_upper_case_globals)] // Python chose the name
    const __version__: &str = env!("CARGO_PKG_VERSION");
}
