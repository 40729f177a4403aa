//! What an engine must do: a trait for each concern, and one of all.

mod full_pass;
mod heads;
mod search;

use crate::Device;

pub use full_pass::FullPassEngine;
pub use heads::HeadEngine;
pub use search::SearchEngine;

/// Does everything that a service asks for, exactly, as defined by the [contract](super).
///
/// One thread creates, owns and calls an engine, so it need not be `Send`. Whatever has the traits
/// of all concerns is one.
pub trait Engine: Device + SearchEngine + FullPassEngine + HeadEngine {}

impl<E: Device + SearchEngine + FullPassEngine + HeadEngine> Engine for E {}
