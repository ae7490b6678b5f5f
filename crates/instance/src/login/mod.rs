//! Who a session is, and what it may do.
//!
//! | module | what |
//! |---|---|
//! | `role` | the server roles, and the rights of each |
//! | `principal` | a login, or the administrator of the files, as a session acts for it |
//! | `authenticate` | from a name and a password to a principal |
//! | `session` | what a principal changes in a session |
//!
//! Neighbours: `catalog` stores logins; [`crate::tsql`] tells which rights a statement needs; the server calls
//! [`authenticate()`] and [`Session::act_as`](crate::Session::act_as). A session that acts for nobody is that of
//! the local administrator, who may read the instance's files anyway.
//!
//! Invariants:
//! 1. What is remote names files only below mapped drives and listed folders, whatever its roles.
//! 2. A change of roles holds from the next statement of every session.

mod authenticate;
mod principal;
mod role;
mod session;
#[cfg(test)]
mod tests;

pub use authenticate::{LoginRefusal, authenticate};
pub use principal::Principal;
pub(crate) use role::Right;
pub use role::Role;
