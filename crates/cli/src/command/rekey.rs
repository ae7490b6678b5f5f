//! `windlass rekey`

use std::sync::Arc;

use windlass_base::message::table;
use windlass_device::DeviceAddress;
use windlass_instance::Sink as _;
use windlass_instance::message_of::pipeline_messages;
use windlass_pipeline::ReadKeys;

use super::{Outcome, keys, misused, refused};
use crate::args::{Common, RekeyArguments};
use crate::output::{Console, Layout};

/// Runs the command.
pub(crate) fn run(arguments: &RekeyArguments, common: &Common) -> Outcome {
    if arguments.encrypt_to.is_empty() && arguments.new_passphrase_file.is_none() {
        return misused("for whom? Give --encrypt-to or --new-passphrase-file");
    }
    let mut console = Console::new(common.json, Layout::Table);
    let read = keys::ring(&arguments.keys).and_then(|ring| {
        let passphrase = arguments.new_passphrase_file.as_deref();
        keys::recipients(&arguments.encrypt_to, passphrase).map(|recipients| (ring, recipients))
    });
    let (ring, recipients) = match read {
        Ok(read) => read,
        Err(message) => return refused(message, &mut console),
    };
    let devices: Vec<DeviceAddress> = arguments.media.iter().map(DeviceAddress::disk).collect();
    let keys = ReadKeys {
        ring: Arc::new(ring),
        requires_encryption: true,
    };
    match windlass_pipeline::rekey(&devices, arguments.set, &keys, &recipients) {
        Ok(positions) => {
            for position in positions {
                console.message(table::note(format!(
                    "Backup set {position} can be read by {} more recipient(s).",
                    recipients.len()
                )));
            }
            Outcome::Succeeded
        }
        Err(error) => {
            for message in pipeline_messages(&error, 2) {
                console.message(message);
            }
            Outcome::Failed
        }
    }
}
