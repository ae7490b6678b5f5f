//! `CREATE` and `ALTER CREDENTIAL`.

use windlass_tsql::ast::{Secret, SetCredential};

use crate::operation::CredentialOptions;
use crate::{Failure, Session};

pub(super) fn set(session: &mut Session, set: &SetCredential) -> Result<(), Failure> {
    session.set_credential(&CredentialOptions {
        name: &set.name.node.text,
        identity: &set.identity,
        secret: set.secret.as_ref().map(Secret::text),
        is_change: set.is_change,
    })
}
