//! `Segment`: a box of an array with the chunks that hold it, as columns. References are written from these.

use hyperslab_archive::WholeArray;
use hyperslab_core::{ChunkState, Codec, Fill, SegmentAxis, StoredChunk};
use hyperslab_engine::is_tidy;
use numpy::PyArray1;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyTuple};

use crate::panics::detached;
use crate::{dtypes, integers};

/// A part of an array that one grid of chunks holds.
#[pyclass(frozen, module = "hyperslab._core")]
pub(crate) struct Segment {
    whole: WholeArray,
    number: usize,
}

impl Segment {
    /// All segments of an array; none if it cannot be read.
    pub(crate) fn all(whole: &WholeArray) -> Vec<Self> {
        let count = whole.array().segments.as_ref().map_or(0, Vec::len);
        (0..count).map(|number| Self { whole: whole.clone(), number }).collect()
    }

    fn get(&self) -> &hyperslab_core::Segment {
        #[allow(clippy::expect_used)] // `all` only makes existing segments
        &self.whole.array().segments.as_ref().expect("segments")[self.number]
    }

    fn column<'py, T: numpy::Element>(
        &self,
        py: Python<'py>,
        value: fn(StoredChunk) -> T,
    ) -> PyResult<Bound<'py, PyArray1<T>>> {
        let column: Vec<T> = detached(py, || self.get().manifest.stored().map(value).collect())?;
        Ok(PyArray1::from_vec(py, column))
    }
}

/// Origin, shape and origin in the source.
type Placed<'py> = (Bound<'py, PyTuple>, Bound<'py, PyTuple>, Bound<'py, PyTuple>);

#[pymethods]
impl Segment {
    /// Where the segment starts in the array, its shape, and where it starts in the array that the grid cuts. None
    /// unless it is a box of both, with the same axes.
    #[getter(r#box)]
    fn placed<'py>(&self, py: Python<'py>) -> PyResult<Option<Placed<'py>>> {
        let axes = &self.get().axes;
        let is_box = axes.iter().enumerate().all(|(position, axis)| {
            axis.array_axis == Some(position) && axis.shown.is_contiguous() && axis.source.is_contiguous()
        });
        let tuple =
            |value: fn(&SegmentAxis) -> u64| integers::tuple(py, &axes.iter().map(value).collect::<Vec<_>>());
        let placed = || {
            Ok((
                tuple(|axis| axis.shown.start())?,
                tuple(|axis| axis.shown.len())?,
                tuple(|axis| axis.source.start())?,
            ))
        };
        is_box.then(placed).transpose()
    }

    /// The shape of the array that the grid cuts.
    #[getter]
    fn source_shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        integers::tuple(py, self.get().grid.shape())
    }

    /// The shape of a chunk.
    #[getter]
    fn chunk_shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        integers::tuple(py, self.get().grid.chunk_shape())
    }

    /// Whether edge chunks are stored without their codecs.
    #[getter]
    fn plain_edge_chunks(&self) -> bool {
        self.get().plain_edge_chunks
    }

    /// The dtype of what is stored.
    #[getter]
    fn dtype<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        dtypes::dtype(py, &self.get().element)
    }

    /// Whether decoded bytes are the elements. If not, they are repaired after decoding: strings are cut where they
    /// end.
    #[getter]
    fn is_tidy(&self) -> bool {
        is_tidy(&self.get().element)
    }

    /// One element with the value of unwritten chunks, as bytes; None if the writer defined no such value.
    #[getter]
    fn fill<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyBytes>> {
        let segment = self.get();
        match &segment.fill {
            Fill::Undefined => None,
            Fill::Zero => {
                PyBytes::new_with(py, usize::try_from(segment.element.nbytes()).ok()?, |_| Ok(())).ok()
            }
            Fill::Value(value) => Some(PyBytes::new(py, value)),
        }
    }

    /// The encoding steps, first to last: `name`, and the parameters that decoding needs.
    #[getter]
    fn codecs<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyDict>>> {
        self.get().codecs.iter().map(|codec| described(py, codec)).collect()
    }

    /// Linear indices of the stored chunks in the grid, ascending.
    fn indices<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray1<u64>>> {
        self.column(py, |chunk| chunk.index)
    }

    /// The number of the file that holds each stored chunk.
    fn files<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray1<u32>>> {
        self.column(py, |chunk| chunk.file)
    }

    /// Where each stored chunk starts in its file.
    fn offsets<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray1<u64>>> {
        self.column(py, |chunk| chunk.range.offset)
    }

    /// The length of each stored chunk in bytes.
    fn lengths<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray1<u64>>> {
        self.column(py, |chunk| chunk.range.length)
    }

    /// The codecs that were skipped for each stored chunk: bit 0 stands for the first codec.
    fn filter_masks<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray1<u32>>> {
        self.column(py, |chunk| chunk.filter_mask)
    }

    /// The encoded bytes of chunks that the metadata contain, by linear index.
    fn inline<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let (found, manifest) = (PyDict::new(py), &self.get().manifest);
        for index in manifest.inline_indices() {
            if let ChunkState::Inline(bytes) = manifest.state(index) {
                found.set_item(index, PyBytes::new(py, bytes))?;
            }
        }
        Ok(found)
    }
}

/// A codec by name and parameters, which have the names of the fields of `hyperslab_core::Codec`; of a codec of the table also
/// whether numcodecs has it.
fn described<'py>(py: Python<'py>, codec: &Codec) -> PyResult<Bound<'py, PyDict>> {
    let found = PyDict::new(py);
    found.set_item("name", codec.name())?;
    match codec {
        Codec::Shuffle { element_nbytes } => found.set_item("element_nbytes", element_nbytes)?,
        Codec::Known { codec, parameters } => {
            found.set_item("numcodecs", !codec.numcodecs.is_empty())?;
            found.set_item("parameters", parameters)?;
        }
        Codec::Transpose { order } => found.set_item("order", order.clone())?,
        Codec::Delta { stored, decoded } => {
            found.set_item("stored", dtypes::dtype(py, stored)?)?;
            found.set_item("decoded", dtypes::dtype(py, decoded)?)?;
        }
        Codec::FixedScaleOffset { scale, offset, stored, decoded } => {
            found.set_item("scale", scale)?;
            found.set_item("offset", offset)?;
            found.set_item("stored", dtypes::dtype(py, stored)?)?;
            found.set_item("decoded", dtypes::dtype(py, decoded)?)?;
        }
        Codec::Unknown { number, .. } => found.set_item("number", number)?,
        _ => {}
    }
    Ok(found)
}
