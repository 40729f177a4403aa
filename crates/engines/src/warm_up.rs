//! How the maker of an engine learns that it has reached its full speed.

use std::convert::Infallible;
use std::sync::mpsc;

/// A new engine keeps this until it is warm: at its full speed. A reload waits until this is
/// dropped before it replaces the old engine.
#[derive(Debug)]
pub struct WarmUp {
    /// Whether others are served meanwhile, so that warming up should have a low priority.
    pub beside_others: bool,
    _until_dropped: Option<mpsc::Sender<Infallible>>,
}

impl WarmUp {
    /// One to give to an engine, and a receiver that disconnects when that engine is warm.
    pub fn new(beside_others: bool) -> (Self, mpsc::Receiver<Infallible>) {
        let (until_dropped, is_warm) = mpsc::channel();
        (Self { beside_others, _until_dropped: Some(until_dropped) }, is_warm)
    }

    /// For an engine that nobody waits for.
    pub fn for_nobody() -> Self {
        Self { beside_others: false, _until_dropped: None }
    }
}
