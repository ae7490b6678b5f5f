//! Describes media: their backup sets, the files in one, the label.

use windlass_base::Message;
use windlass_base::message::table;
use windlass_media::MediaError;
use windlass_pipeline::MediaSet;

use super::media::MediaOptions;
use super::media_rows::{self, FoundSet};
use super::unpack::original;
use super::{history, repacked, sql_server};
use crate::event_log::Entry;
use crate::message_of::{media_message, set_not_found};
use crate::{Failure, ResultSet, Session, Sink, presence};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Inspect {
    /// The backup sets, or one of them.
    Headers,
    Files,
    /// The label of a device.
    Label,
}

impl Inspect {
    /// The statement's name in the log.
    fn statement(self) -> &'static str {
        match self {
            Self::Headers => "RESTORE HEADERONLY",
            Self::Files => "RESTORE FILELISTONLY",
            Self::Label => "RESTORE LABELONLY",
        }
    }

    /// The operation's name in the closing message.
    pub(crate) fn operation(self) -> &'static str {
        match self {
            Self::Headers => "RESTORE HEADERONLY",
            Self::Files => "RESTORE FILELIST",
            Self::Label => "RESTORE LABELONLY",
        }
    }
}

/// The description of media.
#[derive(Debug, Default)]
pub struct Inspection {
    /// With SQL Server's columns.
    pub rows: ResultSet,
    /// The positions of the sets in the rows.
    pub positions: Vec<u16>,
    /// The position of the last one that is complete; 0 if none is.
    pub(super) intact: u16,
    /// Notes to send before the rows.
    pub(super) before: Vec<Message>,
    /// Notes to send after the rows.
    pub(super) after: Vec<Message>,
    /// Damage: there may be more sets than could be read.
    pub(super) trouble: Option<Failure>,
}

impl Inspection {
    /// Sends the notes that do not belong to the rows.
    ///
    /// # Errors
    /// Damage: there may be more sets than could be read.
    pub fn conclude(self, sink: &mut dyn Sink) -> Result<(), Failure> {
        let notes = self.before.into_iter().chain(self.after);
        notes.for_each(|note| sink.message(note));
        self.trouble.map_or(Ok(()), Err)
    }
}

impl Session {
    /// Sends a description of media, as rows.
    ///
    /// # Errors
    /// Media that cannot be read, or do not match the options; damage among the headers.
    pub fn inspect(
        &mut self,
        what: Inspect,
        options: &MediaOptions,
        sink: &mut dyn Sink,
    ) -> Result<(), Failure> {
        let entry = Entry::of_operation(what.statement(), "", options.devices.iter());
        entry.around(sink, |sink| show(self, what, options, sink))
    }

    /// Reads the backup sets on media. Damage among the headers is recorded for the sets that are not intact.
    ///
    /// # Errors
    /// Media that cannot be read, or do not match the options.
    pub fn headers(
        &mut self,
        options: &MediaOptions,
        sink: &mut dyn Sink,
    ) -> Result<Inspection, Failure> {
        let what = Inspect::Headers;
        let entry = Entry::of_operation(what.statement(), "", options.devices.iter());
        entry.around(sink, |_| {
            let found = inspected(self, what, options);
            let (intact, damage) = match &found {
                Ok(found) => (found.intact, found.trouble.as_ref()),
                Err(failure) => (0, Some(failure)),
            };
            if let Some(failure) = damage {
                let devices = options.addresses(self, None)?;
                let state = presence::state(&devices);
                history::record_unopened(self, intact + 1..=u16::MAX, &state, failure);
            }
            found
        })
    }
}

/// The same as part of a statement, which logs its own entry.
pub(crate) fn show(
    session: &mut Session,
    what: Inspect,
    options: &MediaOptions,
    sink: &mut dyn Sink,
) -> Result<(), Failure> {
    let shown = inspected(session, what, options).and_then(|mut found| {
        for note in std::mem::take(&mut found.before) {
            sink.message(note);
        }
        found.rows.send(sink);
        found.conclude(sink)
    });
    shown.map_err(|failure| failure.then(table::terminating_abnormally(what.operation())))
}

fn inspected(
    session: &mut Session,
    what: Inspect,
    options: &MediaOptions,
) -> Result<Inspection, Failure> {
    if what == Inspect::Label && options.devices.len() > 1 {
        // One device has one label.
        return Err(table::too_many_devices(1).into());
    }
    let devices = options.addresses(session, None)?;
    if sql_server::is_backup(&devices) {
        return sql_server::Media::new(&devices, options).inspect(what);
    }
    match what {
        Inspect::Headers => {
            let device_type = devices.first().map_or(0, media_rows::device_type);
            let device = devices.first().map_or("", |device| &device.name);
            headers(&options.open_any(&devices)?, options, device, device_type)
        }
        Inspect::Files => {
            let media = options.open_any(&devices)?;
            let position = options.position()?.unwrap_or(1);
            let entry = media.set(position)?;
            let original = original(&media, &entry.configuration)?;
            Ok(Inspection {
                rows: match original {
                    Some(original) => repacked::file_list(&original),
                    None => media_rows::file_list_only(&entry.configuration),
                },
                positions: vec![position],
                ..Inspection::default()
            })
        }
        Inspect::Label => {
            let device = devices.first().ok_or_else(table::device_needed)?;
            let (header, first) = options.label(device)?;
            let is_compressed = first.is_some_and(|set| media_rows::algorithm_name(&set).is_some());
            Ok(Inspection {
                rows: media_rows::label_only(&header, is_compressed),
                ..Inspection::default()
            })
        }
    }
}

fn headers(
    media: &MediaSet,
    options: &MediaOptions,
    device: &str,
    device_type: u8,
) -> Result<Inspection, Failure> {
    let mut sets = media.sets();
    let count = sets.len();
    if let Some(position) = options.position()? {
        sets.retain(|entry| entry.configuration.position == position);
        if sets.is_empty() {
            return Err(set_not_found(device, position, count).into());
        }
    }
    let found: Vec<FoundSet<'_>> = sets
        .iter()
        .map(|entry| FoundSet {
            set: &entry.configuration,
            is_complete: entry.is_complete,
            device_type,
        })
        .collect();
    let (note, trouble) = trouble(media);
    let partly = found.iter().filter_map(|found| {
        let position = found.set.position;
        let partly = media.partly_finished(position)?;
        Some(table::set_not_on_all(position, partly))
    });
    let mut rows = media_rows::header_only(&found);
    for (row, found) in rows.rows.iter_mut().zip(&found) {
        if let Some(original) = original(media, found.set)? {
            repacked::header(row, &original);
        }
    }
    Ok(Inspection {
        rows,
        positions: found.iter().map(|found| found.set.position).collect(),
        intact: (found.iter().filter(|found| found.is_complete))
            .map(|found| found.set.position)
            .max()
            .unwrap_or(0),
        before: Vec::new(),
        after: partly.chain(note).collect(),
        trouble,
    })
}

/// What follows the last good set: an interrupted append is only mentioned, damage is an error.
fn trouble(media: &MediaSet) -> (Option<Message>, Option<Failure>) {
    if let Some((device, trouble)) = media.cut_filemark() {
        let cut = table::last_filemark_cut(device, trouble);
        return (None, Some(cut.into()));
    }
    let Some((device, trouble)) = media.trouble() else {
        return (None, None);
    };
    if trouble.is_truncation() || matches!(trouble, MediaError::IncompleteSet { .. }) {
        let note = table::last_set_unfinished(device, trouble);
        return (Some(note), None);
    }
    let failure = Failure::from(vec![
        media_message(device, trouble),
        table::found_on_device(device, trouble),
    ]);
    (None, Some(failure))
}
