//! What the tests of files share.

use windlass_io::queue::IoMethodChoice;

use crate::{DeviceAddress, DeviceWriter, Start, WriteTuning};

pub(crate) const TUNING: WriteTuning = WriteTuning {
    transfer_bytes: 8192,
    part_bytes: 0,
    depth: 2,
    io_method: IoMethodChoice::Auto,
};

/// Writes to a device, and does not commit.
pub(crate) fn write(device: &DeviceAddress, start: Start, bytes: &[u8]) -> Box<dyn DeviceWriter> {
    let mut writer = device.open_writer(start, TUNING).unwrap();
    writer.append(bytes).unwrap();
    writer.sync().unwrap();
    writer
}
