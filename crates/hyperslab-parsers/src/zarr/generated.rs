//! Keys from Kerchunk's `gen`: one for each combination of the values of its dimensions.

use std::collections::BTreeMap;

use hyperslab_core::ByteRange;
use serde::Deserialize;

use super::files::{Files, invalid, local};
use super::hierarchy::Location;
use super::templates::{Expanded, Templates};
use crate::error::Error;

/// The most keys, because a few bytes of a file may ask for any number.
const MAX_GENERATED: u64 = 1 << 20;

/// One entry of `gen`. The texts are templates.
#[derive(Deserialize)]
pub(super) struct Generator {
    key: String,
    url: String,
    offset: Option<Number>,
    length: Option<Number>,
    dimensions: BTreeMap<String, Dimension>,
}

/// A number, or a template for one.
#[derive(Deserialize)]
#[serde(untagged)]
enum Number {
    Plain(u64),
    Template(String),
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Dimension {
    Values(Vec<i64>),
    Range {
        #[serde(default)]
        start: i64,
        stop: i64,
        #[serde(default = "one")]
        step: i64,
    },
}

fn one() -> i64 {
    1
}

impl Dimension {
    fn count(&self) -> Result<u64, Error> {
        match self {
            Self::Values(values) => Ok(values.len() as u64),
            Self::Range { step: 0, .. } => Err(invalid("a dimension of gen whose step is 0")),
            Self::Range { start, stop, step } => {
                let distance = (i128::from(*stop) - i128::from(*start)) * i128::from(step.signum());
                let count = distance.max(0).div_euclid(i128::from(step.unsigned_abs()));
                let is_cut = distance.max(0).rem_euclid(i128::from(step.unsigned_abs())) != 0;
                Ok(u64::try_from(count + i128::from(is_cut)).unwrap_or(u64::MAX))
            }
        }
    }

    fn value(&self, position: u64) -> i64 {
        let position = i64::try_from(position).unwrap_or(i64::MAX);
        match self {
            Self::Values(values) => usize::try_from(position).ok().and_then(|at| values.get(at)).copied(),
            Self::Range { start, step, .. } => {
                step.checked_mul(position).and_then(|far| start.checked_add(far))
            }
        }
        .unwrap_or_default() // cannot happen: positions are below the count
    }
}

/// Adds the keys that the generators make.
pub(super) fn add(
    generators: &[Generator],
    templates: &Templates,
    entries: &mut Vec<(Box<str>, Location)>,
    files: &mut Files,
) -> Result<(), Error> {
    let mut total = 0_u64;
    for generator in generators {
        let counts: Vec<u64> =
            generator.dimensions.values().map(Dimension::count).collect::<Result<_, Error>>()?;
        let count = counts.iter().fold(1_u64, |product, &count| product.saturating_mul(count));
        let count = if counts.contains(&0) { 0 } else { count };
        total = total.saturating_add(count);
        if total > MAX_GENERATED {
            return Err(Error::TooMany { what: "keys made by gen", limit: MAX_GENERATED });
        }
        for position in 0..count {
            entries.push(generator.entry(position, &counts, templates, files)?);
        }
    }
    Ok(())
}

impl Generator {
    fn entry(
        &self,
        position: u64,
        counts: &[u64],
        templates: &Templates,
        files: &mut Files,
    ) -> Result<(Box<str>, Location), Error> {
        let mut values = BTreeMap::new();
        let mut rest = position;
        for ((name, dimension), &count) in self.dimensions.iter().zip(counts).rev() {
            let value = dimension.value(rest % count.max(1));
            values.insert(name.clone(), Expanded::Integer(value));
            rest /= count.max(1);
        }
        let number = |number: &Number| match number {
            Number::Plain(number) => Ok(*number),
            Number::Template(text) => {
                let text = templates.filled(text, &values)?;
                text.trim().parse().map_err(|_| invalid(format!("gen: {text:?} is not an offset or length")))
            }
        };
        let range = match (&self.offset, &self.length) {
            (None, None) => None,
            (Some(offset), Some(length)) => {
                let range = ByteRange::new(number(offset)?, number(length)?);
                Some(range.map_err(|error| invalid(error.to_string()))?)
            }
            _ => return Err(invalid("gen: of offset and length there must be both or neither")),
        };
        let file = files.number(local(&templates.filled(&self.url, &values)?));
        let key = templates.filled(&self.key, &values)?;
        Ok((key.into_boxed_str(), Location::Stored { file, range }))
    }
}
