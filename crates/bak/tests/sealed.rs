//! Encrypted backups are recognised by what is documented of them. No real one was available: the test seals the pages
//! of one.

mod common;

use windlass_bak::page::{PAGE_BYTES, PageHeader};
use windlass_bak::table::{Database, Pages};
use windlass_bak::{Error, Listing, PageId, Verifier, page_checksum};

/// Makes the content of every page with records unreadable, and says so in its header.
fn sealed(plain: &[u8]) -> (Vec<u8>, u64) {
    let mut bytes = plain.to_vec();
    let mut count = 0;
    for at in (0..plain.len() - PAGE_BYTES).step_by(512) {
        let page = &mut bytes[at..at + PAGE_BYTES];
        let header = PageHeader::new(page);
        let is_page = header.version() == 1
            && (1..=4).contains(&header.page_type())
            && header.has_checksum()
            && header.checksum() == page_checksum(page);
        if !is_page || header.slots() == 0 {
            continue;
        }
        let mut state = header.id().page | 1;
        for byte in &mut page[96..] {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            *byte ^= (state >> 24) as u8;
        }
        page[4] |= 8;
        let sum = page_checksum(page);
        page[0x3C..0x40].copy_from_slice(&sum.to_le_bytes());
        count += 1;
    }
    (bytes, count)
}

/// The pages of a backup, found by their headers.
struct Found<'b>(&'b [u8]);

impl Pages for Found<'_> {
    fn page(&mut self, id: PageId, page: &mut [u8]) -> Result<bool, Error> {
        let is_it = |at: &usize| {
            let header = PageHeader::new(&self.0[*at..*at + PAGE_BYTES]);
            header.version() == 1 && header.id() == id && header.page_type() > 0
        };
        let mut places = (0..self.0.len() - PAGE_BYTES).step_by(512);
        let Some(at) = places.find(is_it) else {
            return Ok(false);
        };
        page.copy_from_slice(&self.0[at..at + PAGE_BYTES]);
        Ok(true)
    }
}

#[test]
fn pages_that_seem_to_be_encrypted_are_said_to_be_and_no_table_is_read_from_them() {
    let Some(plain) = common::sample("sql2012_pubs_a.bak") else {
        return;
    };
    let (bytes, count) = sealed(&plain);
    assert!(count > 100, "{count}");
    let mut verifier = Verifier::new(1);
    verifier.family(&bytes[..]).unwrap();
    let verified = verifier.finish();
    assert!(verified.is_valid(), "{:?}", verified.findings);
    let unchecked = verified.unchecked.join("\n");
    // A few pages have slots that make sense by chance.
    assert!(
        unchecked.contains("pages that seem to be encrypted")
            && unchecked.contains("with the page flags 0x0208"),
        "{unchecked}"
    );
    let error = Database::open(&mut Found(&bytes)).unwrap_err();
    assert!(
        matches!(error, Error::SealedPage { flags: 0x0208, .. }),
        "{error:?}"
    );
    assert!(Database::open(&mut Found(&plain)).is_ok());
}

#[test]
fn no_page_of_any_real_backup_seems_to_be_encrypted() {
    for sample in common::samples() {
        let mut verifier = Verifier::new(1);
        verifier.family(&sample.bytes[..]).unwrap();
        let unchecked = verifier.finish().unchecked.join("\n");
        assert!(
            !unchecked.contains("encrypted"),
            "{}: {unchecked}",
            sample.name
        );
    }
}

#[test]
fn a_stream_that_is_encrypted_by_the_tape_format_is_named_with_its_algorithm() {
    let Some(mut bytes) = common::sample("sql2012_pubs_a.bak") else {
        return;
    };
    let is_stream = |at: &usize| bytes[*at..].starts_with(b"MQDA");
    let at = (0..bytes.len()).step_by(4).find(is_stream).unwrap();
    bytes[at + 0x10] = 7;
    let words = bytes[at..at + 0x14].chunks(2);
    let sum = words.fold(0, |sum, word| sum ^ u16::from_le_bytes([word[0], word[1]]));
    bytes[at + 0x14..at + 0x16].copy_from_slice(&sum.to_le_bytes());
    let text = Listing::read(&bytes[..]).unwrap_err().to_string();
    let expected = format!("the MQDA stream at file offset {at} has the encryption algorithm 7");
    assert!(text.starts_with(&expected), "{text}");
}
