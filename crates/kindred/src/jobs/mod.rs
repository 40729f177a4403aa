//! Long jobs: pieces that are asked for by several threads and kept by one, so that a job that was
//! stopped goes on where it was.
//!
//! A user says what a piece is, how a thread asks for it, and what becomes of its answer
//! ([`Keep`]); [`run()`] keeps a number of them in flight. [`Requests`] asks again where the queue is
//! full or a pass failed. A [`Journal`] has what is done, in a folder beside the file.

mod cancellation;
mod journal;
mod requests;
mod run;

pub(crate) use cancellation::{Cancellation, Interrupted};
pub(crate) use journal::{Description, Entry, Journal, JournalError, in_the_way};
#[cfg(test)]
pub(crate) use journal::{Recorded, difference, head, line, read};
pub(crate) use requests::{Requests, Searches};
pub(crate) use run::{Keep, run};
