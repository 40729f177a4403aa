//! A model for people: the interactive console, pipes of questions, and single questions on the command line.
//!
//! A line's way: `line` or `compat` (what it means) → `question` (a request of HTTP) → `service` (who answers it: the
//! whole service in this process, without a socket, or one behind a URL) → `answer` (the JSON of HTTP, read again) →
//! `print`. So the console has no queries, no checks and no suggestions of its own, and its answers are the
//! service's, to the bit. `compare` holds them against the plain reference's.

mod answer;
mod compare;
mod compat;
mod completion;
mod error;
mod in_process;
mod interactive;
mod line;
mod pipe;
mod print;
mod question;
mod remote;
mod service;
mod session;
mod turn;

pub use error::ConsoleError;
pub use interactive::talk;
pub use pipe::{answer_lines, answer_one};
pub use print::Form;
pub use question::Question;
pub use session::Session;
