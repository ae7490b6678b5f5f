//! A compressor at fault is found before a backup succeeds.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use windlass_codec::{
    Compression, DeflateFailed, DeflateProvider, Encoder, FRAME_BYTES_MAX, RawDeflate, Stored,
};
use windlass_pipeline::{Error, Unobserved, backup};

use crate::support::{Folder, devices, prepared, request, snapshot};

/// Changes a byte of some chunks before it compresses them.
#[derive(Debug, Clone)]
struct AtFault {
    is_wrong: fn(u64) -> bool,
    made: Arc<AtomicU64>,
}

struct Compressor(AtFault, Encoder);

impl std::fmt::Debug for Compressor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

impl DeflateProvider for AtFault {
    fn compressor(&self) -> Option<Box<dyn RawDeflate>> {
        let mut encoder = Encoder::new(Compression::QAT_DEFLATE, FRAME_BYTES_MAX).ok()?;
        encoder.turn_filters_off();
        Some(Box::new(Compressor(self.clone(), encoder)))
    }
}

impl RawDeflate for Compressor {
    fn deflate(&mut self, input: &[u8], output: &mut [u8]) -> Result<Option<usize>, DeflateFailed> {
        let Self(fault, encoder) = self;
        let mut input = input.to_vec();
        if (fault.is_wrong)(fault.made.fetch_add(1, Ordering::Relaxed)) {
            let middle = input.len() / 2;
            input[middle] ^= 1;
        }
        let mut room = vec![0; input.len()];
        match encoder.encode(&input, &mut room) {
            Ok(Stored::Compressed { bytes, .. }) if bytes <= output.len() => {
                output[..bytes].copy_from_slice(&room[..bytes]);
                Ok(Some(bytes))
            }
            _ => Ok(None),
        }
    }
}

/// The backup with that fault, and the number of chunks it compressed.
fn with(is_wrong: fn(u64) -> bool) -> (Result<(), Error>, u64) {
    let Folder { folder, database } = prepared(9000);
    let devices = devices(folder.path(), &["1.bak"]);
    let fault = AtFault {
        is_wrong,
        made: Arc::default(),
    };
    let mut request = request(&devices, Compression::QAT_DEFLATE);
    request.deflate = Some(Arc::new(fault.clone()));
    request.tuning.threads = Some(1);
    let result = backup(&request, snapshot(&database), &Unobserved).map(drop);
    assert_eq!(result.is_ok(), folder.path().join("1.bak").exists());
    (result, fault.made.load(Ordering::Relaxed))
}

#[test]
fn what_a_compressor_at_fault_made_is_no_backup() {
    let (result, chunks) = with(|_| false);
    result.unwrap();
    assert!(chunks > 3, "{chunks}");
    let (result, _) = with(|chunk| chunk == 0);
    let error = result.unwrap_err();
    assert!(matches!(error, Error::NotReversible { .. }), "{error}");
}

#[test]
fn the_chunk_that_ends_a_file_is_expanded_too() {
    static LAST: AtomicU64 = AtomicU64::new(u64::MAX);
    let (result, chunks) = with(|chunk| chunk == LAST.load(Ordering::Relaxed));
    result.unwrap();
    LAST.store(chunks - 1, Ordering::Relaxed);
    let (result, _) = with(|chunk| chunk == LAST.load(Ordering::Relaxed));
    assert!(matches!(result, Err(Error::NotReversible { .. })));
}
