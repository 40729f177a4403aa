//! From bytes to fields: bodies, and what a client accepts as an answer.

pub(super) mod body;
pub(super) mod negotiation;
