//! What a call of a procedure needs. What a stored procedure does is checked statement by statement as it runs.

use windlass_base::message::table;
use windlass_tsql::ast::Execute;

use super::{Need, Scene};
use crate::is_system_database;
use crate::login::Right;
use crate::tsql::procedure::is_built_in;

/// What a procedure needs, and from how many arguments on it needs more.
type Row = (&'static str, Option<Right>, Option<(usize, Right)>);

/// The procedures of the server.
#[rustfmt::skip]
const RIGHTS: &[Row] = &[
    ("sp_addsrvrolemember", Some(Right::Server), None),
    ("sp_addumpdevice", Some(Right::Server), None),
    ("sp_attach_db", Some(Right::Databases), None),
    ("sp_attach_single_file_db", Some(Right::Databases), None),
    ("sp_configure", Some(Right::History), Some((2, Right::Server))),
    ("sp_delete_backuphistory", Some(Right::Server), None),
    ("sp_delete_database_backuphistory", Some(Right::Server), None),
    ("sp_detach_db", Some(Right::Databases), None),
    ("sp_dropdevice", Some(Right::Server), None),
    ("sp_dropsrvrolemember", Some(Right::Server), None),
    ("sp_executesql", None, None),
    ("sp_helpdb", Some(Right::History), None),
    ("sp_helpfile", Some(Right::History), None),
    ("sp_helptext", Some(Right::Databases), None),
    ("sp_windlass_drive", Some(Right::History), Some((1, Right::Machine))),
    ("sp_windlass_export", Some(Right::Machine), None),
    ("sp_windlass_remote_folder", Some(Right::History), Some((1, Right::Machine))),
    ("sp_windlass_restore_folder", Some(Right::History), Some((1, Right::Machine))),
    ("sqlbackup", Some(Right::Server), None),
    ("xp_create_subdir", Some(Right::Server), None),
    ("xp_delete_file", Some(Right::Server), None),
    ("xp_dirtree", Some(Right::Databases), None),
    ("xp_fileexist", Some(Right::Databases), None),
    ("xp_fixeddrives", Some(Right::Databases), None),
];

pub(super) fn needs(execute: &Execute, scene: &Scene<'_>) -> Vec<Need> {
    let name = execute.procedure.node.object.text.to_ascii_lowercase();
    let mut needs = Vec::new();
    // It runs in that database.
    if let Some(database) = execute.procedure.node.database()
        && !is_system_database(&database.text)
    {
        needs.push(super::database_access(&database.text, scene));
    }
    if let Some(right) = crate::agent::procedure::right(execute, scene.database) {
        needs.push(Need::of(right, table::not_permitted()));
        return needs;
    }
    if !is_built_in(&name) {
        return needs;
    }
    let known = RIGHTS.iter().find(|(known, ..)| *known == name);
    let right = match known {
        Some((_, _, Some((from, more)))) if execute.arguments.len() >= *from => Some(*more),
        Some((_, right, _)) => *right,
        // A procedure that nobody has thought about here.
        None => Some(Right::Server),
    };
    needs.extend(right.map(|right| match right {
        Right::Machine => Need::of(right, table::only_on_the_server(&name)),
        _ => Need::of(right, table::not_permitted()),
    }));
    needs
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tsql::procedure::built_in_names;

    #[test]
    fn only_administrators_write_jobs_however_the_procedure_is_named() {
        let scene = |database| Scene {
            database,
            login: "bob",
        };
        for (text, database, right) in [
            ("EXEC msdb.dbo.sp_add_job 'x'", "master", Right::Server),
            ("EXEC msdb..SP_ADD_JOBSTEP 'x'", "app", Right::Server),
            ("EXEC sp_start_job 'x'", "msdb", Right::Server),
            ("EXEC dbo.sp_help_job", "MSDB", Right::History),
        ] {
            let parsed = windlass_tsql::parse_batch(text).unwrap();
            let windlass_tsql::ast::Statement::Execute(execute) = &parsed[0].node else {
                panic!("{text}");
            };
            let found = needs(execute, &scene(database));
            assert!(found.iter().any(|need| need.right == right), "{text}");
        }
    }

    #[test]
    fn every_procedure_of_the_server_has_a_row() {
        let known = |name: &str| RIGHTS.iter().any(|(known, ..)| *known == name);
        let missing: Vec<_> = built_in_names().filter(|name| !known(name)).collect();
        assert!(missing.is_empty(), "add what they need: {missing:?}");
        assert!(RIGHTS.iter().all(|(name, ..)| is_built_in(name)));
    }
}
