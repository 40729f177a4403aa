//! Kindred's service: HTTP over the facade `kindred`.
//!
//! From the outside in: [`config`] reads settings, [`assembly`] puts a service together, [`http`]
//! reads requests and writes answers, [`models`] holds the served models, [`observe`] counts, and
//! [`traces`] tells a collector about one request in n. ARCHITECTURE.md says which module may use
//! which.
#![forbid(unsafe_code)]

pub mod assembly;
mod certificate;
pub mod client;
pub mod config;
pub mod escape;
pub mod http;
pub mod logging;
pub mod models;
pub mod observe;
mod system;
pub mod traces;
mod workers;

/// The allocator of a program. It stands here and not in the crate `cli`, which is not optimised:
/// there, each allocation would pass through three more functions.
#[cfg(feature = "allocator")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;
