//! The transactions in the log of real backups.
#![expect(clippy::unwrap_used, reason = "a test may")]

mod common;

use windlass_bak::{ExtentIndex, PageId, Transactions, Verifier};

fn transactions(bytes: &[u8], position: u16) -> Transactions {
    let mut index = ExtentIndex::default();
    index.add(bytes, position).unwrap();
    index.take_transactions()
}

#[test]
fn every_record_of_every_log_is_read_and_every_transaction_in_them_ends() {
    let (mut records, mut ended, mut read) = (0, 0, 0);
    for sample in common::samples() {
        let sets: u16 = sample.columns[5].parse().unwrap();
        for position in 1..=sets {
            let log = transactions(&sample.bytes, position);
            assert_eq!(log.unreadable_blocks, 0, "{}", sample.name);
            assert!(!log.is_cut);
            let open: Vec<String> = log.open().iter().map(ToString::to_string).collect();
            assert_eq!(open, [""; 0], "{}", sample.name);
            (records, ended) = (records + log.records, ended + log.ended_count);
            read += u64::from(log.records > 0);
        }
    }
    if read > 0 {
        assert!(read > 30, "{read}");
        assert!(records > 4000, "{records}");
        // All from the log backups.
        assert_eq!(ended, 209);
    }
}

/// The end of the log of the virtual log file at the `MSTL` block `at`.
fn set_log_end(bytes: &mut [u8], at: usize, block: u64) {
    let of = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
    let begins = of(at + 0x68);
    let end = begins + 512 * block;
    assert!(end > of(at + 0x3C) && end < of(at + 0x44), "inside the log");
    bytes[at + 0x44..at + 0x4C].copy_from_slice(&end.to_le_bytes());
}

#[test]
fn a_transaction_whose_commit_is_behind_the_end_of_the_log_is_named_with_its_pages() {
    let Some(mut bytes) =
        common::sample("sql2008r2_lab_db1__LOG__SQL2008_db1_LOG_20170518_041831.trn")
    else {
        return;
    };
    let is_here = |at: &usize| {
        let at = *at;
        bytes[at..].starts_with(b"MSTL") && bytes[at + 0x5C..at + 0x60] == 322_u32.to_le_bytes()
    };
    let at = (0..bytes.len() - 512).step_by(512).find(is_here).unwrap();
    // It begins in block 154 and commits in block 156.
    set_log_end(&mut bytes, at, 156);
    let log = transactions(&bytes, 1);
    let open = log.open();
    let [found] = &open[..] else {
        panic!("{open:?}");
    };
    assert_eq!(found.id.to_string(), "0000:0000aad2");
    assert_eq!(format!("{:#}", found.first), "322:154:1");
    let begin = found.begin.as_ref().unwrap();
    assert_eq!(begin.name, "Backup:CommitDifferentialBase");
    assert_eq!(begin.time, "2016-12-12 20:41:52.897");
    assert_eq!((found.rows.inserted, found.rows.modified), (0, 2));
    let pages: Vec<PageId> = found.pages.keys().copied().collect();
    assert_eq!(pages, [PageId { file: 1, page: 29 }]);

    let mut verifier = Verifier::new(1);
    verifier.family(&bytes[..]).unwrap();
    let notes = verifier.finish().notes.join("\n");
    assert!(
        notes.contains("transaction 0000:0000aad2") && notes.contains("on pages 1:29"),
        "{notes}"
    );
}

#[test]
fn a_log_with_a_hole_or_with_slots_that_make_no_sense_is_not_called_read() {
    let name = "sql2008r2_lab_db1__LOG__SQL2008_db1_LOG_20170518_041831.trn";
    let Some(bytes) = common::sample(name) else {
        return;
    };
    let starts = |bytes: &[u8], block: u32| {
        let mut lsn = 322_u32.to_le_bytes().to_vec();
        lsn.extend(block.to_le_bytes());
        let mut blocks = (0..bytes.len() - 512).step_by(4);
        blocks
            .find(|at| bytes[at + 0x0C..at + 0x14] == lsn[..] && bytes[*at] & 0x10 != 0)
            .unwrap()
    };
    let at = starts(&bytes, 154);
    let mut damaged = bytes.clone();
    damaged[at + 4] = 1;
    assert_eq!(transactions(&damaged, 1).unreadable_blocks, 1);
    let mut damaged = bytes;
    damaged[at + 0x10] ^= 1;
    let log = transactions(&damaged, 1);
    assert!(log.unreadable_blocks == 1 && !log.is_complete());
    let mut verifier = Verifier::new(1);
    verifier.family(&damaged[..]).unwrap();
    let unchecked = verifier.finish().unchecked.join("\n");
    assert!(
        unchecked.contains("whether all transactions had ended"),
        "{unchecked}"
    );
}

/// Whatever a log says: it ends, and no record is read twice.
#[test]
fn damaged_logs_never_panic() {
    let name = "sql2008r2_lab_db1__LOG__SQL2008_db1_LOG_20170518_041831.trn";
    let Some(bytes) = common::sample(name) else {
        return;
    };
    let begins = (0..bytes.len() - 4)
        .find(|at| bytes[*at..].starts_with(b"MQTL"))
        .unwrap();
    let mut state = 1_u32;
    let mut next = |limit: usize| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as usize % limit
    };
    for _ in 0..2000 {
        let mut damaged = bytes.clone();
        for _ in 0..=next(20) {
            let at = begins + next(bytes.len() - begins);
            damaged[at] = next(256) as u8;
        }
        let mut index = ExtentIndex::default();
        if index.add(&damaged[..], 1).is_ok() {
            let log = index.take_transactions();
            let text: usize = log.open().iter().map(|open| open.to_string().len()).sum();
            assert!(
                log.records < 2000 && text < 100_000,
                "{} records",
                log.records
            );
        }
    }
}
