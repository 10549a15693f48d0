//! `ZarrArray`: an array of a Zarr folder that others write to. Each read looks for its chunks again.

use hyperslab_core::{Element, PlanError, ReadPlan, Unreadable};
use hyperslab_engine::{ChunkCache, ReadError};
use hyperslab_parsers::zarr::ArrayDocument;

use crate::error::Error;
use crate::interrupt::InterruptCheck;
use crate::reading::{ArraySelection, ReadOptions, Reading};
use crate::sought::{Keys, Sought};

/// How often a read is repeated if a shard was replaced after its index was read.
const MOST_ATTEMPTS: u32 = 8;

/// An array of a folder that others write to.
pub struct ZarrArray {
    document: ArrayDocument,
    keys: Keys,
    name: String,
    cache: ChunkCache,
}

impl ZarrArray {
    /// From its metadata document and the location of its keys. `fill` replaces the document's fill value.
    pub fn new(document: &[u8], keys: Keys, fill: Option<Vec<u8>>) -> Result<Self, Unreadable> {
        let name = keys.name();
        let document = ArrayDocument::of(document, "")?;
        if let Some(reason) = document.unreadable() {
            return Err(reason.clone());
        }
        let document = match fill {
            Some(element) => document.with_fill(element),
            None => document,
        };
        Ok(Self { document, keys, name, cache: ChunkCache::new(0) })
    }

    /// The type of its elements.
    pub fn element(&self) -> Element {
        self.document.empty().element
    }

    /// The location of its keys.
    pub fn keys(&self) -> &Keys {
        &self.keys
    }

    /// The shape of what one key holds.
    pub fn key_shape(&self) -> &[u64] {
        self.document.key_shape()
    }

    /// Its metadata.
    pub fn document(&self) -> &ArrayDocument {
        &self.document
    }

    /// Reads a selection, in an array of this shape, into the bytes of its output.
    pub fn read_into(
        &self,
        shape: &[u64],
        selection: &ArraySelection<'_>,
        out: &mut [u8],
        options: ReadOptions,
        interrupts: &dyn InterruptCheck,
    ) -> Result<(), Error> {
        let mut attempt = 1;
        loop {
            let sought = self.sought(shape, selection)?;
            let reading = Reading {
                array: &sought.array,
                name: &self.name,
                number: sought.number,
                stores: &sought.stores,
                cache: &self.cache,
                interrupts,
                options,
                values: None,
            };
            let planned =
                selection.planned(&sought.array, |selection| ReadPlan::new(&sought.array, selection));
            let planned = planned.map_err(|problem| self.refused(problem))?;
            match reading.carry_out(&planned, out) {
                Err(Error::Read(ReadError::FileChanged { .. })) if attempt < MOST_ATTEMPTS => attempt += 1,
                done => return done,
            }
        }
    }

    fn sought(&self, shape: &[u64], selection: &ArraySelection<'_>) -> Result<Sought, ReadError> {
        let touched = selection.touched(&self.document, shape).map_err(|problem| self.refused(problem))?;
        Sought::new(&self.document, &self.keys, shape, &touched, 0, &|| false)
    }

    fn refused(&self, problem: PlanError) -> ReadError {
        ReadError::Plan { file: self.name.clone(), array: self.name.clone(), problem }
    }
}
