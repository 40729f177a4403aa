//! Queries by people: the interactive console, pipes of questions, and single questions on the
//! command line.
//!
//! The path of a line: `line` or `compat` (parses it) → `service`: `local` (asks the facade, in this
//! process) or `remote` (asks a service behind a URL) → `answer` (the facade's, read from JSON if it
//! is from elsewhere) → `print`. So the console has no queries, checks or suggestions of its own, and
//! its answers are bit-identical to the service's. `compare` compares them with the plain
//! reference's.

mod answer;
mod columns;
mod compare;
mod compat;
mod completion;
mod interactive;
mod line;
mod local;
mod pipe;
mod print;
mod print_text;
mod print_words;
mod remote;
mod service;
mod session;
mod single;
mod turn;

pub(crate) use columns::{reasons, tab_separated};
pub(crate) use interactive::talk;
pub(crate) use pipe::{answer_lines, beginning};
pub(crate) use print::{Form, heading};
pub(crate) use print_text::explanation_lines;
pub(crate) use remote::Remote;
pub(crate) use session::Session;
pub(crate) use single::{answer_one, odd_one_out, rank, similarity};
