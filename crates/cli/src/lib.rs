//! The program `kindred`: `arguments` declares its command line, `usage` says what is wrong with
//! one, [`commands`] runs the commands, and `console` queries a model for a person; `version` says
//! which build it is. Documents are made from the declaration, so this is a library beside the
//! program.
#![forbid(unsafe_code)]

mod arguments;
pub mod commands;
mod console;
mod error;
mod usage;
mod version;

pub use arguments::Cli;
pub use usage::complaint;
