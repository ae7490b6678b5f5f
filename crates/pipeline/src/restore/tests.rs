//! Media on disks that fail while being read.

use std::io;
use std::path::Path;

use windlass_device::{DeviceAddress, DeviceReader, Operation};
use windlass_source::sqlite::{SnapshotOptions, SqliteSnapshot};

use super::*;
use crate::report::Unobserved;
use crate::request::{BackupRequest, Tuning};
use crate::sealing::ReadKeys;

/// A device with an unreadable sector.
#[derive(Debug)]
struct Unreadable {
    inner: Box<dyn DeviceReader>,
    at: u64,
}

impl DeviceReader for Unreadable {
    fn len(&self) -> u64 {
        self.inner.len()
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<usize, windlass_device::Error> {
        if (offset..offset + buffer.len() as u64).contains(&self.at) {
            let unreadable = io::Error::from_raw_os_error(5);
            return Err(windlass_device::Error::new(
                Operation::Read,
                "1.bak",
                unreadable,
            ));
        }
        self.inner.read_at(buffer, offset)
    }
}

fn media(folder: &Path) -> MediaSet {
    let database = folder.join("app.db");
    std::fs::write(&database, vec![7; 3 << 20]).unwrap();
    let devices = vec![DeviceAddress::disk(folder.join("1.bak"))];
    let request = BackupRequest::new(devices.clone(), Compression::NONE);
    let snapshot = SqliteSnapshot::open(&database, &SnapshotOptions::default()).unwrap();
    crate::backup(&request, Box::new(snapshot), &Unobserved).unwrap();
    MediaSet::open(&devices).unwrap()
}

#[test]
fn an_unreadable_sector_of_the_media_is_an_error_of_that_device() {
    let folder = tempfile::tempdir().unwrap();
    for share in [3, 2] {
        let mut media = media(folder.path());
        let family = media.families.remove(0);
        let at = family.reader.len() / share;
        let inner = family.reader;
        media.families.push(crate::media_set::Family {
            reader: Box::new(Unreadable { inner, at }),
            ..family
        });
        for on_damage in [OnDamage::Stop, OnDamage::Continue] {
            let request = ReadRequest {
                keys: ReadKeys::default(),
                on_damage,
                tuning: Tuning::default(),
            };
            let error = verify(&media, 1, &request, &Unobserved).unwrap_err();
            let Error::Device(error) = error else {
                panic!("{error}");
            };
            assert_eq!(error.operation, Operation::Read);
            assert!(error.device.ends_with("1.bak"));
            assert_eq!(error.source.raw_os_error(), Some(5));
        }
    }
}
