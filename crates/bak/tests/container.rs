//! Compressed containers with other codecs than `MS_XPRESS`. No real one was available: the test packs real plain
//! backups in records as a server packs them.
#![expect(clippy::unwrap_used, reason = "a test may")]

mod common;

use windlass_bak::columns;
use windlass_bak::{Census, Error, ExtentIndex, Listing, PlainStream, Tag, Verified, Verifier};
use windlass_codec::{Compression, Encoder, Stored};

const RECORD_BYTES: usize = 65536;

/// The checksum of a payload.
fn checksum(payload: &[u8]) -> u32 {
    payload.chunks(4).fold(0, |sum: u32, word| {
        let mut bytes = [0; 4];
        bytes[..word.len()].copy_from_slice(word);
        sum.rotate_left(1) ^ u32::from_le_bytes(bytes)
    })
}

fn head(words: (u32, u32)) -> Vec<u8> {
    let mut head = b"MSSQLBAK".to_vec();
    head.extend(words.0.to_le_bytes());
    head.extend(words.1.to_le_bytes());
    head.resize(0x1E0, 0);
    head
}

fn record(encoder: &mut Encoder, piece: &[u8]) -> Vec<u8> {
    let mut payload = vec![0; piece.len()];
    let Stored::Compressed { bytes, .. } = encoder.encode(piece, &mut payload).unwrap() else {
        panic!("it shrinks");
    };
    payload.truncate(bytes);
    let mut record = vec![0; 0x1C];
    record[0] = 0x21;
    record[1] = u8::try_from(piece.len() / 512).unwrap();
    record[2..4].copy_from_slice(&u16::try_from(bytes).unwrap().to_le_bytes());
    record[0x18..].copy_from_slice(&checksum(&payload).to_le_bytes());
    record.extend(payload);
    record
}

/// A plain backup in a compressed container.
fn packed(plain: &[u8], words: (u32, u32), compression: Compression) -> Vec<u8> {
    let census = Census::read(plain).unwrap();
    let is_filemark = |entry: &&windlass_bak::Entry| !entry.is_stream && entry.tag == Tag::SFMB;
    let filemarks = census.entries.iter().filter(is_filemark);
    let mut encoder = Encoder::new(compression, RECORD_BYTES).unwrap();
    encoder.turn_filters_off();
    let mut file = head(words);
    let mut at = 0;
    for mark in filemarks {
        let (begins, bytes) = (mark.place.stream as usize, mark.bytes as usize);
        for piece in plain[at..begins].chunks(RECORD_BYTES) {
            file.extend(record(&mut encoder, piece));
        }
        // Zeros up to a multiple of the block size.
        let padding = (file.len() + 0x18).next_multiple_of(bytes) - file.len() - 0x18;
        file.extend([0x24, 0]);
        file.extend(u16::try_from(padding).unwrap().to_le_bytes());
        file.resize(file.len() + 0x14 + padding, 0);
        file.extend_from_slice(&plain[begins..begins + bytes]);
        at = begins + bytes;
    }
    assert_eq!(at, plain.len(), "a filemark is at the end");
    file
}

fn verify(file: &[u8]) -> Verified {
    let mut verifier = Verifier::new(1);
    verifier.family(file).unwrap();
    verifier.finish()
}

#[test]
fn records_of_zstd_and_deflate_are_recognised_by_themselves_and_expand_to_the_same_backup() {
    let Some(plain) = common::sample("sql2012_pubs_a.bak") else {
        return;
    };
    let expected = verify(&plain);
    let codecs = [
        ("ZSTD", Compression::ZSTD_LOW),
        ("QAT_DEFLATE", Compression::QAT_DEFLATE),
    ];
    for (name, compression) in codecs {
        let file = packed(&plain, (2, 131), compression);
        assert!(file.len() < plain.len() / 2, "{} bytes", file.len());
        let found = verify(&file);
        assert!(found.is_valid(), "{name}: {:?}", found.findings);
        assert!(found.checked.records > 50, "{:?}", found.checked);
        let mut checked = found.checked;
        checked.records = 0;
        assert_eq!(checked, expected.checked, "{name}");

        let listing = Listing::read(&file[..]).unwrap();
        let row = columns::headers(&listing).remove(0);
        let algorithm = row.iter().find(|(name, _)| *name == "CompressionAlgorithm");
        assert_eq!(algorithm.unwrap().1.to_string(), name);

        let mut stream = PlainStream::open(&file[..]).unwrap();
        let mut expanded = Vec::new();
        assert!(stream.read_into(&mut expanded, plain.len()).unwrap());
        assert!(expanded == plain, "{name}");
        let mut index = ExtentIndex::default();
        index.add(&file[..], 1).unwrap();
        assert_eq!(index.findings, []);
    }
}

#[test]
fn a_damaged_record_of_zstd_is_named_and_the_others_are_read() {
    let Some(plain) = common::sample("sql2012_pubs_a.bak") else {
        return;
    };
    let mut file = packed(&plain, (2, 131), Compression::ZSTD_LOW);
    let at = file.len() / 2;
    file[at] ^= 1;
    let found = verify(&file);
    assert!(!found.is_valid());
    let first = found.findings[0].finding.to_string();
    assert!(
        first.contains("checksum of the compressed record"),
        "{first}"
    );
}

#[test]
fn unknown_version_words_need_a_first_record_that_can_be_read() {
    let Some(mut real) = common::sample("sql2022c_CompanyORM.bak") else {
        return;
    };
    // MS_XPRESS behind other words shows itself, too.
    real[12] = 77;
    assert!(verify(&real).is_valid());
    let listing = Listing::read(&real[..]).unwrap();
    assert_eq!(listing.walked.words.unwrap().to_string(), "2 and 77");

    let payload_at = 0x1E0 + 0x1C;
    let damages: [(&str, usize); 3] = [
        ("is not a record of compressed data", 0x1E0),
        ("checksum of the compressed record", payload_at),
        ("checksum of the compressed record", 0x1E0 + 0x18),
    ];
    for (reason, at) in damages {
        let mut file = real.clone();
        file[at] ^= 0x10;
        let error = Listing::read(&file[..]).unwrap_err();
        assert!(matches!(error, Error::ContainerVersion { .. }), "{error:?}");
        let text = error.to_string();
        assert!(
            text.contains(reason) && text.contains("words 2 and 77"),
            "{text}"
        );
        let shown = format!("{:02X} {:02X}", file[0x1E0], file[0x1E1]);
        assert!(text.contains(&shown), "{text}");
    }
    // A whole record that is not the start of a backup.
    let mut file = head((4, 5));
    let mut encoder = Encoder::new(Compression::ZSTD_LOW, RECORD_BYTES).unwrap();
    encoder.turn_filters_off();
    file.extend(record(&mut encoder, &[7; 1024]));
    let text = Listing::read(&file[..]).unwrap_err().to_string();
    assert!(text.contains("does not expand to a media header"), "{text}");
    // Files that end anywhere in the first record.
    for end in [0x1E0, 0x1E1, 0x1E0 + 0x1B, file.len() - 1] {
        let error = Listing::read(&file[..end]).unwrap_err();
        assert!(matches!(error, Error::ContainerVersion { .. }), "{error:?}");
    }
}
