//! Splits texts as the Penn Treebank does: punctuation apart from words, and contractions into
//! their parts. `don't` becomes `do` and `n't`, which vectors such as GloVe's have, so that the
//! negation is kept.
//!
//! Source: Robert MacIntyre's `tokenizer.sed` of the Penn Treebank project (1995). Unlike it, this
//! leaves quotation marks and brackets as they are, knows typographic ones, and splits off a full
//! stop wherever a piece ends with it. A text that is split already stays as it is.

use std::borrow::Cow;
use std::ops::Range;

/// A piece of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece<'a> {
    /// What is looked up: as it was written, but for typographic signs.
    pub word: Cow<'a, str>,
    /// Its bytes in the text.
    pub bytes: Range<usize>,
}

/// Contractions that are words of their own, with the apostrophe.
const ENDINGS: [&str; 6] = ["'s", "'m", "'d", "'ll", "'re", "'ve"];

/// Words that begin with an apostrophe of their own, besides numbers such as `'60s`.
const ELISIONS: [&str; 8] = ["'em", "'til", "'tis", "'twas", "'cause", "'n'", "'n", "'bout"];

/// Words that end with a dot of their own.
const ABBREVIATIONS: [&str; 30] = [
    "mr", "mrs", "ms", "dr", "st", "jr", "sr", "vs", "etc", "prof", "gen", "col", "lt", "sgt",
    "capt", "sen", "gov", "rev", "inc", "corp", "ltd", "bros", "mt", "dept", "feb", "aug", "sept",
    "oct", "nov", "approx",
];

/// Longer strings without white space are no words, and stay as they are, in bytes.
const LONGEST_SPLIT: usize = 256;

/// The pieces of a text, in their order.
pub fn pieces(text: &str) -> impl Iterator<Item = Piece<'_>> {
    let start = text.as_ptr() as usize;
    text.split_whitespace().flat_map(move |word| {
        let mut pieces = Vec::new();
        split(word, word.as_ptr() as usize - start, &mut pieces);
        pieces
    })
}

/// Splits what is between white space and begins at byte `at` of the text. Every part is split
/// again, until nothing more can be split off: so a piece by itself stays as it is.
fn split<'a>(word: &'a str, at: usize, pieces: &mut Vec<Piece<'a>>) {
    if word.is_empty() {
        return;
    }
    if word.len() > LONGEST_SPLIT || is_run(word) || is_ending(word) || is_elision(word) {
        pieces.push(piece(word, at));
        return;
    }
    let ends = inner_run(word).or_else(|| trailing(word)).or_else(|| leading(word));
    match ends.or_else(|| contraction(word)) {
        Some(Range { start, end }) => {
            split(&word[..start], at, pieces);
            pieces.push(piece(&word[start..end], at + start));
            split(&word[end..], at + end, pieces);
        }
        None => pieces.push(piece(word, at)),
    }
}

fn piece(word: &str, at: usize) -> Piece<'_> {
    Piece { word: plain(word), bytes: at..at + word.len() }
}

/// Typographic signs as those that older texts, and so most vocabularies, have.
pub(super) fn plain(word: &str) -> Cow<'_, str> {
    let replaced = |c| matches!(c, '’' | '‘' | '“' | '”' | '„' | '«' | '»' | '…' | '–' | '—');
    if !word.contains(replaced) {
        return Cow::Borrowed(word);
    }
    let mut plain = String::with_capacity(word.len());
    for c in word.chars() {
        match c {
            '’' | '‘' => plain.push('\''),
            '“' | '”' | '„' | '«' | '»' => plain.push('"'),
            '…' => plain.push_str("..."),
            '–' | '—' => plain.push_str("--"),
            c => plain.push(c),
        }
    }
    Cow::Owned(plain)
}

/// The result for a part as it was typed or, failing that, with plain quotes and dashes.
pub(super) fn find_plain<T>(part: &str, find: impl Fn(&str) -> Option<T>) -> Option<T> {
    find(part).or_else(|| match plain(part) {
        Cow::Borrowed(_) => None,
        Cow::Owned(plain) => find(&plain),
    })
}

fn is_apostrophe(c: char) -> bool {
    matches!(c, '\'' | '’' | '‘')
}

fn is_opening(c: char) -> bool {
    matches!(c, '"' | '“' | '„' | '«' | '(' | '[' | '{' | '<' | '$' | '#' | '¿' | '¡')
        || is_apostrophe(c)
}

fn is_closing(c: char) -> bool {
    matches!(c, '”' | ')' | ']' | '}' | '>' | ',' | ';' | ':' | '?' | '!' | '%')
}

/// Whether it is a contraction by itself.
fn is_ending(word: &str) -> bool {
    let plain = plain(word);
    ENDINGS.iter().any(|ending| plain.eq_ignore_ascii_case(ending))
}

/// Whether its first apostrophe belongs to it.
fn is_elision(word: &str) -> bool {
    let plain = plain(word);
    let is_decade = plain.strip_prefix('\'').is_some_and(|rest| {
        rest.starts_with(|c: char| c.is_ascii_digit()) && rest.chars().all(char::is_alphanumeric)
    });
    is_decade || ELISIONS.iter().any(|elision| plain.eq_ignore_ascii_case(elision))
}

/// Signs of which several together are one piece: `--`, `...`, `!!!`, `''`.
fn is_repeated(c: char) -> bool {
    matches!(c, '.' | '-' | '`' | '*' | '!' | '?' | '"' | '_' | '~' | '=' | '…' | '–' | '—')
        || is_apostrophe(c)
}

fn is_run(word: &str) -> bool {
    let mut chars = word.chars();
    let Some(first) = chars.next() else { return false };
    is_repeated(first) && chars.all(|c| c == first)
}

/// Dashes or dots between words, such as `--` or `...`.
fn inner_run(word: &str) -> Option<Range<usize>> {
    let breaks = ["--", "...", "…", "–", "—"];
    let (start, sign) = breaks
        .iter()
        .filter_map(|sign| word.find(sign).map(|start| (start, sign)))
        .min_by_key(|(start, _)| *start)?;
    let first = sign.chars().next()?;
    Some(start..word.len() - word[start..].trim_start_matches(first).len())
}

/// The sign, or the run of signs, with which a word begins and that is a piece of its own.
fn leading(word: &str) -> Option<Range<usize>> {
    let first = word.chars().next()?;
    let run = word.len() - word.trim_start_matches(first).len();
    let several = is_repeated(first) && run > first.len_utf8();
    match () {
        () if several => Some(0..run),
        () if is_opening(first) || is_closing(first) => Some(0..first.len_utf8()),
        () => None,
    }
}

/// The sign, or the run of signs, that ends a word and is a piece of its own.
fn trailing(word: &str) -> Option<Range<usize>> {
    let last = word.chars().next_back()?;
    let run = word.len() - word.trim_end_matches(last).len();
    let one = word.len() - last.len_utf8()..word.len();
    if is_repeated(last) && run > last.len_utf8() {
        return Some(word.len() - run..word.len());
    }
    if last == '.' {
        // Part of an abbreviation, such as `u.s.` or `mr.`, or of an initial.
        let before = &word[..word.len() - 1];
        let is_initial = before.chars().count() == 1 && before.chars().all(char::is_alphabetic);
        let is_short =
            is_initial || ABBREVIATIONS.iter().any(|short| before.eq_ignore_ascii_case(short));
        return (!before.contains('.') && !is_short).then_some(one);
    }
    (is_opening(last) || is_closing(last)).then_some(one)
}

/// The contraction with which a word ends, if there is something before it.
fn contraction(word: &str) -> Option<Range<usize>> {
    let (at, _) = word.char_indices().rev().find(|(_, c)| is_apostrophe(*c))?;
    let start = if is_ending(&word[at..]) {
        at
    } else {
        // The `n` of `n't` belongs to it: `don't`, `can't`, `won't`.
        let n = word[..at].chars().next_back().filter(|c| matches!(c, 'n' | 'N'))?;
        let is_not = plain(&word[at..]).eq_ignore_ascii_case("'t");
        is_not.then_some(at - n.len_utf8())?
    };
    (start > 0).then_some(start..word.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn words(text: &str) -> Vec<String> {
        pieces(text).map(|piece| piece.word.into_owned()).collect()
    }

    #[test]
    fn texts_as_people_write_them() {
        for (text, expected) in [
            ("I don't like it.", "I do n't like it ."),
            ("It can't, won't and shouldn't!", "It ca n't , wo n't and should n't !"),
            (
                "They're John's; we'll see. I'd say I'm it.",
                "They 're John 's ; we 'll see . I 'd say I 'm it .",
            ),
            ("DON'T SHE'S", "DO N'T SHE 'S"),
            ("\"Great,\" he said (twice).", "\" Great , \" he said ( twice ) ."),
            ("“Don’t” – it’s ‘fine’…", "\" Do n't \" -- it 's ' fine ' ..."),
            ("well...what--ever—now", "well ... what -- ever -- now"),
            (
                "the U.S. and Mr. J. Smith cost $3.50, or 20% of 1,000.",
                "the U.S. and Mr. J. Smith cost $ 3.50 , or 20 % of 1,000 .",
            ),
            ("an A+ film!!! really?! :) <br />", "an A+ film !!! really ? ! : ) < br / >"),
            ("co-writer's e-mail/mail", "co-writer 's e-mail/mail"),
            ("rock'n'roll o'clock dogs'", "rock'n'roll o'clock dogs '"),
            ("naïve — 東京。", "naïve -- 東京。"),
            ("the '60s ’70s rock 'n' roll ('em)", "the '60s '70s rock 'n' roll ( 'em )"),
            ("", ""),
            (" \n\t", ""),
            (". , ... -- '' `` ' \" n't 's", ". , ... -- '' `` ' \" n't 's"),
        ] {
            assert_eq!(words(text).join(" "), expected, "{text}");
        }
    }

    #[test]
    fn a_treebank_sentence_stays_as_it_is() {
        for text in [
            "if you 've ever entertained the notion of doing what the title of this film implies , it 's fun .",
            "they presume their audience wo n't sit still for a sociology lesson , however entertainingly presented .",
            "`` the best '' -- a k-19 exploits our 1930s fear of nuclear holocaust ...",
            "u.s. crème brûlée , you 'd ca n't -lrb- 90 % -rrb- !",
        ] {
            assert_eq!(words(text).join(" "), text);
        }
    }

    #[test]
    fn what_is_too_long_for_a_word_stays_whole() {
        let long = "!a.".repeat(1_000_000);
        assert_eq!(words(&format!("so {long} it's")), ["so", &long, "it", "'s"]);
        assert_eq!(words(&"?!".repeat(128)).len(), 256);
    }

    proptest! {
        #[test]
        fn pieces_are_all_of_the_text_in_order(text in "[a-cN'’.,!?\"() …—\\-nts]{0,24}") {
            let mut end = 0;
            let mut seen = String::new();
            for piece in pieces(&text) {
                prop_assert!(piece.bytes.start >= end && piece.bytes.end > piece.bytes.start);
                prop_assert!(text[end..piece.bytes.start].trim().is_empty());
                prop_assert_eq!(&plain(&text[piece.bytes.clone()]), &piece.word);
                end = piece.bytes.end;
                seen.push_str(&text[piece.bytes]);
            }
            prop_assert!(text[end..].trim().is_empty());
            let all: String = text.split_whitespace().collect();
            prop_assert_eq!(seen, all);
        }

        #[test]
        fn splitting_again_changes_nothing(text in "[a-cN'.,!?\"() \\-nts]{0,24}") {
            let once = words(&text).join(" ");
            let twice = words(&once).join(" ");
            prop_assert_eq!(once, twice);
        }
    }
}
