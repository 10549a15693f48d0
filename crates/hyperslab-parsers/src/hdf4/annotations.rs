//! What the older DFSD interface records about the arrays of its data groups, as attributes with the names of the SD
//! interface.

use hyperslab_core::{Attribute, ByteOrder, Element};

use super::descriptors::tag;
use super::file::File;
use super::pieces;
use super::text::until_zero;
use crate::attribute::{named, scalar, text};
use crate::error::Error;

/// Texts separated by zero bytes: the data's, then each dimension's. And numbers about the data.
pub(super) struct Annotations {
    labels: Vec<String>,
    units: Vec<String>,
    formats: Vec<String>,
    coordinates: Vec<String>,
    numbers: Vec<Attribute>,
    pub fill: Option<Vec<u8>>,
}

impl Annotations {
    /// The annotations of a group with these members.
    pub fn of(
        file: &File<'_>,
        element: &Element,
        member: &dyn Fn(u16) -> Option<u16>,
    ) -> Result<Self, Error> {
        let bytes = |tag: u16| match member(tag) {
            None => Ok(Vec::new()),
            Some(reference) => pieces::element(file, "an annotation of an HDF4 array", tag, reference)
                .map(|(_, bytes)| bytes),
        };
        let texts = |tag| bytes(tag).map(|bytes| bytes.split(|&byte| byte == 0).map(until_zero).collect());
        let width = usize::try_from(element.nbytes()).unwrap_or(usize::MAX);
        let mut numbers = extremes(&bytes(tag::EXTREMES)?, element, width);
        numbers.extend(calibration(&bytes(tag::CALIBRATION)?));
        let fill = bytes(tag::FILL)?.get(..width).map(<[u8]>::to_vec);
        numbers.extend(fill.iter().map(|fill| named("_FillValue", scalar(element.clone(), fill.clone()))));
        Ok(Self {
            labels: texts(tag::LABELS)?,
            units: texts(tag::UNITS)?,
            formats: texts(tag::FORMATS)?,
            coordinates: texts(tag::COORDINATES)?,
            numbers,
            fill,
        })
    }

    /// The attributes of the array itself.
    pub fn of_data(&self) -> Vec<Attribute> {
        let mut attributes = self.texts(0);
        let system = self.coordinates.first().filter(|system| !system.is_empty());
        attributes.extend(system.map(|system| named("coordsys", text(system))));
        attributes.extend(self.numbers.iter().cloned());
        attributes
    }

    /// The attributes of a dimension's scale.
    pub fn of_axis(&self, axis: usize) -> Vec<Attribute> {
        self.texts(axis.saturating_add(1))
    }

    fn texts(&self, position: usize) -> Vec<Attribute> {
        let columns = [("long_name", &self.labels), ("units", &self.units), ("format", &self.formats)];
        let found = columns.into_iter().filter_map(|(name, texts)| Some((name, texts.get(position)?)));
        found.filter(|(_, value)| !value.is_empty()).map(|(name, value)| named(name, text(value))).collect()
    }
}

/// The maximum, then the minimum, of the type of the data.
fn extremes(bytes: &[u8], element: &Element, width: usize) -> Vec<Attribute> {
    let values = bytes.chunks_exact(width.max(1)).zip(["valid_max", "valid_min"]);
    values.map(|(value, name)| named(name, scalar(element.clone(), value.to_vec()))).collect()
}

/// Four numbers of eight bytes, then the type that calibrated data have.
fn calibration(bytes: &[u8]) -> Vec<Attribute> {
    const NAMES: [&str; 4] = ["scale_factor", "scale_factor_err", "add_offset", "add_offset_err"];
    let Some(float) = Element::float(8, ByteOrder::Big) else { return Vec::new() };
    let values = bytes.chunks_exact(8).zip(NAMES);
    let mut attributes: Vec<Attribute> =
        values.map(|(value, name)| named(name, scalar(float.clone(), value.to_vec()))).collect();
    let calibrated = bytes.get(32..36).map(<[u8]>::to_vec);
    let integer = Element::integer(4, true, ByteOrder::Big);
    attributes.extend(calibrated.map(|bytes| named("calibrated_nt", scalar(integer, bytes))));
    attributes
}
