//! Gives all files of a backup their names: all of them or none, as far as the file systems allow.

use std::fmt::Write as _;
use std::io;

use windlass_base::at_once::at_once;

use crate::error::{Error, Operation};
use crate::{DeviceWriter, system_text};

/// Makes what was synced visible under the devices' names, permanently.
///
/// Everything but the renames is done on all devices first. If a rename fails, the earlier files get their
/// names back. If one cannot, all new files stay, whatever they are called, and the error names them.
///
/// # Errors
/// The first one; then nothing has changed, unless it says so.
pub fn commit(mut devices: Vec<Box<dyn DeviceWriter>>) -> Result<(), Error> {
    let at_once_all = devices.iter().all(|device| device.is_named_at_once());
    let prepared = at_once(&mut devices, at_once_all, |device| device.prepare());
    prepared.into_iter().collect::<Result<(), Error>>()?;
    let is_one_of_several = devices.len() > 1;
    let take = |device: &mut Box<dyn DeviceWriter>| device.take_name(is_one_of_several);
    let named: Result<(), Error> = match at_once_all {
        true => at_once(&mut devices, true, take).into_iter().collect(),
        // What replaces earlier backups stops at the first that cannot.
        false => devices.iter_mut().try_for_each(take),
    };
    if let Err(error) = named {
        return Err(undo(devices, error, at_once_all));
    }
    for device in devices {
        device.settle();
    }
    Ok(())
}

impl dyn DeviceWriter {
    /// [`commit`] of a device that is the only one.
    ///
    /// # Errors
    /// The same.
    pub fn commit(self: Box<Self>) -> Result<(), Error> {
        commit(vec![self])
    }
}

/// Puts the earlier files back after a rename failed; if there `is_none_earlier`, only takes the new ones away.
fn undo(mut devices: Vec<Box<dyn DeviceWriter>>, error: Error, is_none_earlier: bool) -> Error {
    let mut is_undone = true;
    for device in devices.iter_mut().rev() {
        is_undone &= device.give_back_name();
    }
    if is_undone {
        return error;
    }
    let count = devices.len();
    let kept: Vec<String> = devices.into_iter().filter_map(DeviceWriter::keep).collect();
    let state = match kept.len() == count {
        false if is_none_earlier => {
            "The backup is not complete. These parts of it could not be taken back; delete them, and make the backup \
             again under another name:"
        }
        true => {
            "Files of the earlier backup are replaced already and could not be put back. The new \
             backup is complete in these files; restore from them, or rename those that are named \
             .windlass-new:"
        }
        false => {
            "What has its name already could not be taken back: neither the earlier backup, if there was one, \
             nor this one is complete. Make it again with FORMAT. These hold the new one:"
        }
    };
    let mut reason = format!("{} {state}", system_text(&error.source));
    for place in kept {
        // Writing to a string does not fail.
        let _written = write!(reason, " '{place}'");
    }
    Error::new(Operation::Rename, &error.device, io::Error::other(reason))
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use super::*;
    use crate::naming::staging_path;
    use crate::naming::tests::CANNOT_EXCHANGE;
    use crate::testing::write;
    use crate::{DeviceAddress, Start};

    fn stripes(folder: &Path) -> Vec<PathBuf> {
        (1..=3).map(|n| folder.join(format!("{n}.bak"))).collect()
    }

    fn written(stripes: &[PathBuf], content: &[u8]) -> Vec<Box<dyn DeviceWriter>> {
        let write = |path| write(&DeviceAddress::disk(path), Start::Replace, content);
        stripes.iter().map(write).collect()
    }

    fn contents(stripes: &[PathBuf]) -> Vec<String> {
        let read = |path: &PathBuf| std::fs::read_to_string(path).unwrap_or_default();
        stripes.iter().map(read).collect()
    }

    #[test]
    fn all_stripes_get_their_names_and_nothing_of_the_earlier_ones_stays() {
        let folder = tempfile::tempdir().unwrap();
        let stripes = stripes(folder.path());
        for cannot in [false, true] {
            CANNOT_EXCHANGE.set(cannot);
            for content in ["old", "new"] {
                commit(written(&stripes, content.as_bytes())).unwrap();
                assert_eq!(contents(&stripes), [content; 3]);
                assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 3);
            }
        }
        CANNOT_EXCHANGE.set(false);
    }

    /// The last or the middle stripe cannot get its name: its temporary file is gone.
    #[test]
    fn a_stripe_that_cannot_get_its_name_brings_all_earlier_files_back() {
        for (failing, had_earlier) in [(2, true), (1, true), (2, false)] {
            let folder = tempfile::tempdir().unwrap();
            let stripes = stripes(folder.path());
            if had_earlier {
                commit(written(&stripes, b"old")).unwrap();
            }
            let new = written(&stripes, b"new");
            std::fs::remove_file(staging_path(&stripes[failing])).unwrap();
            let error = commit(new).unwrap_err();
            assert_eq!(error.operation, Operation::Rename, "{error}");
            let expected = if had_earlier { "old" } else { "" };
            assert_eq!(contents(&stripes), [expected; 3]);
            let left = std::fs::read_dir(folder.path()).unwrap().count();
            assert_eq!(left, if had_earlier { 3 } else { 0 });
        }
    }

    #[test]
    fn where_an_earlier_file_cannot_come_back_all_new_ones_stay_and_are_named() {
        let folder = tempfile::tempdir().unwrap();
        let stripes = stripes(folder.path());
        commit(written(&stripes, b"old")).unwrap();
        let new = written(&stripes, b"new");
        // A folder in the place of the second stripe.
        std::fs::remove_file(&stripes[1]).unwrap();
        std::fs::create_dir(&stripes[1]).unwrap();
        CANNOT_EXCHANGE.set(true);
        let error = commit(new).unwrap_err();
        CANNOT_EXCHANGE.set(false);
        let complete = [
            stripes[0].clone(),
            staging_path(&stripes[1]),
            staging_path(&stripes[2]),
        ];
        assert_eq!(contents(&complete), ["new"; 3]);
        for file in &complete {
            let named = format!("'{}'", file.display());
            assert!(error.to_string().contains(&named), "{error}");
        }
    }
}
