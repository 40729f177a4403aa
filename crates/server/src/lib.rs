//! Kindred's service and command line. [`http`] reads requests and writes answers; [`models`] holds the models that are
//! served, each with its queue; the crate `kindred` looks words up, makes queries and engines; `scheduler` runs them.
//! [`assembly`] puts it together, [`config`] has the settings.
#![forbid(unsafe_code)]

pub mod assembly;
pub mod cli;
mod client;
pub mod commands;
pub mod config;
pub mod console;
pub mod escape;
pub mod http;
pub mod logging;
pub mod models;
pub mod observe;
mod workers;
