//! Kerchunk's references (JSON, versions 0 and 1): keys that lead to text or to ranges of files.
//!
//! We follow "References specification" in Kerchunk's documentation. Version 0 is the map of keys itself. Version 1 has
//! this map in `refs`, along with `templates` for names of files and `gen`, which generates more keys.

use std::collections::BTreeMap;
use std::fmt;

use hyperslab_core::{ByteRange, FileIndex};
use serde::Deserialize as _;
use serde::de::value::MapAccessDeserializer;
use serde::de::{DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

use super::base64::decoded;
use super::files::{Files, local};
use super::generated::{self, Generator};
use super::hierarchy::Location;
use super::templates::Templates;
use crate::error::Error;

/// Where keys lead. Keys with the value null lead nowhere.
type Entries = Vec<(Box<str>, Location)>;

/// A reference file as written: the names of files still contain templates.
#[derive(Default)]
pub(super) struct References {
    /// It is Zarr's consolidated metadata instead.
    pub is_consolidated: bool,
    version: u64,
    templates: BTreeMap<String, String>,
    generators: Vec<Generator>,
    entries: Entries,
    files: Files,
}

impl References {
    /// Parses a file.
    pub fn of(bytes: &[u8]) -> Result<Self, serde_json::Error> {
        let mut references = Self::default();
        let mut json = serde_json::Deserializer::from_slice(bytes);
        (&mut json).deserialize_map(TopLevel(&mut references))?;
        json.end()?;
        Ok(references)
    }

    /// Keys and files, with all templates filled in.
    pub fn resolved(self) -> Result<(Entries, Vec<String>), Error> {
        if self.version > 1 {
            return Err(Error::unsupported(format!("version {} of Kerchunk's references", self.version)));
        }
        let templates = Templates::new(self.templates);
        let (mut entries, mut files) = (self.entries, Files::default());
        let names = self.files.names.iter().map(|name| {
            let name =
                if self.version == 1 { templates.filled(name, &BTreeMap::new())? } else { name.clone() };
            Ok(files.number(local(&name)))
        });
        let numbers: Vec<FileIndex> = names.collect::<Result<_, Error>>()?;
        for (_, location) in &mut entries {
            if let Location::Stored { file, .. } = location {
                let position = usize::try_from(*file).ok().and_then(|number| number.checked_sub(1));
                *file =
                    position.and_then(|position| numbers.get(position).copied()).unwrap_or(FileIndex::MAX);
            }
        }
        generated::add(&self.generators, &templates, &mut entries, &mut files)?;
        Ok((entries, files.names))
    }
}

struct TopLevel<'r>(&'r mut References);

impl<'de> Visitor<'de> for TopLevel<'_> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object of references")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let references = self.0;
        while let Some(key) = map.next_key::<String>()? {
            match key.as_str() {
                "version" => references.version = map.next_value()?,
                "templates" => references.templates = map.next_value()?,
                "gen" => references.generators = map.next_value()?,
                "refs" => map.next_value_seed(Refs(references))?,
                "metadata" => {
                    references.is_consolidated = true;
                    map.next_value::<IgnoredAny>()?;
                }
                "zarr_consolidated_format" | "record_size" => {
                    map.next_value::<IgnoredAny>()?;
                }
                _ => entry(references, key, &mut map)?,
            }
        }
        Ok(())
    }
}

/// The next value of a map, as the target of `key`.
fn entry<'de, A: MapAccess<'de>>(
    references: &mut References,
    key: String,
    map: &mut A,
) -> Result<(), A::Error> {
    let location = map.next_value_seed(Reference(&mut references.files));
    let location = location.map_err(|error| A::Error::custom(format_args!("key {key:?}: {error}")))?;
    references.entries.extend(location.map(|location| (key.into_boxed_str(), location)));
    Ok(())
}

struct Refs<'r>(&'r mut References);

impl<'de> DeserializeSeed<'de> for Refs<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Refs<'_> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object of keys")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<String>()? {
            entry(self.0, key, &mut map)?;
        }
        Ok(())
    }
}

/// One reference: text, `base64:` text, `[file]`, `[file, offset, length]`, an object that is itself the text, or null.
struct Reference<'f>(&'f mut Files);

impl<'de> DeserializeSeed<'de> for Reference<'_> {
    type Value = Option<Location>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Reference<'_> {
    type Value = Option<Location>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("text, [file], [file, offset, length] or an object")
    }

    fn visit_unit<E: serde::de::Error>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Self::Value, E> {
        let bytes = match text.strip_prefix("base64:") {
            None => text.as_bytes().to_vec(),
            Some(encoded) => decoded(encoded).ok_or_else(|| E::custom("damaged base64"))?,
        };
        Ok(Some(Location::Inline(bytes.into())))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<Self::Value, A::Error> {
        let missing = |what: &str| A::Error::custom(format_args!("a reference without {what}"));
        let name: String = sequence.next_element()?.ok_or_else(|| missing("a file"))?;
        let file = self.0.number(&name);
        let Some(offset) = sequence.next_element()? else {
            return Ok(Some(Location::Stored { file, range: None }));
        };
        let length = sequence.next_element()?.ok_or_else(|| missing("a length"))?;
        if sequence.next_element::<IgnoredAny>()?.is_some() {
            return Err(A::Error::custom("a reference of more than a file, an offset and a length"));
        }
        let range = ByteRange::new(offset, length).map_err(A::Error::custom)?;
        Ok(Some(Location::Stored { file, range: Some(range) }))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
        let value = Value::deserialize(MapAccessDeserializer::new(map))?;
        Ok(Some(Location::Inline(value.to_string().into_bytes().into())))
    }
}
