//! What trace flags print of backups and restores.

use windlass_codec::Algorithm;
use windlass_engine::{BackupPhase, PhaseReport};
use windlass_io::DIRECT_ALIGNMENT;
use windlass_pipeline::Plan;

/// A line of trace flag 3004.
pub(super) fn phase(report: &PhaseReport) -> String {
    let what = match report.phase {
        BackupPhase::ClearDifferentialMap => "Clear differential bitmaps",
        BackupPhase::Checkpoint => "Checkpoint",
        BackupPhase::SyncObject => "Synchronize with pending writes",
        BackupPhase::DataCopy => "Copy data files",
        BackupPhase::LogCopy => "Copy transaction log",
    };
    format!(
        "BackupDatabase: {what}: {:.3} ms, {} buffers visited",
        report.duration.as_secs_f64() * 1e3,
        report.visited
    )
}

/// The lines of trace flag 3213, in SQL Server's order. Where Windlass counts differently it uses its
/// own terms: buffers are frames, a third set exists only while chunks are compressed.
pub(super) fn buffer_configuration(plan: &Plan) -> Vec<String> {
    let compressed = plan.compression.algorithm != Algorithm::None;
    let (frames, output) = (plan.frame_buffers.value, plan.output_buffers.value);
    let devices = plan.families * (plan.mirrors + 1);
    let buffer_bytes = (frames + output) * plan.frame_bytes.value;
    vec![
        "Backup/Restore buffer configuration parameters".to_owned(),
        format!("Memory limit: {} MB", plan.memory_bytes().div_ceil(1 << 20)),
        format!("BufferCount: {frames}"),
        format!("Sets Of Buffers: {}", if compressed { 2 } else { 1 }),
        format!("MaxTransferSize: {} KB", plan.transfer_bytes.value >> 10),
        "Min MaxTransferSize: 64 KB".to_owned(),
        format!("Total buffer space: {} MB", buffer_bytes.div_ceil(1 << 20)),
        "Tabular data device count: 1".to_owned(),
        "Fulltext data device count: 0".to_owned(),
        "Filestream device count: 0".to_owned(),
        "TXF device count: 0".to_owned(),
        format!("Filesystem i/o alignment: {DIRECT_ALIGNMENT}"),
        format!(
            "Media Buffer count: {}",
            devices * (plan.write_depth.value + 1)
        ),
        format!("Media Buffer size: {} KB", plan.transfer_bytes.value >> 10),
        format!("Encode Buffer count: {output}"),
    ]
}
