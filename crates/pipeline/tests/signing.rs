//! Signed sets: an attacker without the signer's key can change nothing, even if everything else is
//! corrected.
//!
//! The attacker in these tests takes media apart and rewrites them with every checksum, count, index and
//! binding corrected. Each test also shows that the changes pass where no signature is required.
#![expect(clippy::unwrap_used, reason = "what cannot be set up fails its test")]

use std::path::PathBuf;
use std::sync::Arc;

use rusqlite::Connection;
use windlass_base::{Guid, blake3, checksum};
use windlass_codec::Compression;
use windlass_crypt::{Cipher, KeyRing, Passphrase, Recipient, Signer, SigningKey};
use windlass_device::DeviceAddress;
use windlass_media::{
    ChunkHeader, FamilyReader, FamilyWriter, MediaHeader, SetConfiguration, chunk_mix,
};
use windlass_pipeline::{
    BackupRequest, Damage, Encryption, Error, MediaRequest, MediaSet, OnDamage, ReadKeys,
    ReadRequest, Selection, Tuning, Unobserved, backup, restore, restore_selected, verify,
};
use windlass_source::sqlite::{SnapshotOptions, SqliteSnapshot};
use windlass_source::{Recovery, RestoreTarget};

const STRIPES: [&str; 2] = ["1.bak", "2.bak"];

/// A folder with a database of a few MB, and the keys that sign its backups.
struct Bench {
    folder: tempfile::TempDir,
    key: Arc<SigningKey>,
}

impl Bench {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let connection = Connection::open(folder.path().join("app.db")).unwrap();
        connection
            .execute_batch(
                "PRAGMA page_size = 8192; CREATE TABLE t(id INTEGER PRIMARY KEY, body TEXT);
                 WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3000)
                 INSERT INTO t SELECT i, 'row ' || i || hex(randomblob(250)) FROM n",
            )
            .unwrap();
        let key = Arc::new(SigningKey::generate().unwrap());
        Self { folder, key }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn devices(&self, names: &[&str]) -> Vec<DeviceAddress> {
        names
            .iter()
            .map(|name| DeviceAddress::disk(self.path(name)))
            .collect()
    }

    fn back_up(&self, names: &[&str], key: Option<&Arc<SigningKey>>, is_encrypted: bool) {
        let recipients = vec![Recipient::Passphrase(passphrase())];
        let new = BackupRequest::new(self.devices(names), Compression::NONE);
        let request = BackupRequest {
            signing: key.map(Arc::clone),
            encryption: is_encrypted.then_some(Encryption {
                algorithm: Cipher::Aes256,
                recipients,
            }),
            tuning: Tuning {
                transfer_bytes: Some(64 << 10),
                ..Tuning::default()
            },
            name: Some("nightly".to_owned()),
            description: Some("of the shop".to_owned()),
            media: MediaRequest {
                media_name: Some("media".to_owned()),
                ..new.media
            },
            ..new
        };
        let options = SnapshotOptions::default();
        let snapshot = SqliteSnapshot::open(&self.path("app.db"), &options).unwrap();
        backup(&request, Box::new(snapshot), &Unobserved).unwrap();
    }

    /// Restores the first set and discards the data, with or without a required signature of one of
    /// `signers`.
    fn restore(&self, names: &[&str], signers: &[Signer]) -> Result<Option<Signer>, Error> {
        let media = MediaSet::open(&self.devices(names))?;
        restore(&media, 1, &request(signers), &Nowhere, &Unobserved).map(|report| report.signer)
    }

    fn verify(&self, names: &[&str], keys: ReadKeys) -> Result<Option<Signer>, Error> {
        let media = MediaSet::open(&self.devices(names))?;
        let request = ReadRequest {
            keys,
            ..request(&[])
        };
        verify(&media, 1, &request, &Unobserved).map(|report| report.signer)
    }

    fn signer(&self) -> Signer {
        self.key.signer()
    }

    fn forgery(&self, names: &[&str]) -> Forgery {
        let families = names
            .iter()
            .map(|name| std::fs::read(self.path(name)).unwrap());
        Forgery::of(&families.collect::<Vec<_>>())
    }

    fn put(&self, names: &[&str], forgery: &Forgery) {
        for (name, family) in names.iter().zip(forgery.families()) {
            std::fs::write(self.path(name), family).unwrap();
        }
    }
}

fn passphrase() -> Passphrase {
    Passphrase::new("open sesame".to_owned())
}

fn request(signers: &[Signer]) -> ReadRequest {
    let ring = KeyRing {
        passphrases: vec![passphrase()],
        ..KeyRing::default()
    };
    ReadRequest {
        keys: ReadKeys {
            ring: Arc::new(ring),
            signed_by: signers.to_vec(),
            ..ReadKeys::default()
        },
        on_damage: OnDamage::Stop,
        tuning: Tuning::default(),
    }
}

/// A target that discards its data.
#[derive(Debug)]
struct Nowhere;

impl RestoreTarget for Nowhere {
    fn write(&self, _: u16, _: u64, _: &[u8]) -> Result<(), windlass_source::Error> {
        Ok(())
    }

    fn finish(self: Box<Self>, _: Recovery) -> Result<(), windlass_source::Error> {
        Ok(())
    }

    fn abandon(self: Box<Self>) -> Result<(), windlass_source::Error> {
        Ok(())
    }
}

/// Media of one set, taken apart.
#[derive(Clone)]
struct Forgery {
    headers: Vec<MediaHeader>,
    start: SetConfiguration,
    last: SetConfiguration,
    /// Of each family.
    chunks: Vec<Vec<(ChunkHeader, Vec<u8>)>>,
}

impl Forgery {
    fn of(families: &[Vec<u8>]) -> Self {
        let (mut headers, mut all, mut ends) = (Vec::new(), Vec::new(), Vec::new());
        for family in families {
            let bytes = family.as_slice();
            let (reader, header) = FamilyReader::open(&bytes).unwrap();
            let set = reader.list().sets.remove(0);
            let mut chunks = Vec::new();
            let visit = &mut |header: ChunkHeader, at: u64| {
                let payload = &family[at as usize..][..header.stored_bytes as usize];
                chunks.push((header, payload.to_vec()));
                true
            };
            ends.push(reader.walk(&set, visit).unwrap().configuration);
            all.push(chunks);
            headers.push((header, reader.first_set().unwrap()));
        }
        Self {
            start: headers[0].1.clone(),
            headers: headers.into_iter().map(|(header, _)| header).collect(),
            last: ends.remove(0),
            chunks: all,
        }
    }

    /// Puts the totals right.
    fn count(&mut self) {
        let all = || self.chunks.iter().flatten();
        let raw = |(header, _): &(ChunkHeader, Vec<u8>)| u64::from(header.raw_bytes);
        let sum = |sum: u64, (header, _): &(ChunkHeader, Vec<u8>)| {
            sum.wrapping_add(chunk_mix(header.ordinal, header.raw_checksum))
        };
        self.last.chunk_count = all().count() as u64;
        self.last.backup_bytes = all().map(raw).sum();
        self.last.stored_bytes = all()
            .map(|(header, _)| u64::from(header.stored_bytes))
            .sum();
        self.last.set_checksum = all().fold(0, sum);
    }

    /// Writes the media, with a binding that fits.
    fn families(&self) -> Vec<Vec<u8>> {
        let mut last = self.last.clone();
        last.binding = self.headers[0].binding(&self.start).unwrap();
        let family = |(header, chunks): (&MediaHeader, &Vec<(ChunkHeader, Vec<u8>)>)| {
            let (mut writer, mut bytes) = FamilyWriter::format(header).unwrap();
            bytes.extend(writer.begin_set(&self.start).unwrap());
            for (chunk, payload) in chunks {
                writer.chunk_header(chunk, 4096, &mut bytes).unwrap();
                bytes.extend(payload);
                writer.chunk_written(&mut bytes);
            }
            bytes.extend(writer.end_of_data(&last).unwrap());
            bytes.extend(writer.end_set().unwrap());
            bytes
        };
        self.headers.iter().zip(&self.chunks).map(family).collect()
    }

    /// Changes a bit of a payload, and every checksum of it.
    fn flip(&mut self, family: usize, chunk: usize) {
        let (header, payload) = &mut self.chunks[family][chunk];
        payload[1000] ^= 4;
        header.stored_checksum = checksum(payload);
        if header.tag.is_none() {
            header.raw_checksum = header.stored_checksum;
        }
    }
}

fn damage(found: Result<Option<Signer>, Error>) -> Damage {
    match found {
        Err(Error::SetDamaged { damage, .. }) => damage,
        other => panic!("{other:?}"),
    }
}

fn not_signed(found: &Result<Option<Signer>, Error>) -> bool {
    matches!(found, Err(Error::NotSigned { .. }))
}

type Attack = (&'static str, fn(&mut Forgery));

/// What does not need the key of an encrypted set.
const ATTACKS: [Attack; 13] = [
    ("a bit of a payload", |media| {
        media.flip(1, 0);
        media.count();
    }),
    ("a bit of a payload, with its digest", |media| {
        media.flip(0, 1);
        let (header, payload) = &mut media.chunks[0][1];
        header.payload_digest = Some(blake3(payload));
        media.count();
    }),
    ("all digests left out", |media| {
        media.flip(0, 0);
        for (header, _) in media.chunks.iter_mut().flatten() {
            header.payload_digest = None;
        }
        media.count();
    }),
    ("the end of the file left out", |media| {
        // The number of a chunk does not say where its pages are: they are made side by side.
        let end = |header: &ChunkHeader| {
            header
                .runs
                .last()
                .map_or(0, |run| run.offset + u64::from(run.bytes))
        };
        let size = media.last.files[0].size_bytes;
        let mut bytes = 0;
        for family in &mut media.chunks {
            family.retain(|(header, _)| {
                let is_end = end(header) == size;
                bytes += u64::from(header.raw_bytes) * u64::from(is_end);
                !is_end
            });
        }
        let left = media.chunks.iter_mut().flatten();
        for (ordinal, (header, _)) in (0..).zip(left) {
            header.ordinal = ordinal;
        }
        media.count();
        let file = &mut media.last.files[0];
        file.size_bytes -= bytes;
        file.backup_bytes -= bytes;
        media.start.files[0].size_bytes -= bytes;
    }),
    ("the contents of two chunks exchanged", |media| {
        let family = &mut media.chunks[0];
        let (first, second) = (family[0].clone(), family[1].clone());
        for (to, from) in [(0, second), (1, first)] {
            let (header, payload) = &mut family[to];
            header.raw_checksum = from.0.raw_checksum;
            header.stored_checksum = from.0.stored_checksum;
            header.payload_digest = from.0.payload_digest;
            header.digests = from.0.digests;
            *payload = from.1;
        }
        media.count();
    }),
    ("the order of two chunks", |media| {
        media.chunks[1].swap(0, 1);
    }),
    ("a chunk on another stripe", |media| {
        let mut moved = media.chunks[0].remove(0);
        moved.0.family = 2;
        media.chunks[1].push(moved);
    }),
    ("stripes in another order", |media| {
        media.chunks.swap(0, 1);
        for (family, chunks) in (1..).zip(&mut media.chunks) {
            for (header, _) in chunks {
                header.family = family;
            }
        }
    }),
    ("the set's name", |media| {
        "weekly".clone_into(&mut media.start.name);
        "weekly".clone_into(&mut media.last.name);
    }),
    ("its description, at the end alone", |media| {
        "of another shop".clone_into(&mut media.last.description);
    }),
    ("its time", |media| {
        let time = "2031-01-01 00:00:00".parse().ok();
        media.start.started = time;
        media.last.started = time;
        media.last.finished = time;
    }),
    ("the media's name", |media| {
        for header in &mut media.headers {
            "other media".clone_into(&mut header.media_name);
        }
    }),
    ("a set of other media", |media| {
        let guid = Guid::random();
        for header in &mut media.headers {
            header.media_set_guid = guid;
        }
    }),
];

#[test]
fn whatever_is_changed_in_a_signed_set_is_refused_although_all_else_is_right() {
    let bench = Bench::new();
    bench.back_up(&STRIPES, Some(&bench.key), false);
    let genuine = bench.forgery(&STRIPES);
    // Taken apart and rewritten, it is still the signer's: the positions of streams are not signed.
    bench.put(&STRIPES, &genuine);
    assert_eq!(
        bench.restore(&STRIPES, &[bench.signer()]).unwrap(),
        Some(bench.signer())
    );
    for (what, attack) in ATTACKS {
        let mut media = genuine.clone();
        attack(&mut media);
        bench.put(&STRIPES, &media);
        let unasked = bench.restore(&STRIPES, &[]);
        assert!(unasked.is_ok(), "{what}: {unasked:?}");
        let found = damage(bench.restore(&STRIPES, &[bench.signer()]));
        let is_named = matches!(
            found,
            Damage::ForgedSignature | Damage::OtherChunks { .. } | Damage::UnsignedPayload { .. }
        );
        assert!(is_named, "{what}: {found}");
        // A verification reports it too, whoever was expected to have signed.
        damage(bench.verify(&STRIPES, ReadKeys::default()));
    }
}

#[test]
fn a_set_without_a_signature_or_with_somebody_elses_is_refused() {
    let bench = Bench::new();
    let other = Arc::new(SigningKey::generate().unwrap());
    bench.back_up(&STRIPES, Some(&bench.key), false);
    let genuine = bench.forgery(&STRIPES);
    let mut stripped = genuine.clone();
    stripped.last.signature.clear();
    bench.put(&STRIPES, &stripped);
    bench.restore(&STRIPES, &[]).unwrap();
    let refused = bench.restore(&STRIPES, &[bench.signer()]);
    assert!(not_signed(&refused), "{refused:?}");
    // Signed again, correctly, by another key.
    let mut again = genuine.clone();
    again.flip(0, 0);
    let (header, payload) = &mut again.chunks[0][0];
    header.payload_digest = Some(blake3(payload));
    again.count();
    again.last.binding = again.headers[0].binding(&again.start).unwrap();
    again.last.chunk_headers = again.chunk_headers();
    again.last.signature = other.sign(&again.last.signed_bytes()).unwrap();
    bench.put(&STRIPES, &again);
    let refused = bench.restore(&STRIPES, &[bench.signer()]);
    assert!(not_signed(&refused), "{refused:?}");
    let both = [bench.signer(), other.signer()];
    assert_eq!(
        bench.restore(&STRIPES, &both).unwrap(),
        Some(other.signer())
    );
    // With the other key's name on it, or the first one's.
    let mut relabelled = again.clone();
    relabelled.last.signature[1..33].copy_from_slice(&genuine.last.signature[1..33]);
    bench.put(&STRIPES, &relabelled);
    let found = damage(bench.restore(&STRIPES, &[bench.signer()]));
    assert_eq!(found, Damage::ForgedSignature);
    // The signature of another set.
    let mut taken = again;
    taken.last.signature = genuine.last.signature;
    bench.put(&STRIPES, &taken);
    let found = damage(bench.restore(&STRIPES, &[bench.signer()]));
    assert_eq!(found, Damage::ForgedSignature);
}

impl Forgery {
    /// The hashes of chunk headers that fit.
    fn chunk_headers(&self) -> Vec<u8> {
        let hash = |family: Vec<u8>| {
            let bytes = family.as_slice();
            let (reader, _) = FamilyReader::open(&bytes).unwrap();
            let set = reader.list().sets.remove(0);
            reader.walk(&set, &mut |_, _| true).unwrap().chunk_headers
        };
        self.families().into_iter().flat_map(hash).collect()
    }
}

#[test]
fn an_encrypted_set_shows_its_signer_without_its_key() {
    let bench = Bench::new();
    bench.back_up(&STRIPES, Some(&bench.key), true);
    let keys = ReadKeys {
        without_key: true,
        signed_by: vec![bench.signer()],
        ..ReadKeys::default()
    };
    let found = bench.verify(&STRIPES, keys.clone()).unwrap();
    assert_eq!(found, Some(bench.signer()));
    assert_eq!(
        bench.restore(&STRIPES, &[bench.signer()]).unwrap(),
        Some(bench.signer())
    );
    let genuine = bench.forgery(&STRIPES);
    let mut changed = genuine.clone();
    changed.flip(1, 1);
    bench.put(&STRIPES, &changed);
    let found = damage(bench.verify(&STRIPES, keys.clone()));
    assert!(matches!(found, Damage::UnsignedPayload { .. }), "{found}");
    // Anyone who can read the set could seal it again, but the signature would not be the signer's.
    let mut named = genuine;
    named.last.user = "somebody".to_owned();
    bench.put(&STRIPES, &named);
    assert_eq!(
        damage(bench.verify(&STRIPES, keys)),
        Damage::ForgedSignature
    );
}

#[test]
fn continuing_after_errors_takes_no_chunk_that_was_not_signed() {
    let bench = Bench::new();
    bench.back_up(&STRIPES, Some(&bench.key), false);
    let mut media = bench.forgery(&STRIPES);
    media.flip(0, 0);
    // The header is as it was signed: the payload is damaged, and named as that.
    let good = bench.forgery(&STRIPES);
    media.chunks[0][0].0 = good.chunks[0][0].0.clone();
    bench.put(&STRIPES, &media);
    let request = ReadRequest {
        on_damage: OnDamage::Continue,
        ..request(&[bench.signer()])
    };
    let opened = MediaSet::open(&bench.devices(&STRIPES)).unwrap();
    let report = restore(&opened, 1, &request, &Nowhere, &Unobserved).unwrap();
    assert_eq!(report.damaged.count, 1);
    drop(opened);
    // With checksums that fit the other content, no header is as it was signed.
    media.flip(0, 0);
    media.flip(0, 0);
    media.count();
    media.chunks[0][0].0.stored_checksum ^= 1;
    bench.put(&STRIPES, &media);
    let opened = MediaSet::open(&bench.devices(&STRIPES)).unwrap();
    let refused = restore(&opened, 1, &request, &Nowhere, &Unobserved).unwrap_err();
    assert!(matches!(refused, Error::SetDamaged { .. }), "{refused}");
}

/// Selects one range of the first file, and counts the bytes received.
struct Wanted(u64);

impl Selection for Wanted {
    fn wants(&self, file_id: u16, offset: u64, bytes: u64) -> bool {
        file_id == 1 && offset < 70_000 && offset + bytes > 66_000
    }

    fn take(&mut self, _: u16, _: u64, bytes: &[u8]) -> Result<(), windlass_source::Error> {
        self.0 += bytes.len() as u64;
        Ok(())
    }
}

#[test]
fn single_pages_are_taken_from_no_set_that_was_changed_anywhere() {
    let bench = Bench::new();
    bench.back_up(&STRIPES, Some(&bench.key), false);
    let take = |signers: &[Signer]| {
        let media = MediaSet::open(&bench.devices(&STRIPES)).unwrap();
        let mut wanted = Wanted(0);
        let done = restore_selected(&media, 1, &request(signers), &mut wanted, &Unobserved);
        done.map(|_| wanted.0).map_err(|error| (error, wanted.0))
    };
    assert_eq!(take(&[bench.signer()]).unwrap(), 65_536);
    let genuine = bench.forgery(&STRIPES);
    for (what, attack) in ATTACKS {
        let mut media = genuine.clone();
        attack(&mut media);
        bench.put(&STRIPES, &media);
        take(&[]).unwrap();
        // A damaged payload is noticed only when it is selected.
        if what != "a bit of a payload" || wants(&media) {
            let (error, taken) = take(&[bench.signer()]).unwrap_err();
            assert_eq!(taken, 0, "{what}: {error}");
        }
    }
}

/// Whether the chunk that the first attack changes is the one that is wanted.
fn wants(media: &Forgery) -> bool {
    media.chunks[1][0].0.runs[0].offset == 65_536
}

#[test]
fn chunks_that_an_encrypted_set_lacks_or_has_twice_are_noticed_with_its_key_and_so_is_its_key_block()
 {
    const WITHOUT_COUNT: Attack = ("a chunk left out, and not counted", |media| {
        media.chunks[0].remove(0);
    });
    let attacks: [Attack; 5] = [
        WITHOUT_COUNT,
        ("a chunk left out", |media| {
            media.chunks[0].remove(0);
            media.count();
        }),
        ("a chunk twice", |media| {
            let mut again = media.chunks[0][0].clone();
            again.0.family = 2;
            media.chunks[1].push(again);
        }),
        ("a chunk twice, under another number", |media| {
            let mut again = media.chunks[0][0].clone();
            again.0.family = 2;
            again.0.ordinal = media.last.chunk_count;
            media.chunks[1].push(again);
            media.count();
        }),
        ("a recipient", |media| {
            let last = media.last.key_block.len() - 1;
            media.last.key_block[last] ^= 1;
        }),
    ];
    let bench = Bench::new();
    bench.back_up(&STRIPES, None, true);
    let genuine = bench.forgery(&STRIPES);
    bench.put(&STRIPES, &genuine);
    bench.restore(&STRIPES, &[]).unwrap();
    for (what, attack) in attacks {
        let mut media = genuine.clone();
        attack(&mut media);
        bench.put(&STRIPES, &media);
        let refused = bench.restore(&STRIPES, &[]);
        assert!(refused.is_err(), "{what}");
    }
}
