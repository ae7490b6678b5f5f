//! The XPRESS decoder on backups written by SQL Server.
//!
//! Framing: `sql-server-bak` section 7. Records follow each other from 0x1E0 on; each has one
//! block.

use windlass_codec::xpress::BlockDecoder;

use crate::contents;

const RECORDS_AT: usize = 0x1E0;
const DATA: u8 = 0x21;
const PADDING: u8 = 0x24;
const INDEX: u8 = 0x2C;

fn u16_at(bytes: &[u8], at: usize) -> usize {
    usize::from(u16::from_le_bytes([bytes[at], bytes[at + 1]]))
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap())
}

/// `c = rotl(c, 1) XOR word` over the payload, padded with zeros.
fn record_checksum(payload: &[u8]) -> u32 {
    payload.chunks(4).fold(0, |checksum: u32, chunk| {
        let mut word = [0; 4];
        word[..chunk.len()].copy_from_slice(chunk);
        checksum.rotate_left(1) ^ u32::from_le_bytes(word)
    })
}

/// Expands every data record of a backup; returns their number.
fn expand_records(backup: &[u8]) -> usize {
    let mut decoder = BlockDecoder::new();
    let mut block = vec![0; 65_536];
    let mut records = 0;
    let mut at = RECORDS_AT;
    while at < backup.len() {
        if backup[at..].starts_with(b"SFMB") {
            at += u16_at(backup, at + 8);
            continue;
        }
        let payload_bytes = u16_at(backup, at + 2);
        match backup[at] {
            DATA => {
                let expanded = &mut block[..usize::from(backup[at + 1]) * 512];
                let payload = &backup[at + 0x1C..][..payload_bytes];
                assert_eq!(
                    record_checksum(payload),
                    u32_at(backup, at + 0x18),
                    "@{at:#x}"
                );
                decoder
                    .decode_block(payload, expanded)
                    .unwrap_or_else(|damage| panic!("record @{at:#x}: {damage}"));
                records += 1;
                at += 0x1C + payload_bytes;
            }
            PADDING => at += 0x18 + payload_bytes,
            INDEX => at += 0x18 + u32_at(backup, at + 0x20) as usize,
            kind => panic!("record kind {kind:#x} @{at:#x}"),
        }
    }
    records
}

#[test]
fn every_record_of_real_backups_expands_to_its_announced_length() {
    let mut records = 0;
    for (path, backup) in contents::files("data/bak") {
        if backup.starts_with(b"MSSQLBAK") {
            let here = expand_records(&backup);
            println!("{}: {here} records", path.display());
            assert!(here > 2, "{}", path.display());
            records += here;
        }
    }
    println!("{records} records expanded");
}
