//! Codecs: one file each, and one visible table.
