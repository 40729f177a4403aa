//! How whoever made an engine hears that it is as fast as it will be.

use std::convert::Infallible;
use std::sync::mpsc;

/// Kept by a new engine until it is warm: as fast as it will be. Whoever replaces one engine by another waits until
/// this is dropped.
#[derive(Debug)]
pub struct WarmUp {
    beside_others: bool,
    _until_dropped: Option<mpsc::Sender<Infallible>>,
}

impl WarmUp {
    /// One to give to an engine, and what disconnects when that engine is warm. `beside_others`: others are served
    /// meanwhile, to whom the work of warming up should give way.
    pub fn new(beside_others: bool) -> (Self, mpsc::Receiver<Infallible>) {
        let (until_dropped, is_warm) = mpsc::channel();
        (Self { beside_others, _until_dropped: Some(until_dropped) }, is_warm)
    }

    /// For an engine that nobody waits for.
    pub fn for_nobody() -> Self {
        Self { beside_others: false, _until_dropped: None }
    }

    /// Whether others are served meanwhile, to whom its work should give way.
    pub fn is_beside_others(&self) -> bool {
        self.beside_others
    }
}
