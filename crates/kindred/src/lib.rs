//! Kindred without a network: open models, look words up, ask, explain, evaluate and export.
//!
//! The data's path, from the inside out: [`demo`] and `model-store` open a model, [`engines`] makes the engine that
//! searches it, the `scheduler` lets many callers share that engine. [`expression`] reads what people type;
//! [`evaluation`] says how good a model is.
#![forbid(unsafe_code)]

pub mod background;
pub mod demo;
pub mod device;
pub mod engines;
pub mod evaluation;
pub mod expression;
pub mod method;
pub mod queue;
pub mod warm_up;
