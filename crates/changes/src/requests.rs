//! Idempotency keys of batches that were committed: for 24 hours, and at most 100,000.

use std::collections::VecDeque;
use std::time::Duration;

use hashbrown::HashMap;
use serde::{Deserialize, Serialize};

use super::state::Counts;

/// Maximum length of an idempotency key, in bytes.
pub const MAX_REQUEST_KEY_BYTES: usize = 255;
/// Maximum number of idempotency keys that are kept.
pub const MAX_REQUEST_KEYS: usize = 100_000;
/// How long an idempotency key is kept.
pub const KEEP_REQUEST_KEYS: Duration = Duration::from_secs(24 * 60 * 60);

/// What a batch with an idempotency key did.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Answer {
    pub(crate) content: [u8; 16],
    pub(crate) position: u64,
    pub(crate) counts: Counts,
}

/// The answers to batches with idempotency keys.
#[derive(Debug, Clone)]
pub(crate) struct Requests {
    limit: usize,
    answers: HashMap<Box<str>, (u64, Answer)>,
    /// In the order of their batches.
    order: VecDeque<Box<str>>,
}

impl Requests {
    pub(crate) fn new(limit: usize) -> Self {
        Self { limit, answers: HashMap::new(), order: VecDeque::new() }
    }

    /// The answer to a key that is kept. Times are milliseconds since 1970.
    pub(crate) fn get(&self, key: &str, now: u64) -> Option<Answer> {
        let &(at, answer) = self.answers.get(key)?;
        (!is_over(at, now)).then_some(answer)
    }

    /// Keeps an answer to a key that has none, and forgets the oldest.
    pub(crate) fn put(&mut self, key: &str, at: u64, answer: Answer) {
        if self.answers.insert(key.into(), (at, answer)).is_some() {
            self.order.retain(|known| **known != *key);
        }
        self.order.push_back(key.into());
        while let Some(oldest) = self.order.front()
            && (self.order.len() > self.limit || is_over(self.answers[oldest].0, at))
        {
            self.answers.remove(oldest);
            self.order.pop_front();
        }
    }
}

/// A key with its answer, as the base of a fold has it: a line of JSON.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line<'a> {
    #[serde(borrow)]
    key: std::borrow::Cow<'a, str>,
    at: u64,
    content: String,
    position: u64,
    inserted: usize,
    replaced: usize,
    deleted: usize,
    missing: usize,
}

impl Requests {
    /// All keys that are kept, oldest first, as lines.
    pub(crate) fn lines(&self) -> impl Iterator<Item = String> {
        self.order.iter().map(|key| {
            let (at, Answer { content, position, counts }) = self.answers[key];
            let Counts { inserted, replaced, deleted, missing } = counts;
            let content = format!("{:032x}", u128::from_be_bytes(content));
            let key = std::borrow::Cow::Borrowed(&**key);
            let line = Line { key, at, content, position, inserted, replaced, deleted, missing };
            serde_json::to_string(&line).expect("texts and numbers") + "\n"
        })
    }

    /// Bytes that the lines take, or a few more.
    pub(crate) fn bytes(&self) -> usize {
        // Control characters take six bytes.
        self.order.iter().map(|key| 6 * key.len() + 256).sum()
    }

    /// The keys of these lines. Their checksum was right, so they are as they were written.
    pub(crate) fn of_lines(limit: usize, lines: &[u8]) -> Self {
        let mut requests = Self::new(limit);
        for line in lines.split(|&byte| byte == b'\n') {
            let Ok(line) = serde_json::from_slice::<Line<'_>>(line) else { continue };
            let Line { key, at, content, position, inserted, replaced, deleted, missing } = line;
            let content = u128::from_str_radix(&content, 16).unwrap_or_default().to_be_bytes();
            let counts = Counts { inserted, replaced, deleted, missing };
            requests.put(&key, at, Answer { content, position, counts });
        }
        requests
    }
}

/// Whether a key is no longer kept. A clock that was set back ends nothing.
fn is_over(at: u64, now: u64) -> bool {
    u128::from(now.saturating_sub(at)) >= KEEP_REQUEST_KEYS.as_millis()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(position: u64) -> Answer {
        Answer { content: [1; 16], position, counts: Counts::default() }
    }

    #[test]
    fn lines_read_back_in_their_order() {
        let mut requests = Requests::new(10);
        for (index, key) in ["a", "\"\n\u{1}é", "b"].into_iter().enumerate() {
            let counts = Counts { inserted: index, missing: 2, ..Counts::default() };
            let content = [index as u8 ^ 0x80; 16];
            requests.put(key, 1000 + index as u64, Answer { content, position: 7, counts });
        }
        let lines: String = requests.lines().collect();
        assert!(lines.len() <= requests.bytes());
        let again = Requests::of_lines(10, lines.as_bytes());
        assert_eq!((&again.order, &again.answers), (&requests.order, &requests.answers));
    }

    #[test]
    fn keys_are_kept_for_a_day_and_a_bounded_number_of_them() {
        let day = KEEP_REQUEST_KEYS.as_millis() as u64;
        let mut requests = Requests::new(3);
        requests.put("a", 1000, answer(1));
        assert_eq!(requests.get("a", day + 999), Some(answer(1)));
        assert_eq!(requests.get("a", day + 1000), None);
        assert_eq!((requests.get("a", 0), requests.get("b", 0)), (Some(answer(1)), None));
        // Used again after a day, it counts from then on.
        requests.put("b", 2000, answer(2));
        requests.put("a", day + 1000, answer(3));
        assert_eq!(requests.get("a", day + 1000), Some(answer(3)));
        assert_eq!((requests.order.len(), requests.answers.len()), (2, 2));
        requests.put("c", day + 2000, answer(4));
        assert_eq!(requests.get("b", 2000), None, "a day old when the next came");
        for (index, key) in ["d", "e", "f"].into_iter().enumerate() {
            requests.put(key, day + 2000, answer(5 + index as u64));
        }
        assert_eq!((requests.get("c", day), requests.get("d", day)), (None, Some(answer(5))));
        assert_eq!((requests.order.len(), requests.answers.len()), (3, 3));
    }
}
