//! Errors of media.

use windlass_base::Message;
use windlass_base::message::table;
use windlass_media::MediaError;

/// The message for an error in the media on a device.
pub(crate) fn media_message(device: &str, error: &MediaError) -> Message {
    match error {
        // SQL Server's message for a file that is not a backup at all.
        MediaError::NotMtf { .. } => table::family_malformed(device).with_state(0),
        MediaError::SqlServerMedia { .. } => table::sql_server_media(device),
        MediaError::ForeignMtf { .. } => table::not_our_set(device),
        MediaError::MtfVersion { found, .. } => table::mtf_version(device, found, 0),
        MediaError::FormatVersion { found, supported } => {
            table::format_version(device, found, supported)
        }
        MediaError::IncompleteSet { .. } => table::set_incomplete(device),
        MediaError::NoSuchSet { number } => table::file_id_malformed(number, device),
        MediaError::BlockSize { .. } => table::block_size_power_of_two(),
        MediaError::UnknownField { .. } => table::format_version(device, "that is newer", 1),
        MediaError::TooLarge {
            offset: 0, maximum, ..
        } => table::descriptor_too_large(maximum),
        MediaError::Truncated { .. }
        | MediaError::Damaged { .. }
        | MediaError::WrongIdentity { .. }
        | MediaError::TooLarge { .. } => table::family_malformed(device),
        MediaError::Unwritable { what, .. } => table::invalid_parameter(what),
        MediaError::OutOfOrder { .. } => table::internal_consistency(),
        MediaError::Read(read) => {
            table::device_read_failed(device, super::quoted_os_error(&read.source))
        }
    }
}
