//! Runs the stages of a request: on this thread if they are short, on other threads
//! ([`Workers`](crate::workers::Workers)) if they would delay the other connections of this thread.

use std::mem;
use std::time::Instant;

use memchr::memchr3_iter;

use super::ApiError;
use crate::models::{Call, Service};
use crate::workers::Cancellation;

/// About how long a stage takes, in nanoseconds of one core. It is estimated before the stage
/// begins.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Cost(pub(super) u64);

impl Cost {
    /// A stage estimated to take longer runs on another thread. Handing it over costs about 20 µs.
    const LONGEST_HERE: Self = Self(400_000);

    /// The cost of parsing a JSON body or a query string, and of looking up the words in it.
    pub(super) fn of_text<'a>(pieces: impl Iterator<Item = &'a [u8]>) -> Self {
        /// JSON takes 1 to 3 ns a byte on a Xeon at 2 GHz.
        const BYTE: u64 = 6;
        /// The extra cost of a byte of a long piece of text, whose signs and words are looked for
        /// character by character: 16 to 30 ns, of signs alone 70.
        const LONG_PIECE: u64 = 24;
        /// Half the cost of a word, which is allocated and looked up (for the words of a text, in
        /// several forms). In JSON a word has two quotes, which count as one half each. In a text
        /// or query string it has one separator, which counts as both halves.
        const HALF_A_WORD: u64 = 400;
        /// The extra cost of a byte beyond ASCII: for each such character of a text, word
        /// boundaries and lower case are looked up.
        const BEYOND_ASCII: u64 = 12;
        let (mut bytes, mut halves, mut beyond) = (0, 0, 0);
        let mut long = LongPieces::default();
        for piece in pieces {
            long.read(piece);
            bytes += piece.len() as u64;
            // Short sums, whose counts fit in a byte, are added side by side.
            for part in piece.chunks(127) {
                let (mut of_words, mut of_beyond) = (0_u8, 0_u8);
                for &byte in part {
                    let separates = matches!(byte, b' ' | b'+' | b'/' | b'&');
                    of_words += u8::from(byte == b'"') + 2 * u8::from(separates);
                    of_beyond += u8::from(!byte.is_ascii());
                }
                halves += u64::from(of_words);
                beyond += u64::from(of_beyond);
            }
        }
        let of_long = long.end() * LONG_PIECE;
        Self(bytes * BYTE + halves * HALF_A_WORD + beyond * BEYOND_ASCII + of_long)
    }

    /// The cost of a query string with a long text, in which any separator may be written as `%20`.
    pub(super) fn of_query_string(query: &[u8]) -> Self {
        /// That of a word, as above.
        const ESCAPED: u64 = 800;
        let escaped = query.iter().filter(|&&byte| byte == b'%').count() as u64;
        let Self(plain) = Self::of_text(std::iter::once(query));
        Self(plain + escaped * ESCAPED)
    }

    /// The most that a byte of a text may cost whose vector an encoder makes, of n-grams or of
    /// tokens; 0 for models without one.
    pub(super) fn of_encoder(call: &Call) -> u64 {
        /// A row that is in no cache.
        const NGRAM: u64 = 100;
        /// Of what is normalised, cut and looked up; a token has four bytes or more.
        const TOKENISED: u64 = 100;
        if !call.has_model() {
            return 0;
        }
        let base = call.rows().base();
        if base.encoder_files().is_some() {
            return TOKENISED + base.dim() as u64 / 4;
        }
        let Some(ngrams) = base.ngrams() else { return 0 };
        let lengths = ngrams.lengths();
        let each = u64::try_from(i64::from(lengths.maxn) - i64::from(lengths.minn.max(1)) + 1);
        // A component takes a quarter of a nanosecond; that of a long row, too.
        each.unwrap_or(0).min(64) * (NGRAM + ngrams.dim() as u64 / 4)
    }

    /// The cost of making queries from an array of this many bytes, whose vectors have `dim`
    /// components. `query` is the query string, with the options of all queries.
    pub(super) fn of_array(bytes: usize, dim: usize, query: &[u8]) -> Self {
        /// Copying, checking and squaring a component takes 1 to 3 ns.
        const NUMBER: usize = 3;
        /// The smallest number has two bytes. Of larger ones there are fewer, so the cost is less
        /// than estimated.
        const BYTES_PER_NUMBER: usize = 2;
        /// Memory for a vector and its query, and what the queue does with it.
        const QUERY: usize = 1000;
        /// A parameter that excludes a word has at least this many bytes. Each query has its own
        /// list of excluded rows.
        const BYTES_PER_EXCLUDED: usize = 10;
        let numbers = bytes / BYTES_PER_NUMBER;
        let of_vectors = numbers / dim.max(1) * (QUERY + query.len() / BYTES_PER_EXCLUDED);
        let Self(of_query) = Self::of_text(std::iter::once(query));
        Self((numbers * NUMBER + of_vectors) as u64 + of_query)
    }

    /// The cost of making the sets of rows of some filters, which have this many tests together,
    /// for a model of this many rows.
    pub(super) fn of_filters(tests: usize, rows: usize) -> Self {
        // A test of a row takes 0.1 to 0.5 ns; of lists, if so many texts are wanted that all are
        // looked at, more.
        Self((tests * rows) as u64)
    }

    /// The cost of writing a batch of n rows or keys, which has this many bytes, and of showing it.
    pub(super) fn of_batch(rows: usize, bytes: usize) -> Self {
        /// To the system's memory, with its checksum.
        const BYTE: u64 = 1;
        /// A key that is looked up and kept.
        const ROW: u64 = 400;
        /// A part of a sync, and two threads that wake up.
        const BATCH: u64 = 100_000;
        Self(BATCH + bytes as u64 * BYTE + rows as u64 * ROW)
    }

    /// The cost of a stage that does both.
    pub(super) fn and(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }

    /// The cost of writing n numbers or words of an answer.
    pub(super) fn of_writing(numbers: usize) -> Self {
        const NUMBER: u64 = 40;
        Self(numbers as u64 * NUMBER)
    }

    /// The cost of compressing n bytes.
    pub(super) fn of_compressing(bytes: u64) -> Self {
        const BYTE: u64 = 12;
        Self(bytes * BYTE)
    }

    /// The cost of finding similar words of the model for each of n words.
    pub(super) fn suggestions(words: usize) -> Self {
        const WORD: u64 = 1_000_000;
        Self(words as u64 * WORD)
    }

    /// The cost of finding the words with a given prefix among n.
    pub(super) fn of_listing(rows: usize) -> Self {
        const FROM_MAP: u64 = 1_000_000;
        const ROW: u64 = 5;
        Self(FROM_MAP + rows as u64 * ROW)
    }

    /// Counts the cost in the metrics. Must be called for every stage, except the short ones of a
    /// GET, which are on the hot path.
    pub(super) fn count(self, service: &Service) {
        service.observer.count_stage(self.0);
    }

    /// Whether it would delay other connections.
    pub(super) fn is_long(self) -> bool {
        self > Self::LONGEST_HERE
    }
}

/// Counts the bytes of long pieces in the strings of a JSON body: of what has no space in it.
/// Numbers are in no string, however long their list is.
#[derive(Default)]
struct LongPieces {
    is_in_string: bool,
    /// The last byte so far was a backslash.
    is_escaped: bool,
    /// Bytes of the current piece.
    piece: u64,
    bytes: u64,
}

impl LongPieces {
    /// A text is looked up by shorter pieces, whatever is in them.
    const LONGEST_SHORT: u64 = 256;

    /// Reads the next part of the body.
    fn read(&mut self, part: &[u8]) {
        let mut from = 0;
        if self.is_escaped && !part.is_empty() {
            (from, self.is_escaped) = (1, false);
        }
        for at in memchr3_iter(b'"', b' ', b'\\', part) {
            if at < from {
                continue;
            }
            self.piece += (at - from) as u64;
            from = at + 1;
            match part[at] {
                b'\\' => from += 1,
                b'"' => {
                    self.end_piece();
                    self.is_in_string = !self.is_in_string;
                }
                _ => self.end_piece(),
            }
        }
        self.is_escaped |= from > part.len();
        self.piece += part.len().saturating_sub(from) as u64;
    }

    fn end_piece(&mut self) {
        let piece = mem::take(&mut self.piece);
        if self.is_in_string && piece > Self::LONGEST_SHORT {
            self.bytes += piece;
        }
    }

    /// The bytes of all long pieces.
    fn end(mut self) -> u64 {
        self.end_piece();
        self.bytes
    }
}

/// Runs one stage of a request: on this thread if it is short, otherwise on another. In both cases
/// it ends by the deadline: a long stage checks its [`Cancellation`] now and then.
pub(super) async fn stage<T: Send + 'static>(
    call: &Call,
    cost: Cost,
    deadline: Instant,
    stage: impl FnOnce(&Cancellation) -> Result<T, ApiError> + Send + 'static,
) -> Result<T, ApiError> {
    if !cost.is_long() {
        cost.count(call.service());
        return stage(&Cancellation::until(deadline));
    }
    offloaded(call, cost, deadline, stage).await
}

/// As [`stage`], but always on another thread.
pub(super) async fn offloaded<T: Send + 'static>(
    call: &Call,
    cost: Cost,
    deadline: Instant,
    stage: impl FnOnce(&Cancellation) -> Result<T, ApiError> + Send + 'static,
) -> Result<T, ApiError> {
    cost.count(call.service());
    call.service().workers.run(&call.account, deadline, stage).await?
}

/// Checks that the deadline has not passed.
///
/// # Errors
/// [`ApiError::DeadlinePassed`] if it has.
pub(super) fn check_deadline(cancellation: &Cancellation) -> Result<(), ApiError> {
    if cancellation.is_cancelled() { Err(ApiError::DeadlinePassed) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cost_of_an_array_is_judged_by_its_vectors_and_what_they_exclude() {
        let of = |vectors: usize, dim: usize, query: &str| {
            Cost::of_array(vectors * dim * 4, dim, query.as_bytes()).is_long()
        };
        assert!(!of(1, 65_536, "k=10") && !of(100, 300, "k=10"), "short");
        assert!(of(1024, 50, "k=10") && of(1024, 2, ""), "a batch");
        // Bytes that look like quotes and spaces say nothing.
        let quotes = Cost::of_text(std::iter::once(&[b'"'; 1200][..]));
        assert!(Cost::of_array(1200, 300, b"") < quotes);
        let excluded = vec!["exclude=a"; 500].join("&");
        let Cost(in_text) = Cost::of_text(std::iter::once(excluded.as_bytes()));
        let Cost(excluding) = Cost::of_array(20_000, 50, excluded.as_bytes());
        let Cost(without) = Cost::of_array(20_000, 50, b"");
        assert!(excluding - in_text > without * 5 / 4, "each query has its own list");
    }

    #[test]
    fn sets_of_many_rows_or_tests_are_long_work() {
        assert!(!Cost::of_filters(1, 30_000).is_long());
        assert!(Cost::of_filters(64, 30_000).is_long() && Cost::of_filters(1, 2_000_000).is_long());
        let text = Cost::of_text(std::iter::once(&[b'x'; 50_000][..]));
        assert!(!text.is_long() && text.and(Cost::of_filters(5, 30_000)).is_long());
    }

    #[test]
    fn long_pieces_of_texts_cost_more_than_long_lists_of_numbers() {
        let long = "x".repeat(1000);
        for (body, expected) in [
            (format!("{{\"text\":\"a {long} b\"}}"), 1000),
            (format!("{{\"text\":\"{long}\",\"k\":3}}"), 1000),
            (format!("{{\"text\":\"{} {}\"}}", &long[..300], &long[..200]), 300),
            // A quote within a string does not end it, nor does a backslash before its end.
            (format!("{{\"text\":\"\\\"{long}\"}}"), 1000),
            (format!("{{\"text\":\"\\\\\",\"vector\":[{}]}}", "1,".repeat(500)), 0),
            (format!("{{\"vector\":[{}1]}}", "-0.125,".repeat(200)), 0),
            (format!("{{\"words\":[{}\"b\"]}}", "\"a\",".repeat(300)), 0),
        ] {
            for cut in [1, 2, 7, body.len()] {
                let mut found = LongPieces::default();
                body.as_bytes().chunks(cut).for_each(|part| found.read(part));
                assert_eq!(found.end(), expected, "{body} in parts of {cut}");
            }
        }
        let text = |text: &str| Cost::of_text(std::iter::once(text.as_bytes()));
        let in_one = text(&format!("{{\"text\":\"{long}\"}}"));
        assert!(in_one.0 > 3 * text(&format!("{{\"vector\":[{}]}}", "1,".repeat(500))).0);
    }

    #[test]
    fn cost_is_judged_by_words_and_not_by_bytes() {
        let of = |text: &str| Cost::of_text(std::iter::once(text.as_bytes())).is_long();
        let vector = vec!["-0.12345678"; 2000].join(",");
        assert!(!of(&format!("{{\"vector\":[{vector}]}}")), "22 KB, but few words");
        let words = vec!["\"a\""; 1000].join(",");
        assert!(of(&format!("{{\"words\":[{words}]}}")), "4 KB");
        assert!(!of("word=frog&k=10"));
        assert!(of(&vec!["exclude=a"; 1001].join("&")));
        assert!(of(&"a ".repeat(1001)), "a text");
        assert!(of(&"x".repeat(200_000)));
        let escaped = "a%20".repeat(1001);
        assert!(!of(&escaped) && Cost::of_query_string(escaped.as_bytes()).is_long());
        assert!(!Cost::of_query_string(b"text=a%20moving%20and%20funny%20film").is_long());
    }
}
