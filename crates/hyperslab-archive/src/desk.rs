//! What a thread that encodes chunks needs, and leaves for the next one: to make a compressor anew takes as long as to
//! encode a small chunk.

use hyperslab_engine::Kept;
use hyperslab_engine::codecs::{Encoder, Scratch};

/// What one thread keeps from chunk to chunk.
#[derive(Default)]
pub(crate) struct Desk {
    /// A chunk before encoding.
    pub plain: Vec<u8>,
    pub encoder: Encoder,
    /// For decoding what a chunk held.
    pub scratch: Scratch,
}

static KEPT: Kept<Desk> = Kept::new();

impl Desk {
    /// The one that another thread left, or a new one.
    pub fn take() -> Self {
        KEPT.take()
    }

    /// Leaves it for another thread, unless it has grown large.
    pub fn leave(self) {
        let nbytes = self.plain.len() + self.encoder.nbytes();
        KEPT.leave(self, nbytes);
    }
}
