//! Verifies the real backups: intact ones pass with the expected counts; in damaged ones the damage
//! is found where it is.
#![expect(clippy::unwrap_used, reason = "a test may")]

mod common;

use std::fmt::Write as _;

use windlass_bak::{Damage, PageId, Verified, Verifier};

fn verify(families: &[&[u8]], position: u16) -> Verified {
    let mut verifier = Verifier::new(position);
    for family in families {
        verifier.family(*family).unwrap();
    }
    verifier.finish()
}

/// The other half of a stripe, if it is among the samples.
fn other_half(name: &str) -> Option<String> {
    let swaps = [
        (
            "Stripe1__RestoreTimeStripe.bak",
            "Stripe2__RestoreTimeStripe1.bak",
        ),
        (
            "Stripe1__RestoreTimeStripe_1.trn",
            "Stripe2__RestoreTimeStripe_1a.trn",
        ),
    ];
    swaps.iter().find_map(|(a, b)| {
        let swap = |from: &str, to: &str| name.ends_with(from).then(|| name.replace(from, to));
        swap(a, b).or_else(|| swap(b, a))
    })
}

#[test]
fn every_backup_has_the_counts_and_findings_that_were_reviewed() {
    let samples = common::samples();
    if samples.is_empty() {
        return;
    }
    let mut shown = String::new();
    for sample in &samples {
        let other = other_half(&sample.name)
            .and_then(|name| samples.iter().find(|sample| sample.name == name));
        let mut families = vec![&sample.bytes[..]];
        families.extend(other.map(|other| &other.bytes[..]));
        let sets: u16 = sample.columns[5].parse().unwrap();
        for position in 1..=sets {
            let verified = verify(&families, position);
            writeln!(shown, "{} set {position}", sample.name).unwrap();
            writeln!(shown, "  {:?}", verified.checked).unwrap();
            for found in &verified.findings {
                writeln!(shown, "  file {}: {}", found.input, found.finding).unwrap();
            }
            for note in &verified.notes {
                writeln!(shown, "  note: {note}").unwrap();
            }
            for unchecked in &verified.unchecked {
                writeln!(shown, "  not checked: {unchecked}").unwrap();
            }
        }
    }
    common::assert_golden("verify.txt", &shown);
}

#[test]
fn the_one_damaged_page_of_the_damaged_database_is_named() {
    let Some(bytes) = common::sample("sql2008r2_CorruptDB.bak") else {
        return;
    };
    let verified = verify(&[&bytes], 1);
    assert!(!verified.is_valid());
    let [found] = &verified.findings[..] else {
        panic!("{:?}", verified.findings);
    };
    let Damage::PageChecksum { page, .. } = found.finding.damage else {
        panic!("{found:?}");
    };
    assert_eq!(page, PageId { file: 1, page: 283 });
}

/// Verifies a sample with some of its bits flipped.
fn verify_with(name: &str, flips: &[usize]) -> Option<Verified> {
    let mut bytes = common::sample(name)?;
    for &at in flips {
        bytes[at] ^= 0x11;
    }
    Some(verify(&[&bytes], 1))
}

/// The findings when one byte of a sample is damaged.
fn found_with(name: &str, flips: &[usize]) -> Vec<Damage> {
    let verified = verify_with(name, flips);
    let findings = verified.into_iter().flat_map(|verified| verified.findings);
    findings.map(|found| found.finding.damage).collect()
}

const CHECKSUMMED: &str =
    "sql2008r2_lab_Cube_Query_History__FULL__SQL2008_Cube_Query_History_FULL_20170518_041737.bak";
const COMPRESSED: &str = "sql2022c_CompanyORM.bak";
const PLAIN: &str = "sql2019_Northwind.bak";

/// Offset of the first data page with torn-page bits in [`PLAIN`].
fn torn_page() -> usize {
    let bytes = common::sample(PLAIN).unwrap();
    let pages = (0x2200..bytes.len() - 8192).step_by(8192);
    let is_torn = |at: &usize| bytes[*at..at + 2] == [1, 1] && bytes[at + 5] & 1 == 1;
    pages.into_iter().find(is_torn).unwrap()
}

#[test]
fn every_kind_of_checksum_finds_its_damage_and_the_walk_goes_on_behind_it() {
    if common::folder().is_none() {
        return;
    }
    let is_found = |name, at: usize, wanted: fn(&Damage) -> bool| {
        let found = found_with(name, &[at]);
        assert!(found.iter().any(wanted), "{name} at {at}: {found:?}");
        found.len()
    };
    is_found(PLAIN, 0x3B_2E00 + 0x20, |damage| {
        matches!(damage, Damage::DescriptorChecksum { .. })
    });
    let count = is_found(PLAIN, 0x21E8 + 0x10, |damage| {
        matches!(damage, Damage::StreamChecksum { .. })
    });
    assert_eq!(
        count, 1,
        "the pages behind the header are read none the less"
    );
    is_found(PLAIN, torn_page() + 1023, |damage| {
        matches!(damage, Damage::TornPage { .. })
    });
    is_found(CHECKSUMMED, 0x2200 + 0x1_0000 + 700, |damage| {
        matches!(damage, Damage::PageChecksum { .. })
    });
    is_found(PLAIN, 0x3B_3200 + 0x0C, |damage| {
        matches!(damage, Damage::LogBlock { .. })
    });
    is_found(CHECKSUMMED, 0x2200 + 0x1_0000 * 3 + 40, |damage| {
        matches!(damage, Damage::BackupChecksum { .. })
    });
    is_found(COMPRESSED, 0x1_0000, |damage| {
        matches!(damage, Damage::RecordChecksum { .. })
    });
}

#[test]
fn a_file_that_is_cut_off_anywhere_is_incomplete_and_never_valid() {
    for name in [CHECKSUMMED, COMPRESSED, PLAIN] {
        let Some(bytes) = common::sample(name) else {
            return;
        };
        let step = bytes.len() / 61;
        for end in (step..bytes.len()).step_by(step) {
            let mut verifier = Verifier::new(1);
            match verifier.family(&bytes[..end]) {
                Ok(()) => assert!(!verifier.finish().is_valid(), "{name} up to {end}"),
                // Cut off before the set starts.
                Err(error) => assert!(end < 0x4000, "{name} up to {end}: {error}"),
            }
        }
    }
}

#[test]
fn damaged_bytes_anywhere_never_panic() {
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    let mut random = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    for sample in common::samples() {
        for _ in 0..6 {
            let mut bytes = sample.bytes.clone();
            for _ in 0..=(random() % 8) {
                // Half of the damage is near the start, where the structures are.
                let range = if random() % 2 == 0 {
                    0x4000
                } else {
                    bytes.len()
                };
                let at = random() as usize % range.min(bytes.len());
                bytes[at] ^= 1 << (random() % 8);
            }
            let mut verifier = Verifier::new(1);
            if verifier.family(&bytes[..]).is_ok() {
                verifier.finish();
            }
        }
    }
}
