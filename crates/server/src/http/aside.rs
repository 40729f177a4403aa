//! Stages of a request's work: here if they are short, on other threads ([`Workers`](crate::workers::Workers)) if they
//! would keep the other connections of this thread waiting.

use std::time::Instant;

use super::ApiError;
use crate::models::{Call, Service};
use crate::workers::Patience;

/// About how long a stage takes, in nanoseconds of one core. An estimate from its form, before it begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Work(pub(super) u64);

impl Work {
    /// What takes longer goes to another thread, which costs some 20 µs itself.
    const LONGEST_HERE: Self = Self(400_000);

    /// Of taking a text apart that has words in it, and looking them up: a body of JSON or a query string.
    pub(super) fn of_text<'a>(pieces: impl Iterator<Item = &'a [u8]>) -> Self {
        /// Measured on a Xeon at 2 GHz: JSON takes 1 to 3 ns a byte.
        const BYTE: u64 = 4;
        /// A word is allocated and looked up, in a text in several forms. In JSON two of these bytes are around it,
        /// in a text or query string one is beside it.
        const HALF_A_WORD: u64 = 400;
        /// A byte of a character beyond ASCII besides: where words of a text begin and end, and what they are in lower
        /// case, is looked up for each.
        const BEYOND_ASCII: u64 = 12;
        let (mut bytes, mut halves, mut beyond) = (0, 0, 0);
        for piece in pieces {
            let of_byte = |&byte: &u8| match byte {
                b'"' => 1,
                b' ' | b'+' | b'/' | b'&' => 2,
                _ => 0,
            };
            bytes += piece.len() as u64;
            beyond += piece.iter().filter(|byte| !byte.is_ascii()).count() as u64;
            halves += piece.iter().map(of_byte).sum::<u64>();
        }
        Self(bytes * BYTE + halves * HALF_A_WORD + beyond * BEYOND_ASCII)
    }

    /// Of writing n numbers or words of an answer.
    pub(super) fn of_writing(numbers: usize) -> Self {
        const NUMBER: u64 = 40;
        Self(numbers as u64 * NUMBER)
    }

    /// Of making n queries of words that are looked up already, and of taking their answers.
    pub(super) fn of_asking(queries: usize, dim: usize) -> Self {
        const QUERY: usize = 4000;
        const COMPONENT: usize = 10;
        Self((queries * (QUERY + dim * COMPONENT)) as u64)
    }

    /// Of compressing n bytes.
    pub(super) fn of_compressing(bytes: u64) -> Self {
        const BYTE: u64 = 12;
        Self(bytes * BYTE)
    }

    /// Of looking for words of the model that resemble each of n words.
    pub(super) fn of_suggesting(words: usize) -> Self {
        const WORD: u64 = 1_000_000;
        Self(words as u64 * WORD)
    }

    /// Of looking for words that begin alike among n.
    pub(super) fn of_listing(rows: usize) -> Self {
        const FROM_MAP: u64 = 1_000_000;
        const ROW: u64 = 5;
        Self(FROM_MAP + rows as u64 * ROW)
    }

    /// Counts it in the metrics. To be called for every stage but the short ones of a GET, which are on the hot path.
    pub(super) fn count(self, service: &Service) {
        service.observer.count_stage(self.0);
    }

    /// Whether it keeps others waiting.
    pub(super) fn is_long(self) -> bool {
        self > Self::LONGEST_HERE
    }
}

/// One stage of a request, which ends by the deadline either way. Long ones ask their [`Patience`] now and then.
pub(super) async fn stage<T: Send + 'static>(
    call: &Call,
    work: Work,
    deadline: Instant,
    stage: impl FnOnce(&Patience) -> Result<T, ApiError> + Send + 'static,
) -> Result<T, ApiError> {
    if !work.is_long() {
        work.count(call.service());
        return stage(&Patience::until(deadline));
    }
    elsewhere(call, work, deadline, stage).await
}

/// As [`stage`], but on another thread whatever it is estimated to take.
pub(super) async fn elsewhere<T: Send + 'static>(
    call: &Call,
    work: Work,
    deadline: Instant,
    stage: impl FnOnce(&Patience) -> Result<T, ApiError> + Send + 'static,
) -> Result<T, ApiError> {
    work.count(call.service());
    call.service().workers.run(call.account(), deadline, stage).await?
}

/// That a stage may go on.
pub(super) fn goes_on(patience: &Patience) -> Result<(), ApiError> {
    if patience.is_over() { Err(ApiError::DeadlinePassed) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_is_judged_by_words_and_not_by_bytes() {
        let of = |text: &str| Work::of_text(std::iter::once(text.as_bytes())).is_long();
        let vector = vec!["-0.12345678"; 2000].join(",");
        assert!(!of(&format!("{{\"vector\":[{vector}]}}")), "22 KB, but few words");
        let words = vec!["\"a\""; 1000].join(",");
        assert!(of(&format!("{{\"words\":[{words}]}}")), "4 KB");
        assert!(!of("word=frog&k=10"));
        assert!(of(&vec!["exclude=a"; 1001].join("&")));
        assert!(of(&"a ".repeat(1001)), "a text");
        assert!(of(&"x".repeat(200_000)));
    }
}
