//! Encrypted sets: read back with the key, and with nothing else; whatever is done to them is noticed.
#![expect(clippy::unwrap_used, reason = "what cannot be set up fails its test")]

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rusqlite::Connection;
use windlass_base::checksum;
use windlass_codec::Compression;
use windlass_crypt::{Cipher, Identity, KeyRing, Passphrase, Recipient};
use windlass_device::DeviceAddress;
use windlass_pipeline::{
    BackupRequest, Damage, Encryption, Error, MediaRequest, MediaSet, OnDamage, ReadKeys,
    ReadRequest, RekeyRequest, Tuning, Unobserved, backup, rekey, verify,
};
use windlass_source::sqlite::{SnapshotOptions, SqliteSnapshot};

/// A folder with a database of 6 MB in which every row is different.
struct Bench {
    folder: tempfile::TempDir,
    identity: Arc<Identity>,
}

impl Bench {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let connection = Connection::open(folder.path().join("app.db")).unwrap();
        connection
            .execute_batch(
                "PRAGMA page_size = 8192; CREATE TABLE t(id INTEGER PRIMARY KEY, body TEXT);
                 WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 10000)
                 INSERT INTO t SELECT i, 'plain text of row ' || i || hex(randomblob(250)) FROM n",
            )
            .unwrap();
        let identity = Arc::new(Identity::create("Backup", 365).unwrap());
        Self { folder, identity }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn device(&self, name: &str) -> DeviceAddress {
        DeviceAddress::disk(self.path(name))
    }

    fn certificate(&self) -> Recipient {
        Recipient::Certificate(self.identity.certificate().clone())
    }

    fn keys(&self) -> ReadKeys {
        ReadKeys {
            ring: Arc::new(KeyRing {
                identities: vec![Arc::clone(&self.identity)],
                ..KeyRing::default()
            }),
            ..ReadKeys::default()
        }
    }

    fn back_up(
        &self,
        name: &str,
        compression: Compression,
        recipients: &[Recipient],
    ) -> Result<(), Error> {
        self.back_up_to(&[name], compression, recipients)
    }

    fn back_up_to(
        &self,
        names: &[&str],
        compression: Compression,
        recipients: &[Recipient],
    ) -> Result<(), Error> {
        let encryption = Encryption {
            algorithm: Cipher::Aes256,
            recipients: recipients.to_vec(),
        };
        let request = BackupRequest {
            encryption: (!recipients.is_empty()).then_some(encryption),
            tuning: Tuning {
                transfer_bytes: Some(64 << 10),
                ..Tuning::default()
            },
            name: Some("nightly".to_owned()),
            ..BackupRequest::new(
                names.iter().map(|name| self.device(name)).collect(),
                compression,
            )
        };
        let request = BackupRequest {
            media: MediaRequest {
                media_name: Some("media".to_owned()),
                ..request.media
            },
            ..request
        };
        let snapshot =
            SqliteSnapshot::open(&self.path("app.db"), &SnapshotOptions::default()).unwrap();
        backup(&request, Box::new(snapshot), &Unobserved).map(drop)
    }

    fn verify(&self, name: &str, position: u16, keys: &ReadKeys) -> Result<u64, Error> {
        self.verify_set(&[name], position, keys)
    }

    fn verify_all(&self, names: &[&str], keys: &ReadKeys) -> Result<u64, Error> {
        self.verify_set(names, 1, keys)
    }

    fn verify_set(&self, names: &[&str], position: u16, keys: &ReadKeys) -> Result<u64, Error> {
        let devices: Vec<_> = names.iter().map(|name| self.device(name)).collect();
        let media = MediaSet::open(&devices)?;
        let request = ReadRequest {
            keys: keys.clone(),
            on_damage: OnDamage::Stop,
            tuning: Tuning::default(),
        };
        verify(&media, position, &request, &Unobserved).map(|report| report.processed_bytes)
    }
}

/// The positions of a family's chunks: data of the stream, payload offset, stored bytes.
fn chunks(family: &[u8]) -> Vec<(usize, usize, usize)> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(next) = family[at..].windows(4).position(|window| window == b"WLDT") {
        let data = at + next + 22;
        let number = |at: usize| u32::from_le_bytes(family[at..at + 4].try_into().unwrap());
        let padded = usize::from(u16::from_le_bytes([family[data], family[data + 1]]));
        let stored = number(data + 0x1C) as usize;
        found.push((data, padded, stored));
        at = data + padded + stored;
    }
    found
}

/// Recomputes the checksums of a chunk's header and payload, as an attacker would.
fn mend(family: &mut [u8], (data, padded, stored): (usize, usize, usize)) {
    let payload = checksum(&family[data + padded..data + padded + stored]);
    family[data + 0x28..data + 0x30].copy_from_slice(&payload.to_le_bytes());
    let count = |at: usize| usize::from(u16::from_le_bytes([family[at], family[at + 1]]));
    let sealed = count(data + 4) * 16;
    let header = 64 + count(data + 0x0A) * 12 + count(data + 0x0C) * 16 + sealed;
    let sum = checksum(&family[data..data + header]);
    family[data + header..data + header + 8].copy_from_slice(&sum.to_le_bytes());
}

fn edit(path: &Path, change: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = std::fs::read(path).unwrap();
    change(&mut bytes);
    std::fs::write(path, bytes).unwrap();
}

fn unauthentic(found: &Result<u64, Error>) -> bool {
    matches!(
        found,
        Err(Error::SetDamaged {
            damage: Damage::Unauthentic { .. } | Damage::UnauthenticConfiguration,
            ..
        })
    )
}

#[test]
fn an_encrypted_set_is_read_with_any_recipients_key_and_shows_nothing() {
    let bench = Bench::new();
    let passphrase = Passphrase::new("long and remembered".to_owned());
    let size = std::fs::metadata(bench.path("app.db")).unwrap().len();
    for (name, compression) in [
        ("plain.bak", Compression::NONE),
        ("zstd.bak", Compression::ZSTD_LOW),
    ] {
        let recipients = [
            bench.certificate(),
            Recipient::Passphrase(passphrase.clone()),
        ];
        bench.back_up(name, compression, &recipients).unwrap();
        let ring = KeyRing {
            passphrases: vec![passphrase.clone()],
            ..KeyRing::default()
        };
        let by_passphrase = ReadKeys {
            ring: Arc::new(ring),
            requires_encryption: true,
            ..ReadKeys::default()
        };
        assert_eq!(bench.verify(name, 1, &bench.keys()).unwrap(), size);
        assert_eq!(bench.verify(name, 1, &by_passphrase).unwrap(), size);
        let family = std::fs::read(bench.path(name)).unwrap();
        let shows = |text: &[u8]| family.windows(text.len()).any(|window| window == text);
        assert!(!shows(b"plain text of row 77") && !shows(b"SQLite format 3"));
    }
}

#[test]
fn without_a_key_or_with_another_one_nothing_is_read() {
    let bench = Bench::new();
    bench
        .back_up("a.bak", Compression::ZSTD_LOW, &[bench.certificate()])
        .unwrap();
    let missing = bench.verify("a.bak", 1, &ReadKeys::default()).unwrap_err();
    let Error::Key {
        source: windlass_crypt::Error::KeyMissing { recipients },
        ..
    } = missing
    else {
        panic!("{missing}");
    };
    let thumbprint = bench.identity.certificate().thumbprint();
    let expected = thumbprint
        .iter()
        .fold("0x".to_owned(), |text, byte| format!("{text}{byte:02X}"));
    assert_eq!(recipients, expected);
    let other = Bench {
        identity: Arc::new(Identity::create("Other", 1).unwrap()),
        ..bench
    };
    assert!(matches!(
        other.verify("a.bak", 1, &other.keys()),
        Err(Error::Key {
            source: windlass_crypt::Error::KeyMissing { .. },
            ..
        })
    ));
    let passphrase = |text: &str| Passphrase::new(text.to_owned());
    other
        .back_up(
            "b.bak",
            Compression::NONE,
            &[Recipient::Passphrase(passphrase("right"))],
        )
        .unwrap();
    let ring = KeyRing {
        passphrases: vec![passphrase("wrong")],
        ..KeyRing::default()
    };
    let wrong = ReadKeys {
        ring: Arc::new(ring),
        requires_encryption: false,
        ..ReadKeys::default()
    };
    assert!(matches!(
        other.verify("b.bak", 1, &wrong),
        Err(Error::Key {
            source: windlass_crypt::Error::WrongKey { .. },
            ..
        })
    ));
}

#[test]
fn changed_payloads_headers_and_tags_are_noticed_although_every_checksum_is_right() {
    let bench = Bench::new();
    bench
        .back_up("a.bak", Compression::NONE, &[bench.certificate()])
        .unwrap();
    let good = std::fs::read(bench.path("a.bak")).unwrap();
    let chunk = chunks(&good)[1];
    // Payload; file offset of the first run (kept inside the file); masked checksum; tag.
    let (data, padded, stored) = chunk;
    let digests = usize::from(good[data + 0x0C]);
    for at in [
        data + padded + stored / 2,
        data + 0x20,
        data + 64 + 12 + digests * 16 + 3,
    ] {
        edit(&bench.path("a.bak"), |family| {
            family.clone_from(&good);
            family[at] ^= 1;
            mend(family, chunk);
        });
        let found = bench.verify("a.bak", 1, &bench.keys());
        assert!(unauthentic(&found), "byte {at}");
    }
}

#[test]
fn swapped_chunks_are_noticed() {
    let bench = Bench::new();
    bench
        .back_up("a.bak", Compression::NONE, &[bench.certificate()])
        .unwrap();
    edit(&bench.path("a.bak"), |family| {
        let all = chunks(family);
        let (first, second) = (all[1], all[2]);
        assert_eq!(first.2, second.2);
        for at in 0..first.2 {
            family.swap(first.0 + first.1 + at, second.0 + second.1 + at);
        }
        mend(family, first);
        mend(family, second);
    });
    assert!(unauthentic(&bench.verify("a.bak", 1, &bench.keys())));
}

#[test]
fn a_chunk_of_another_set_is_noticed() {
    let bench = Bench::new();
    bench
        .back_up("a.bak", Compression::NONE, &[bench.certificate()])
        .unwrap();
    bench
        .back_up("b.bak", Compression::NONE, &[bench.certificate()])
        .unwrap();
    let other = std::fs::read(bench.path("b.bak")).unwrap();
    let (data, padded, stored) = chunks(&other)[1];
    edit(&bench.path("a.bak"), |family| {
        let chunk = chunks(family)[1];
        assert_eq!(chunk.2, stored);
        let to = chunk.0 + chunk.1;
        family[to..to + stored].copy_from_slice(&other[data + padded..data + padded + stored]);
        mend(family, chunk);
    });
    assert!(unauthentic(&bench.verify("a.bak", 1, &bench.keys())));
}

#[test]
fn a_changed_configuration_is_noticed() {
    let bench = Bench::new();
    bench
        .back_up("a.bak", Compression::NONE, &[bench.certificate()])
        .unwrap();
    edit(&bench.path("a.bak"), |family| {
        // The last one is the final configuration: its count of chunks, and the checksum of the list.
        let at = family
            .windows(4)
            .rposition(|window| window == b"WLSC")
            .unwrap();
        let length = u64::from_le_bytes(family[at + 8..at + 16].try_into().unwrap()) as usize;
        let data = at + 22;
        let tag = [0x52, 0, 8, 0, 0, 0];
        let record = family[data..]
            .windows(6)
            .position(|window| window == tag)
            .unwrap();
        family[data + record + 6] -= 1;
        let sum = checksum(&family[data..data + length - 8]);
        family[data + length - 8..data + length].copy_from_slice(&sum.to_le_bytes());
    });
    assert!(unauthentic(&bench.verify("a.bak", 1, &bench.keys())));
}

#[test]
fn a_truncated_family_is_noticed() {
    let bench = Bench::new();
    bench
        .back_up("a.bak", Compression::NONE, &[bench.certificate()])
        .unwrap();
    edit(&bench.path("a.bak"), |family| {
        family.truncate(family.len() / 2);
    });
    assert!(matches!(
        bench.verify("a.bak", 1, &bench.keys()),
        Err(Error::SetIncomplete { .. } | Error::Media { .. })
    ));
}

#[test]
fn a_set_without_encryption_does_not_pass_for_an_encrypted_one() {
    let bench = Bench::new();
    bench.back_up("a.bak", Compression::NONE, &[]).unwrap();
    let keys = ReadKeys {
        requires_encryption: true,
        ..bench.keys()
    };
    assert!(matches!(
        bench.verify("a.bak", 1, &keys),
        Err(Error::NotEncrypted { .. })
    ));
    bench.verify("a.bak", 1, &bench.keys()).unwrap();
}

#[test]
fn encrypted_and_plain_sets_share_media() {
    let bench = Bench::new();
    bench.back_up("a.bak", Compression::NONE, &[]).unwrap();
    bench
        .back_up("a.bak", Compression::ZSTD_LOW, &[bench.certificate()])
        .unwrap();
    bench.back_up("a.bak", Compression::ZSTD_LOW, &[]).unwrap();
    for position in 1..=3 {
        bench.verify("a.bak", position, &bench.keys()).unwrap();
    }
}

#[test]
fn keys_are_rewrapped_without_touching_the_media() {
    let bench = Bench::new();
    bench
        .back_up("a.bak", Compression::ZSTD_LOW, &[bench.certificate()])
        .unwrap();
    bench
        .back_up("a.bak", Compression::NONE, &[bench.certificate()])
        .unwrap();
    let before = std::fs::read(bench.path("a.bak")).unwrap();
    let passphrase = Passphrase::new("for the new site".to_owned());
    let ring = KeyRing {
        passphrases: vec![passphrase.clone()],
        ..KeyRing::default()
    };
    let new = ReadKeys {
        ring: Arc::new(ring),
        requires_encryption: true,
        ..ReadKeys::default()
    };
    let devices = [bench.device("a.bak")];
    let to_new = [Recipient::Passphrase(passphrase)];
    let request = |keys: &ReadKeys, recipients: &[Recipient]| RekeyRequest {
        position: None,
        keys: keys.clone(),
        recipients: recipients.to_vec(),
        replaces: false,
    };
    assert!(matches!(
        rekey(&devices, &request(&new, &to_new)),
        Err(Error::Key { .. })
    ));
    assert!(bench.verify("a.bak", 1, &new).is_err());
    let rekeyed = rekey(&devices, &request(&bench.keys(), &to_new)).unwrap();
    let positions: Vec<_> = rekeyed.iter().map(|set| set.position).collect();
    assert_eq!(positions, [1, 2]);
    for position in [1, 2] {
        bench.verify("a.bak", position, &new).unwrap();
        bench.verify("a.bak", position, &bench.keys()).unwrap();
    }
    assert_eq!(std::fs::read(bench.path("a.bak")).unwrap(), before);
    // A changed key file is useless, and is reported to those who need it.
    edit(&bench.path("a.bak.keys"), |file| file[40] ^= 1);
    let error = bench.verify("a.bak", 1, &new).unwrap_err();
    assert!(error.to_string().contains("a.bak.keys"), "{error}");
    bench.verify("a.bak", 1, &bench.keys()).unwrap();
    let refused = rekey(&devices, &request(&bench.keys(), &to_new)).unwrap_err();
    assert!(matches!(refused, Error::KeyFile { .. }), "{refused}");
    let replacing = RekeyRequest {
        replaces: true,
        ..request(&bench.keys(), &to_new)
    };
    rekey(&devices, &replacing).unwrap();
    bench.verify("a.bak", 1, &new).unwrap();
}

#[test]
fn recipients_added_one_after_the_other_all_read_until_they_are_replaced() {
    let bench = Bench::new();
    bench
        .back_up("a.bak", Compression::NONE, &[bench.certificate()])
        .unwrap();
    let devices = [bench.device("a.bak")];
    let reader = |text: &str| {
        let passphrase = Passphrase::new(text.to_owned());
        let ring = KeyRing {
            passphrases: vec![passphrase.clone()],
            ..KeyRing::default()
        };
        let keys = ReadKeys {
            ring: Arc::new(ring),
            requires_encryption: true,
            ..ReadKeys::default()
        };
        (keys, Recipient::Passphrase(passphrase))
    };
    let mut request = RekeyRequest {
        position: None,
        keys: bench.keys(),
        recipients: Vec::new(),
        replaces: false,
    };
    let readers = [reader("first"), reader("second"), reader("third")];
    for (_, recipient) in &readers[..2] {
        request.recipients = vec![recipient.clone()];
        let rekeyed = rekey(&devices, &request).unwrap();
        assert_eq!(rekeyed[0].on_media.recipients().len(), 1);
    }
    for (keys, _) in &readers[..2] {
        bench.verify("a.bak", 1, keys).unwrap();
    }
    request.recipients = vec![readers[2].1.clone()];
    // Somebody else adds a recipient at the moment.
    let keys = bench.path("a.bak.keys");
    let before = std::fs::read(&keys).unwrap();
    let other = windlass_io::own::claim_file(&bench.path("a.bak.keys.new")).unwrap();
    let refused = rekey(&devices, &request).unwrap_err().to_string();
    assert!(refused.contains("is making it"), "{refused}");
    assert!(bench.path("a.bak.keys.new").exists(), "it is theirs");
    assert_eq!(std::fs::read(&keys).unwrap(), before);
    drop(other);
    request.replaces = true;
    let rekeyed = rekey(&devices, &request).unwrap();
    assert_eq!(rekeyed[0].beside.recipients().len(), 1);
    assert!(bench.verify("a.bak", 1, &readers[0].0).is_err());
    bench.verify("a.bak", 1, &readers[2].0).unwrap();
}

#[test]
fn recipients_that_do_not_fit_leave_the_key_file_as_it_was() {
    let bench = Bench::new();
    bench
        .back_up("a.bak", Compression::NONE, &[bench.certificate()])
        .unwrap();
    let devices = [bench.device("a.bak")];
    let passphrase = Recipient::Passphrase(Passphrase::new("one".to_owned()));
    let request = |count| RekeyRequest {
        position: None,
        keys: bench.keys(),
        recipients: vec![passphrase.clone(); count],
        replaces: false,
    };
    rekey(&devices, &request(1)).unwrap();
    let before = std::fs::read(bench.path("a.bak.keys")).unwrap();
    // One is there, and four would make it more than a block can have.
    rekey(&devices, &request(4)).unwrap_err();
    assert_eq!(std::fs::read(bench.path("a.bak.keys")).unwrap(), before);
    rekey(&devices, &request(2)).unwrap();
    assert_ne!(std::fs::read(bench.path("a.bak.keys")).unwrap(), before);
}

/// Replaces one piece of a medium and corrects all checksums, as an attacker would.
fn replace(path: &Path, from: &[u8], to: &[u8], which: usize) {
    edit(path, |family| {
        let places: Vec<usize> = (0..family.len() - from.len())
            .filter(|&at| family[at..].starts_with(from))
            .collect();
        let at = places[which.min(places.len() - 1)];
        family[at..at + to.len()].copy_from_slice(to);
        windlass_media::craft::repair(family);
    });
}

const LAST: usize = usize::MAX;

#[test]
fn media_header_start_and_every_stripes_configuration_are_bound() {
    let bench = Bench::new();
    let stripes = ["1.bak", "2.bak", "3.bak"];
    for recipients in [vec![bench.certificate()], Vec::new()] {
        let refusal = |change: &dyn Fn()| {
            for name in stripes {
                drop(std::fs::remove_file(bench.path(name)));
            }
            bench
                .back_up_to(&stripes, Compression::NONE, &recipients)
                .unwrap();
            bench.verify_all(&stripes, &bench.keys()).unwrap();
            change();
            match bench.verify_all(&stripes, &bench.keys()) {
                Err(Error::SetDamaged { damage, .. }) => damage,
                other => panic!("{other:?}"),
            }
        };
        // The media's name, which only the header has.
        let damage = refusal(&|| {
            for name in stripes {
                replace(&bench.path(name), b"media", b"MEDIA", 0);
            }
        });
        assert!(matches!(damage, Damage::Unbound { family: 1 }), "{damage}");
        // The name of the set: at its start, then at its end on one stripe.
        let damage = refusal(&|| replace(&bench.path("2.bak"), b"nightly", b"NIGHTLY", 0));
        assert!(matches!(damage, Damage::Unbound { family: 2 }), "{damage}");
        let damage = refusal(&|| replace(&bench.path("3.bak"), b"nightly", b"NIGHTLY", LAST));
        assert!(
            matches!(damage, Damage::ConfigurationDiffers { family: 3 }),
            "{damage}"
        );
    }
}

#[test]
fn a_stripe_cannot_be_left_out_even_if_it_holds_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let set = windlass_media::craft::Set::full("app", &[7; 70_000]);
    let families = windlass_media::craft::Medium::striped(2)
        .with(&set)
        .families();
    let paths: Vec<_> = ["1.bak", "2.bak"]
        .map(|name| folder.path().join(name))
        .into();
    for (path, family) in paths.iter().zip(&families) {
        std::fs::write(path, family).unwrap();
    }
    let devices: Vec<_> = paths.iter().map(DeviceAddress::disk).collect();
    let request = || ReadRequest {
        keys: ReadKeys::default(),
        on_damage: OnDamage::Stop,
        tuning: Tuning::default(),
    };
    let all = MediaSet::open(&devices).unwrap();
    verify(&all, 1, &request(), &Unobserved).unwrap();
    assert!(MediaSet::open(&devices[..1]).is_err());
    replace(
        &paths[0],
        &[3, 0x80, 2, 0, 0, 0, 2, 0],
        &[3, 0x80, 2, 0, 0, 0, 1, 0],
        0,
    );
    let one = MediaSet::open(&devices[..1]).unwrap();
    let refused = verify(&one, 1, &request(), &Unobserved).unwrap_err();
    let is_unbound = matches!(
        refused,
        Error::SetDamaged {
            damage: Damage::Unbound { .. },
            ..
        }
    );
    assert!(is_unbound, "{refused}");
}

#[test]
fn rot_is_found_without_a_key_and_nothing_else_is_promised() {
    let bench = Bench::new();
    bench
        .back_up("a.bak", Compression::ZSTD_LOW, &[bench.certificate()])
        .unwrap();
    let without = ReadKeys {
        without_key: true,
        ..ReadKeys::default()
    };
    assert!(bench.verify("a.bak", 1, &ReadKeys::default()).is_err());
    let whole = bench.verify("a.bak", 1, &without).unwrap();
    assert_eq!(whole, bench.verify("a.bak", 1, &bench.keys()).unwrap());
    let good = std::fs::read(bench.path("a.bak")).unwrap();
    let (data, padded, stored) = chunks(&good)[1];
    for at in [data + 3, data + padded + stored / 2] {
        edit(&bench.path("a.bak"), |family| family[at] ^= 4);
        bench.verify("a.bak", 1, &without).unwrap_err();
        std::fs::write(bench.path("a.bak"), &good).unwrap();
    }
    // If its checksums are corrected, only a key reveals the change.
    edit(&bench.path("a.bak"), |family| {
        family[data + padded + stored / 2] ^= 4;
        mend(family, (data, padded, stored));
    });
    bench.verify("a.bak", 1, &without).unwrap();
    assert!(unauthentic(&bench.verify("a.bak", 1, &bench.keys())));
}
