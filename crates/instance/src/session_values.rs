//! What expressions ask a session: its variables, its databases, and the functions that begin with `@@`.

use windlass_base::message::table;

use crate::{Environment, Failure, Identity, Session, Value, Which};

impl Environment for Session {
    fn variable(&mut self, name: &str) -> Result<Value, Failure> {
        if !name.starts_with("@@") {
            return self.variables.value(name);
        }
        self.system_value(name)
            .ok_or_else(|| Failure::ending(table::undeclared_variable(name)))
    }

    fn database(&mut self, which: Which<'_>) -> Result<Option<(i64, String)>, Failure> {
        let name = match which {
            Which::Current => self.current_database().to_owned(),
            Which::Named(name) => name.to_owned(),
            Which::Numbered(number) => {
                let system = crate::SYSTEM_DATABASES.iter().find(|(_, id)| *id == number);
                if let Some((name, id)) = system {
                    return Ok(Some((*id, (*name).to_owned())));
                }
                let databases = self.instance.catalog().databases()?;
                let found = databases
                    .into_iter()
                    .find(|record| record.database_id == number);
                return Ok(found.map(|record| (record.database_id, record.name)));
            }
        };
        let system = crate::SYSTEM_DATABASES
            .iter()
            .find(|(system, _)| system.eq_ignore_ascii_case(&name));
        if let Some((name, id)) = system {
            return Ok(Some((*id, (*name).to_owned())));
        }
        let found = self.instance.database(&name)?;
        Ok(found.map(|record| (record.database_id, record.name)))
    }

    fn identity(&self) -> &Identity {
        self.instance.identity()
    }
}

impl Session {
    /// The value of `@@name`; `None` if there is no such system function.
    pub(crate) fn system_value(&self, name: &str) -> Option<Value> {
        let identity = self.instance.identity();
        Some(match name.to_ascii_uppercase().as_str() {
            "@@ERROR" => Value::Integer(i64::from(self.last_error)),
            "@@ROWCOUNT" => Value::Integer(self.row_count),
            "@@TRANCOUNT" => Value::Integer(i64::from(self.queries.transaction_depth())),
            "@@VERSION" => Value::Text(Identity::version_text()),
            "@@SERVERNAME" => Value::text(&identity.server),
            "@@SERVICENAME" => Value::text(identity.instance.as_deref().unwrap_or("WINDLASS")),
            "@@SPID" => Value::Integer(i64::from(self.number())),
            "@@MAX_PRECISION" => Value::Integer(38),
            "@@DATEFIRST" => Value::Integer(7),
            "@@LANGUAGE" => Value::text("us_english"),
            "@@FETCH_STATUS" => Value::Integer(self.cursors.fetch_status),
            "@@CURSOR_ROWS" => Value::Integer(self.cursors.rows),
            "@@LOCK_TIMEOUT" => Value::Integer(match self.settings.lock_timeout {
                Some(timeout) => i64::try_from(timeout.as_millis()).unwrap_or(-1),
                None => 5000,
            }),
            "@@NESTLEVEL" => Value::Integer(i64::from(self.nesting)),
            _ => return None,
        })
    }
}
