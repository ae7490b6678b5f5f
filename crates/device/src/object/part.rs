//! Parts of an upload that are on their way.

use crossbeam_channel::Sender;

/// A part on its way; its memory goes back to the writer when the last request for it has ended.
pub(super) struct Part {
    pub(super) memory: Vec<u8>,
    pub(super) back: Sender<Vec<u8>>,
}

impl AsRef<[u8]> for Part {
    fn as_ref(&self) -> &[u8] {
        &self.memory
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        // The writer may be gone.
        let _sent = self.back.send(std::mem::take(&mut self.memory));
    }
}
