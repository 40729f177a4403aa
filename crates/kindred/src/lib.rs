//! Kindred without a network: open models, look words up, ask, explain, evaluate and export.
//!
//! The data's path, from the inside out: [`demo`] and `model-store` open a model, [`engines`] makes the engine that
//! searches it, the `scheduler` lets many callers share that engine. [`expression`] reads what people type;
//! [`question`] makes checked queries of it, with the [`options`] that are declared there; [`asking`] and [`search`]
//! put them to the engine; [`evaluation`] says how good a model is.
#![forbid(unsafe_code)]

pub mod asking;
pub mod background;
pub mod demo;
pub mod device;
pub mod engines;
mod error;
pub mod evaluation;
pub mod expression;
pub mod method;
pub mod options;
pub mod question;
pub mod search;
pub mod warm_up;

pub use error::{Error, UnknownWord, unknown_words};
pub use method::Method;
pub use options::Options;
pub use question::{Target, Unknown};
