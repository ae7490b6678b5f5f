//! From the devices of a statement to addresses.

use windlass_base::message::table;
use windlass_device::{DeviceAddress, DeviceKind as AddressKind};
use windlass_tsql::ast::{Device, DeviceKind};
use windlass_tsql::span::Spanned;

use crate::message_of::name_message;
use crate::names::absolute;
use crate::option;
use crate::{Failure, Session};

/// The most devices that a statement may name, and the most families of a media set.
const DEVICES_MAX: usize = 64;

/// The longest device name, as SQL Server counts.
const NAME_CHARACTERS_MAX: usize = 259;

/// Resolves the devices of a `TO`, `MIRROR TO` or `FROM` list.
pub(super) fn resolve(
    session: &mut Session,
    devices: &[Spanned<Device>],
) -> Result<Vec<DeviceAddress>, Failure> {
    if devices.len() > DEVICES_MAX {
        return Err(table::too_many_devices(DEVICES_MAX).into());
    }
    let kinds: Vec<DeviceKind> = devices
        .iter()
        .filter_map(|device| kind(&device.node))
        .collect();
    if kinds.windows(2).any(|pair| pair.first() != pair.last()) {
        return Err(table::device_classes_differ().into());
    }
    let addresses = devices
        .iter()
        .map(|device| resolve_one(session, &device.node))
        .collect::<Result<Vec<_>, _>>()?;
    release(session, &addresses)?;
    Ok(addresses)
}

/// A device may be a database that the session has open: opening and closing it would drop SQLite's
/// locks, so the connection goes first.
fn release(session: &mut Session, addresses: &[DeviceAddress]) -> Result<(), Failure> {
    let disks = addresses
        .iter()
        .filter(|address| address.kind == AddressKind::Disk);
    for address in disks {
        let path = absolute(&address.path).unwrap_or_else(|_| address.path.clone());
        if session.queries.is_in_transaction() && session.queries.holds(&path) {
            return Err(table::within_transaction().into());
        }
        session.queries.release(&path);
    }
    Ok(())
}

fn kind(device: &Device) -> Option<DeviceKind> {
    match device {
        Device::Physical { kind, .. } => Some(*kind),
        Device::Logical(_) => None,
    }
}

fn resolve_one(session: &mut Session, device: &Device) -> Result<DeviceAddress, Failure> {
    match device {
        Device::Logical(name) => {
            let name = option::name(name, session)?;
            Err(table::device_not_found(name).into())
        }
        Device::Physical {
            kind: DeviceKind::Disk,
            path,
        } => {
            let path = option::text(path, session)?.unwrap_or_default();
            if path.trim().is_empty() {
                return Err(table::zero_length_device().into());
            }
            if path.chars().count() > NAME_CHARACTERS_MAX && !path.starts_with('/') {
                return Err(table::device_name_too_long(NAME_CHARACTERS_MAX).into());
            }
            let address = session.instance.drives().disk_device(&path);
            address.map_err(|error| name_message(&error).into())
        }
        Device::Physical {
            kind: DeviceKind::Url,
            ..
        } => Err(table::not_built_yet(
            "A backup device at a URL",
            "Use DISK with the path of a mounted folder.",
        )
        .into()),
        Device::Physical {
            kind: DeviceKind::Tape,
            ..
        } => Err(table::statement_not_supported(
            "TAPE",
            "Use DISK; the format is that of tapes all the same.",
        )
        .into()),
        Device::Physical {
            kind: DeviceKind::VirtualDevice,
            ..
        } => Err(table::statement_not_supported("VIRTUAL_DEVICE", "Use DISK.").into()),
    }
}
