//! The program `kindred`: [`arguments`] declares its command line, [`commands`] runs the commands,
//! and [`console`] queries a model for a person. Documents are made from the declaration, so this
//! is a library beside the program.
#![forbid(unsafe_code)]

pub mod arguments;
pub mod commands;
pub mod console;
