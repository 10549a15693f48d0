//! The Python module `hyperslab._core`: a table of contents.
//!
//! One file per noun. Each parses at the border, calls `hyperslab-core`, and gives back Python values.

mod errors;
mod grid;
mod hyperslab;
mod integers;
mod points;
mod selection;
mod slices;
mod totals;

/// The compiled nouns of hyperslab; `_core.pyi` has the full documentation.
#[pyo3::pymodule]
mod _core {
    #[pymodule_export]
    use crate::grid::ChunkGrid;
    #[pymodule_export]
    use crate::hyperslab::Hyperslab;
    #[pymodule_export]
    use crate::points::Points;
    #[pymodule_export]
    use crate::totals::SelectionTotals;

    #[pymodule_export]
    #[allow(non_upper_case_globals)] // the name is Python's
    const __version__: &str = env!("CARGO_PKG_VERSION");
}
