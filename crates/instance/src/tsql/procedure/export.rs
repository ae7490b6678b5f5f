//! `sp_windlass_export`: a database of the page engine as a SQLite file. A Windlass extension.

use windlass_base::message::table;

use super::Arguments;
use crate::{Failure, Session, Sink};

/// `sp_windlass_export 'app', '/srv/out/app.db'` writes the last committed state to a new file on the server.
pub(super) fn export(
    session: &mut Session,
    arguments: &Arguments<'_>,
    sink: &mut dyn Sink,
) -> Result<(), Failure> {
    let database = arguments.required("@database")?;
    let file = arguments.required("@file")?;
    let target = session.instance.drives().path(&file)?;
    let bytes = session.export(&database, &target)?;
    sink.message(table::exported(&database, target.display(), bytes));
    Ok(())
}
