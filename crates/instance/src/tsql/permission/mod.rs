//! What a statement needs: from its syntax tree to rights, without a look at anything else.
//!
//! Neighbours: [`crate::login`] knows who has which rights, and asks before each statement, also before those
//! within procedures and texts that are executed.
//!
//! Invariant: every kind of statement is named here; a new one does not compile until its needs are.

mod mentions;
mod procedure;

use windlass_base::Message;
use windlass_base::message::table;
use windlass_tsql::ast::{
    AlterDatabase, AlterLogin, AlterLoginAction, AlteredDatabase, BackupStatement, BackupTarget,
    Dbcc, DropDatabase, DropProcedure, InsertRows, LoginOption, Name, ObjectName, RestoreAction,
    Sql, SqlTree, Statement, Value,
};

use self::mentions::{Mention, Mentions};
use crate::login::Right;
use crate::{AfterFailure, Failure, is_system_database};

/// Where a statement stands.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scene<'a> {
    /// The current database.
    pub(crate) database: &'a str,
    /// The name of the login.
    pub(crate) login: &'a str,
}

/// A right, and what is said to those who lack it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Need {
    pub(crate) right: Right,
    messages: Vec<Message>,
    ends_batch: bool,
}

impl Need {
    fn of(right: Right, message: Message) -> Self {
        Self {
            right,
            messages: vec![message],
            ends_batch: false,
        }
    }

    fn and(mut self, message: Message) -> Self {
        self.messages.push(message);
        self
    }

    pub(crate) fn refusal(self) -> Failure {
        Failure {
            batch: match self.ends_batch {
                true => AfterFailure::Ends,
                false => AfterFailure::Continues,
            },
            ..Failure::from(self.messages)
        }
    }
}

/// What a statement needs apart from the statements within it.
pub(crate) fn needs(statement: &Statement, scene: &Scene<'_>) -> Vec<Need> {
    let server = || vec![Need::of(Right::Server, table::not_permitted())];
    let databases = |message| vec![Need::of(Right::Databases, message)];
    match statement {
        Statement::Backup(backup) => vec![of_backup(backup)],
        Statement::Restore(restore) => of_restore(&restore.action),
        Statement::CreateDatabase(_) => {
            databases(table::permission_denied("CREATE DATABASE", "master"))
        }
        Statement::DropDatabase(drop) => of_drop_database(drop),
        Statement::AlterDatabase(alter) => vec![of_alter_database(alter, scene)],
        Statement::CreateMasterKey { .. }
        | Statement::DropMasterKey
        | Statement::CreateCertificate(_)
        | Statement::BackupCertificate(_)
        | Statement::DropCertificate(_)
        | Statement::SetCredential(_)
        | Statement::DropCredential(_)
        | Statement::CreateLogin(_)
        | Statement::AlterServerConfiguration(_) => server(),
        Statement::AlterLogin(alter) => of_alter_login(alter, scene),
        Statement::DropLogin(name) => {
            let message = table::cannot_find("drop", "login", &name.node.text);
            vec![Need::of(Right::Server, message)]
        }
        Statement::AlterServerRole(alter) => {
            let message = table::cannot_find("alter", "server role", &alter.role.node.text);
            vec![Need::of(Right::Server, message)]
        }
        Statement::Use(name) if is_system_database(&name.node.text) => Vec::new(),
        Statement::Use(name) => vec![Need {
            ends_batch: true,
            ..database_access(&name.node.text, scene)
        }],
        Statement::Kill { .. } => vec![Need::of(Right::Server, table::kill_denied())],
        Statement::Reconfigure(_) => vec![Need::of(Right::Server, table::reconfigure_denied())],
        Statement::Checkpoint { .. } => {
            databases(table::permission_denied("CHECKPOINT", scene.database))
        }
        Statement::Dbcc(dbcc) => vec![of_dbcc(dbcc, scene)],
        Statement::Execute(execute) => procedure::needs(execute, scene),
        Statement::Sql(sql) => of_sql(sql, scene),
        Statement::DefineProcedure(_) => {
            let message = table::permission_denied("CREATE PROCEDURE", scene.database);
            vec![Need::of(right_to_define(scene.database), message)]
        }
        Statement::DropProcedure(drop) => of_drop_procedure(drop, scene),
        Statement::Declare(_)
        | Statement::DeclareTable { .. }
        | Statement::SetVariable(_)
        | Statement::If(_)
        | Statement::While(_)
        | Statement::Print(_)
        | Statement::Return(_)
        | Statement::ExecuteText(_)
        | Statement::Cursor(_) => of_mentions(&Mentions::of(|all| all.script(statement)), scene),
        Statement::SetOption(_)
        | Statement::WaitForDelay(_)
        | Statement::Transaction(_)
        | Statement::Block(_)
        | Statement::Break
        | Statement::Continue
        | Statement::Label(_)
        | Statement::Goto(_)
        | Statement::TryCatch(_)
        | Statement::Throw(_)
        | Statement::RaiseError(_) => Vec::new(),
    }
}

/// Procedures of the system databases run wherever they are called, also for administrators.
fn right_to_define(database: &str) -> Right {
    match is_system_database(database) {
        true => Right::Server,
        false => Right::Databases,
    }
}

fn of_drop_database(drop: &DropDatabase) -> Vec<Need> {
    let names = drop.names.iter();
    let cannot = |name: &str| table::cannot_drop("database", name);
    names
        .map(|name| Need::of(Right::Databases, cannot(&name.node.text)))
        .collect()
}

fn of_alter_database(alter: &AlterDatabase, scene: &Scene<'_>) -> Need {
    let name = match &alter.database {
        AlteredDatabase::Named(name) => name.node.text.as_str(),
        AlteredDatabase::Current => scene.database,
    };
    Need::of(Right::Databases, table::alter_database_denied(name))
}

fn of_drop_procedure(drop: &DropProcedure, scene: &Scene<'_>) -> Vec<Need> {
    let need = |name: &ObjectName| {
        let database = name.database();
        let database = database.map_or(scene.database, |database| &database.text);
        let message = table::cannot_drop("procedure", name);
        Need::of(right_to_define(database), message)
    };
    drop.names.iter().map(|name| need(&name.node)).collect()
}

fn database_access(name: &str, scene: &Scene<'_>) -> Need {
    let message = table::database_not_accessible(scene.login, name);
    Need::of(Right::Databases, message)
}

fn of_backup(backup: &BackupStatement) -> Need {
    let (operation, name) = match &backup.target {
        BackupTarget::Database { name, .. } => ("BACKUP DATABASE", written(&name.node)),
        BackupTarget::Log { name } => ("BACKUP LOG", written(&name.node)),
        BackupTarget::Group { .. } => ("BACKUP GROUP", "master"),
        BackupTarget::Server => ("BACKUP SERVER", "master"),
    };
    Need::of(Right::Backup, table::permission_denied(operation, name))
        .and(table::terminating_abnormally(operation))
}

fn of_restore(action: &RestoreAction) -> Vec<Need> {
    let reads = |operation| {
        let denied = table::permission_denied("CREATE DATABASE", "master");
        Need::of(Right::Backup, denied).and(table::terminating_abnormally(operation))
    };
    let restores = |operation, name: &Name| {
        Need::of(Right::Databases, table::restore_denied(written(name)))
            .and(table::terminating_abnormally(operation))
    };
    vec![match action {
        RestoreAction::Database { name, .. } => restores("RESTORE DATABASE", &name.node),
        RestoreAction::Log { name, .. } => restores("RESTORE LOG", &name.node),
        RestoreAction::HeaderOnly => reads("RESTORE HEADERONLY"),
        RestoreAction::FileListOnly => reads("RESTORE FILELIST"),
        RestoreAction::LabelOnly => reads("RESTORE LABELONLY"),
        RestoreAction::VerifyOnly => reads("VERIFY DATABASE"),
        RestoreAction::RewindOnly => reads("RESTORE REWINDONLY"),
    }]
}

/// A name as written; variables are not evaluated.
fn written(name: &Name) -> &str {
    match name {
        Name::Identifier(identifier) => &identifier.text,
        Name::Variable(variable) => &variable.name,
    }
}

/// Whoever knows the password of a login may change it, and the database in which it starts.
fn of_alter_login(alter: &AlterLogin, scene: &Scene<'_>) -> Vec<Need> {
    let is_own = |option: &LoginOption| match option {
        LoginOption::Password { old, .. } => old.is_some(),
        LoginOption::DefaultDatabase(_) | LoginOption::DefaultLanguage => true,
        LoginOption::Name(_) | LoginOption::NoPolicy | LoginOption::NoExpiration => false,
    };
    let is_free = match &alter.action {
        AlterLoginAction::With(options) => options.iter().all(is_own),
        AlterLoginAction::Enable | AlterLoginAction::Disable => false,
    };
    let name = &alter.name.node.text;
    if is_free && name.to_lowercase() == scene.login.to_lowercase() {
        return Vec::new();
    }
    let message = table::cannot_find("alter", "login", name);
    vec![Need::of(Right::Server, message)]
}

fn of_dbcc(dbcc: &Dbcc, scene: &Scene<'_>) -> Need {
    match dbcc {
        Dbcc::Trace { .. } => {
            let message = table::dbcc_denied(scene.login, "TRACEON");
            Need::of(Right::Server, message)
        }
        Dbcc::CheckDatabase { database, .. } => {
            let name = match database.as_ref().map(|name| &name.node) {
                Some(Value::Text { text, .. }) => text.clone(),
                Some(Value::Number(number)) => number.to_string(),
                Some(Value::Variable(variable)) => variable.name.clone(),
                None => scene.database.to_owned(),
            };
            let message = table::dbcc_on_database_denied(scene.login, "CHECKDB", name);
            Need::of(Right::Databases, message)
        }
        Dbcc::LogSpace { .. } => {
            let message = table::server_permission_denied("VIEW SERVER STATE");
            Need::of(Right::History, message)
        }
        Dbcc::Other { command, .. } => {
            Need::of(Right::Server, table::dbcc_denied(scene.login, command))
        }
    }
}

fn of_sql(sql: &Sql, scene: &Scene<'_>) -> Vec<Need> {
    let changes = |permission, names: &[&ObjectName]| {
        let mentions: Vec<_> = names
            .iter()
            .map(|name| Mention::Changes(permission, name))
            .collect();
        of_mentions(&mentions, scene)
    };
    let mentions = match &sql.tree {
        SqlTree::Query(query) => Mentions::of(|mentions| mentions.query(query)),
        SqlTree::Insert(insert) => {
            let mut needed = of_mentions(&Mentions::of(|all| all.insert(insert)), scene);
            if let InsertRows::Execute(statement) = &insert.rows {
                needed.extend(needs(statement, scene));
            }
            return needed;
        }
        SqlTree::Update(update) => Mentions::of(|mentions| mentions.update(update)),
        SqlTree::Delete(delete) => Mentions::of(|mentions| mentions.delete(delete)),
        SqlTree::CreateTable(create) => Mentions::of(|mentions| mentions.create_table(create)),
        SqlTree::DropTable { names, .. } => {
            let names: Vec<_> = names.iter().map(|name| &name.node).collect();
            return changes("ALTER", &names);
        }
        SqlTree::Truncate(name) => return changes("ALTER", &[&name.node]),
        // What it touches is not known.
        SqlTree::Native => {
            let word = sql.text.split_whitespace().next().unwrap_or("");
            let denied = table::permission_denied(word.to_ascii_uppercase(), scene.database);
            return vec![Need::of(Right::Databases, denied)];
        }
    };
    of_mentions(&mentions, scene)
}

fn of_mentions(mentions: &[Mention<'_>], scene: &Scene<'_>) -> Vec<Need> {
    let mentions = mentions.iter();
    mentions
        .filter_map(|mention| match mention {
            Mention::Reads(name) => of_object("SELECT", false, name, scene),
            Mention::Changes(permission, name) => of_object(permission, true, name, scene),
            Mention::Inspects(function) => of_object("VIEW DEFINITION", false, function, scene),
        })
        .collect()
}

/// What the use of a table needs; nothing if it is the session's own.
fn of_object(
    permission: &str,
    is_change: bool,
    name: &ObjectName,
    scene: &Scene<'_>,
) -> Option<Need> {
    if name.object.text.starts_with('#') {
        return None;
    }
    let database = name.database().map_or(scene.database, |own| &own.text);
    let schema = name.schema().map_or("dbo", |schema| &schema.text);
    let is_view = schema.eq_ignore_ascii_case("sys");
    if !is_view && database.eq_ignore_ascii_case("tempdb") {
        return None;
    }
    let is_system = is_view || is_system_database(database);
    if !is_system && !database.eq_ignore_ascii_case(scene.database) {
        return Some(database_access(database, scene));
    }
    let right = match (is_system, is_change) {
        (true, false) => Right::History,
        (true, true) => Right::Server,
        (false, _) => Right::Databases,
    };
    let object = &name.object.text;
    let message = match permission {
        "CREATE TABLE" => table::permission_denied(permission, database),
        _ if is_view && object.to_ascii_lowercase().starts_with("dm_") => {
            table::server_permission_denied("VIEW SERVER STATE")
        }
        _ => table::object_permission_denied(permission, object, database, schema),
    };
    Some(Need::of(right, message))
}

#[cfg(test)]
mod tests;
