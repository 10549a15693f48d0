//! Arrays whose elements are shown as others: numbers of another width or byte order, packed numbers unpacked.

use std::sync::Arc;

use crate::array::{Array, Fill};
use crate::codec::Codec;
use crate::convert::{converted, is_convertible};
use crate::element::Element;
use crate::packing::{Packing, unpack};
use crate::plan::PlanError;
use crate::resolve::unsupported;
use crate::segment::Segment;
use crate::segment_reads::same_bytes;

const OTHER_KIND: &str = "a source whose elements are of another kind";

/// An array with these elements; numbers are converted.
pub(crate) fn with_element(source: &Arc<Array>, element: &Element) -> Result<Arc<Array>, PlanError> {
    if same_bytes(&source.element, element) {
        return Ok(Arc::clone(source));
    }
    recoded(source, None, element).map(Arc::new)
}

/// An array whose numbers are shown as this element: converted, or unpacked if it is told how they were packed.
/// Elements that were never written are what their fill value unpacks to.
pub fn recoded(source: &Array, packing: Option<&Packing>, element: &Element) -> Result<Array, PlanError> {
    let stored = &source.element;
    if !is_convertible(stored, element) {
        return Err(unsupported(OTHER_KIND));
    }
    let width = |element: &Element| usize::try_from(element.nbytes()).unwrap_or(0);
    let recode = |bytes: &[u8]| {
        let Some(packing) = packing else { return Fill::Value(converted(stored, element, bytes)) };
        let mut out = vec![0; width(element)];
        unpack(packing, stored, element, bytes, &mut out);
        Fill::Value(out)
    };
    let fill = |fill: &Fill| match fill {
        Fill::Value(value) => recode(value),
        Fill::Zero | Fill::Undefined if packing.is_some() => recode(&vec![0; width(stored)]),
        other => other.clone(),
    };
    let (stored, decoded) = (stored.clone(), element.clone());
    let codec = match packing.cloned() {
        None => Codec::Convert { stored, decoded },
        Some(packing) => Codec::Unpack { packing, stored, decoded },
    };
    let show = |segment: &Segment| {
        if segment.plain_edge_chunks || segment.element != source.element {
            return Err(unsupported(OTHER_KIND));
        }
        Ok(Segment {
            codecs: std::iter::once(codec.clone()).chain(segment.codecs.iter().cloned()).collect(),
            element: element.clone(),
            fill: fill(&segment.fill),
            manifest: Arc::new(segment.manifest.moved(|file| file, 1)),
            ..segment.clone()
        })
    };
    let segments = match &source.segments {
        Ok(segments) => Ok(segments.iter().map(show).collect::<Result<_, _>>()?),
        Err(reason) => Err(reason.clone()),
    };
    Ok(Array { element: element.clone(), fill: fill(&source.fill), segments, ..source.clone() })
}
