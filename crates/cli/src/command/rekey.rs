//! `windlass rekey`

use std::sync::Arc;

use serde_json::json;
use windlass_base::message::table;
use windlass_instance::Failure;
use windlass_instance::operation::MediaOptions;
use windlass_pipeline::{ReadKeys, RekeyRequest};

use super::{Outcome, disks, existing_session, keys, misused, refused, reported};
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
    let media = MediaOptions {
        devices: disks(&arguments.media),
        ..MediaOptions::default()
    };
    let Some(mut session) = existing_session(common, &mut console) else {
        return Outcome::Failed;
    };
    let Some(devices) = reported(session.media_addresses(&media), &mut console) else {
        return Outcome::Failed;
    };
    drop(session);
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
            let sets = rekeyed.iter().map(|set| {
                json!({
                    "position": set.position,
                    "on_media": set.on_media.to_string(),
                    "beside": set.beside.to_string(),
                })
            });
            let sets: Vec<_> = sets.collect();
            console.done(&json!({ "operation": "rekey", "sets": sets }));
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
