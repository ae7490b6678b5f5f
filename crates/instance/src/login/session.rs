//! What a principal changes in a session: its name, its files, its statements.

use windlass_tsql::ast::Statement;

use super::Principal;
use crate::confinement::{Confinement, Limits};
use crate::tsql::engine::DATA_FOLDER;
use crate::tsql::permission::{Scene, needs};
use crate::{Failure, Session, event_log};

impl Session {
    /// Acts for somebody from now on. Without it, a session acts for the local administrator.
    ///
    /// # Errors
    /// Those of the catalog, which lists the folders of remote sessions.
    pub fn act_as(&mut self, principal: Principal) -> Result<(), Failure> {
        self.instance.name_user(principal.name());
        self.queries
            .guard(principal.is_remote() || principal.is_guest());
        self.principal = principal;
        self.confine()
    }

    /// Runs what a remote session has written: no further than that may reach, even if an administrator asks for it.
    pub(crate) fn within_remote_limits<T>(
        &mut self,
        run: impl FnOnce(&mut Self) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        if !self.principal.is_unlimited() {
            return run(self);
        }
        let own = self.principal.clone();
        self.act_as(Principal::confined(own.name()))?;
        let ran = run(self);
        self.act_as(own)?;
        ran
    }

    /// For whom the session acts.
    pub fn principal(&self) -> &Principal {
        &self.principal
    }

    /// Checks that the session may run a statement, but not the statements within it: their turn comes.
    pub(crate) fn authorize(&mut self, statement: &Statement) -> Result<(), Failure> {
        if self.principal.is_unlimited() {
            return Ok(());
        }
        let scene = Scene {
            database: self.current_database(),
            login: self.principal.name(),
        };
        let needs = needs(statement, &scene);
        if needs.is_empty() {
            return Ok(());
        }
        // Roles and folders may have changed since.
        self.principal = self.principal.refreshed(self.instance.catalog())?;
        self.confine()?;
        let mut needs = needs.into_iter();
        match needs.find(|need| !self.principal.may(need.right)) {
            None => Ok(()),
            Some(need) => {
                let failure = need.refusal();
                event_log::denied(self.principal.name(), &failure);
                Err(failure)
            }
        }
    }

    fn confine(&mut self) -> Result<(), Failure> {
        let limits = if self.principal.is_remote() {
            let listed = self.instance.catalog().remote_folders()?;
            let own = self.instance.folder();
            Some(Limits::Listed(Confinement::new(listed, own, DATA_FOLDER)))
        } else {
            self.principal.is_guest().then_some(Limits::NotOpen)
        };
        self.instance.confine(limits);
        Ok(())
    }
}
