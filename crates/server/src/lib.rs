//! Kindred's service: HTTP over the facade `kindred`, and the command line around it.
//!
//! From the outside in: [`cli`] and [`config`] read flags and settings, and [`commands`] runs the
//! commands. [`assembly`] puts a service together: [`http`] reads requests and writes answers,
//! [`models`] holds the served models, [`observe`] counts, and [`traces`] tells a collector about
//! one request in n. [`console`] queries a model for a person, through the same routes.
//! ARCHITECTURE.md says which module may use which.
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
pub mod traces;
mod workers;
