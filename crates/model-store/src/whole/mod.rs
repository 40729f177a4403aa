//! Files and folders that appear whole or not at all: written under a temporary name beside their
//! target, then renamed. What a killed process has left is removed by the next.

mod folder;
mod leftovers;

pub use folder::sync_parent;
pub(crate) use folder::{Kind, NewFolder, parent};
pub(crate) use leftovers::{lock, remove_leftovers};
