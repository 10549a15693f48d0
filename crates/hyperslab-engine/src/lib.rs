//! Carries out reads: fetches the bytes that a selection needs, decodes them, and puts elements where they belong.

pub mod codecs;
