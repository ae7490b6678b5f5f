//! What is known to be wrong with a batch before its first statement runs: labels that do not exist, BREAK
//! outside of a loop, variables that are declared twice, statements that are not supported.
//!
//! A statement that is refused only when its turn comes would leave the others to do harm without it:
//! `SET ROWCOUNT 1` before a DELETE, a copy and a DROP before `sp_rename`.

use windlass_base::message::table;
use windlass_base::{Message, Severity};
use windlass_tsql::ast::{
    AlterDatabaseAction, AlterLoginAction, DatabaseOrigin, Dbcc, DefineProcedure, LoginOption,
    Statement,
};
use windlass_tsql::span::Spanned;

use super::{engine, script, trace};

/// That of errors that the user can correct, as of syntax errors.
const SEVERITY: Severity = Severity(15);

/// Why a batch does not run.
#[derive(Debug)]
pub(crate) struct Refusal {
    pub(crate) message: Message,
    pub(crate) line: u32,
    /// Whether the batches after it rely on a setting that the session cannot have.
    pub(crate) ends_script: bool,
}

impl From<(Message, u32)> for Refusal {
    fn from((message, line): (Message, u32)) -> Self {
        Self {
            message,
            line,
            ends_script: false,
        }
    }
}

/// Whether a batch may run at all.
pub(crate) fn check(statements: &[Spanned<Statement>]) -> Result<(), Refusal> {
    let mut seen = Seen::default();
    seen.look(statements, false)?;
    seen.look_at_jumps()
}

/// The message about a statement that SQL Server would run and Windlass does not, whatever the state.
fn unsupported(statement: &Statement) -> Option<Message> {
    match statement {
        Statement::SetOption(set) => set
            .names
            .iter()
            .find(|name| !script::is_followed(&name.node, &set.value))
            .map(|name| table::set_value_not_supported(&name.node)),
        Statement::Execute(execute) => {
            let name = execute.procedure.node.object.text.to_ascii_lowercase();
            matches!(name.as_str(), "sp_rename" | "sp_renamedb")
                .then(|| table::renaming_not_supported(&name))
        }
        Statement::AlterDatabase(alter) => match &alter.action {
            AlterDatabaseAction::AddLogFiles { .. } => Some(table::add_log_not_supported()),
            action @ AlterDatabaseAction::Other { text } if !engine::is_user_access(action) => {
                Some(table::alter_database_not_supported(text))
            }
            _ => None,
        },
        Statement::CreateDatabase(create) => match create.origin {
            DatabaseOrigin::AttachRebuildLog => Some(table::rebuild_log_not_supported()),
            DatabaseOrigin::SnapshotOf(_) => Some(table::database_snapshot_not_supported()),
            _ => None,
        },
        Statement::Dbcc(Dbcc::Other { .. }) => Some(table::dbcc_not_supported()),
        Statement::Dbcc(Dbcc::Trace { flags, .. }) => {
            trace::unknown(flags).map(table::trace_flag_not_supported)
        }
        _ => None,
    }
}

/// Whether a statement has the password of a login in its text, which `sys.sql_modules` would show.
fn has_password(statement: &Statement) -> bool {
    match statement {
        Statement::CreateLogin(_) => true,
        Statement::AlterLogin(alter) => match &alter.action {
            AlterLoginAction::With(options) => {
                let mut options = options.iter();
                options.any(|option| matches!(option, LoginOption::Password { .. }))
            }
            AlterLoginAction::Enable | AlterLoginAction::Disable => false,
        },
        _ => false,
    }
}

fn refused(statement: &Statement, mut message: Message, line: u32) -> Refusal {
    message.severity = SEVERITY;
    Refusal {
        message,
        line,
        ends_script: matches!(statement, Statement::SetOption(_)),
    }
}

#[derive(Default)]
struct Seen {
    labels: Vec<String>,
    jumps: Vec<(String, u32)>,
    variables: Vec<String>,
    is_procedure: bool,
}

impl Seen {
    fn look(&mut self, statements: &[Spanned<Statement>], in_loop: bool) -> Result<(), Refusal> {
        statements
            .iter()
            .try_for_each(|statement| self.look_at(statement, in_loop))
    }

    fn look_at(&mut self, statement: &Spanned<Statement>, in_loop: bool) -> Result<(), Refusal> {
        let line = statement.span.line;
        match &statement.node {
            Statement::Block(inner) => self.look(inner, in_loop),
            Statement::If(choice) => {
                self.look_at(&choice.then, in_loop)?;
                match &choice.otherwise {
                    Some(otherwise) => self.look_at(otherwise, in_loop),
                    None => Ok(()),
                }
            }
            Statement::While(repeated) => self.look_at(&repeated.body, true),
            Statement::TryCatch(guard) => {
                self.look(&guard.body, in_loop)?;
                self.look(&guard.handler, in_loop)
            }
            Statement::DefineProcedure(procedure) => Self::look_at_procedure(procedure),
            Statement::Use(_) if self.is_procedure => {
                Err((table::not_in_procedure("a USE database statement"), line).into())
            }
            Statement::Break if !in_loop => Err((table::break_outside(), line).into()),
            Statement::Continue if !in_loop => Err((table::continue_outside(), line).into()),
            Statement::Label(label) => {
                self.labels.push(label.text.clone());
                Ok(())
            }
            Statement::Goto(label) => {
                self.jumps.push((label.node.text.clone(), line));
                Ok(())
            }
            Statement::Declare(declarations) => {
                for declaration in declarations {
                    self.declare(&declaration.variable.name, declaration.span.line)?;
                }
                Ok(())
            }
            Statement::DeclareTable { table, .. } => match &table.target.node {
                windlass_tsql::ast::Target::Variable(name) => self.declare(&name.name, line),
                windlass_tsql::ast::Target::Table(_) => Ok(()),
            },
            Statement::SetCredential(set) if self.is_procedure && set.secret.is_some() => {
                Err((table::secret_in_procedure(set.statement()), line).into())
            }
            other if self.is_procedure && has_password(other) => {
                let kind = match other {
                    Statement::CreateLogin(_) => "CREATE LOGIN",
                    _ => "ALTER LOGIN",
                };
                Err((table::password_in_procedure(kind), line).into())
            }
            other => match unsupported(other) {
                Some(message) => Err(refused(other, message, line)),
                None => Ok(()),
            },
        }
    }

    /// A procedure is a scope of its own, and stays in its database.
    fn look_at_procedure(procedure: &DefineProcedure) -> Result<(), Refusal> {
        let mut own = Self {
            is_procedure: true,
            ..Self::default()
        };
        for parameter in &procedure.parameters {
            own.declare(&parameter.variable.name, parameter.span.line)?;
        }
        own.look(&procedure.body, false)?;
        own.look_at_jumps()
    }

    fn look_at_jumps(&self) -> Result<(), Refusal> {
        let unknown = |(label, _): &&(String, u32)| !self.labels.contains(label);
        match self.jumps.iter().find(unknown) {
            Some((label, line)) => Err((table::label_unknown(label), *line).into()),
            None => Ok(()),
        }
    }

    fn declare(&mut self, name: &str, line: u32) -> Result<(), Refusal> {
        let key = name.to_lowercase();
        if self.variables.contains(&key) {
            return Err((table::variable_declared_twice(name), line).into());
        }
        self.variables.push(key);
        Ok(())
    }
}
