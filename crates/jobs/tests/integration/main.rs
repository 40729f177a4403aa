//! Long work: its content, and what stops and tears it.

mod bulk;
mod changes;
mod graph;
