//! `windlass rekey`

use std::sync::Arc;

use windlass_base::message::table;
use windlass_device::DeviceAddress;
use windlass_instance::Failure;
use windlass_pipeline::{ReadKeys, RekeyRequest};

use super::{Outcome, keys, misused, refused};
use crate::args::{Common, RekeyArguments};
use crate::output::{Console, Layout};

/// Runs the command.
pub(crate) fn run(arguments: &RekeyArguments, common: &Common) -> Outcome {
    if arguments.encrypt_to.is_empty() && arguments.new_passphrase_file.is_none() {
        return misused("no new recipient: give --encrypt-to or --new-passphrase-file");
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
        ..ReadKeys::default()
    };
    let request = RekeyRequest {
        position: arguments.set,
        keys,
        recipients,
        replaces: arguments.replace,
    };
    match windlass_pipeline::rekey(&devices, &request) {
        Ok(rekeyed) => {
            for set in rekeyed {
                console.message(table::set_rekeyed(set.position, set.on_media, set.beside));
            }
            Outcome::Succeeded
        }
        Err(error) => {
            for message in Failure::from(error).messages {
                console.message(message);
            }
            Outcome::Failed
        }
    }
}
