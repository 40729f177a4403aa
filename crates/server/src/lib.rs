//! Kindred's service: from a queue of queries to HTTP, and the command line around it.
//!
//! The data's path, from the outside in: [`http`] reads requests and writes answers, [`queue`] holds
//! the jobs they become and the one thread that owns the engine, [`engines`] makes that engine,
//! [`default_model`] and `model-store` the model it searches; [`models`] holds all that are served.
//! [`config`] says how. Beside that,
//! [`evaluation`] says how good a model is, and [`console`] asks one for a person.
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
