//! The rows of a table that changes: they are put and deleted ([`write`]), and read ([`read`]).

pub(super) mod read;
pub(super) mod write;
