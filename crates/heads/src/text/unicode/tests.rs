//! Texts of many scripts against small vocabularies.

use super::*;
use proptest::prelude::*;

/// The parts of a text: those that the vocabulary has, `no x` for others, and `(x)` for punctuation
/// that it lacks.
fn found(vocabulary: &[&str], text: &str, signs: Signs) -> Vec<String> {
    let find = |word: &str| {
        let has = |word: &str| vocabulary.iter().find(|&&own| own == word).copied();
        has(word).or_else(|| has(&word.to_lowercase()))
    };
    let shown = |part: Part<&str>| match (part.found, part.is_punctuation) {
        (Some(word), _) => word.to_owned(),
        (None, true) => format!("({})", &text[part.bytes]),
        (None, false) => format!("no {}", &text[part.bytes]),
    };
    parts(text, find, signs).map(shown).collect()
}

#[test]
fn a_word_beside_any_sign_is_found() {
    let words = ["film", "movie", "été", "फिल्म", "فيلم", "电影", "映画", "தமிழ்", "तमिऴ", "สวัสดี"];
    for (text, expected) in [
        ("film,movie", vec!["film", "movie"]),
        ("film/movie|film\\movie", vec!["film", "movie", "film", "movie"]),
        ("«été»", vec!["été"]),
        ("*film* _film_ ~film~ `film` ^film^", vec!["film"; 5]),
        ("film😀 😀film 🎬film🎬 film❤\u{fe0f} film👨\u{200d}👩\u{200d}👧", vec!["film"; 5]),
        ("फिल्म। فيلم، 电影。 「映画」 【映画】", vec!["फिल्म", "فيلم", "电影", "映画", "映画"]),
        ("தமிழ், (தமிழ்) தமிழ்!", vec!["தமிழ்"; 3]),
        (
            "\u{feff}film \u{200e}film\u{200f}movie \u{200b}film\u{200b}movie",
            vec!["film", "film", "movie", "film", "movie"],
        ),
        (
            "film†‡ film™ film© §film film… …film—movie",
            vec!["film", "film", "film", "film", "film", "film", "movie"],
        ),
        ("สวัสดี,สวัสดี 电影/映画,film", vec!["สวัสดี", "สวัสดี", "电影", "映画", "film"]),
        (
            "film+movie film=movie film&movie",
            vec!["film", "movie", "film", "movie", "film", "movie"],
        ),
        ("¡FILM! ¿Film?", vec!["film", "film"]),
    ] {
        for signs in [Signs::Kept, Signs::Dropped] {
            assert_eq!(found(&words, text, signs), expected, "{text}");
        }
    }
}

#[test]
fn marks_joiners_and_selectors_stay_with_their_letter() {
    // With the last mark, and without it; composed and decomposed.
    let words = ["தமிழ", "தமிழ்", "cafe", "caf\u{e9}", "می\u{200c}", "می", "1\u{fe0f}\u{20e3}"];
    for (text, expected) in [
        ("தமிழ்,", "தமிழ்"),
        ("தமிழ,", "தமிழ"),
        ("caf\u{e9},", "caf\u{e9}"),
        ("cafe\u{301},", "no cafe\u{301}"),
        ("cafe\u{301}", "no cafe\u{301}"),
        ("می\u{200c},", "می\u{200c}"),
        ("(1\u{fe0f}\u{20e3})", "1\u{fe0f}\u{20e3}"),
    ] {
        assert_eq!(found(&words, text, Signs::Dropped), [expected], "{text}");
    }
}

#[test]
fn contractions_are_the_forms_that_the_vocabulary_has() {
    let treebank =
        ["the", "king", "'s", "speech", "do", "n't", "u.s.", "we", "'ll", "'em", "em", "'", "dogs"];
    for (text, expected) in [
        ("the king's speech", vec!["the", "king", "'s", "speech"]),
        ("The King’s “speech”", vec!["the", "king", "'s", "speech"]),
        ("don't DON’T. (don't)", vec!["do", "n't", "do", "n't", "do", "n't"]),
        ("U.S. the U.S.,", vec!["u.s.", "the", "u.s."]),
        ("we'll 'em dogs'", vec!["we", "'ll", "'em", "dogs"]),
        ("zorp's king-dogs", vec!["no zorp", "'s", "king", "dogs"]),
    ] {
        assert_eq!(found(&treebank, text, Signs::Dropped), expected, "{text}");
    }
    let whole = ["don't", "king's", "king"];
    assert_eq!(found(&whole, "don't king's, king", Signs::Kept), ["don't", "king's", "king"]);
    let few = found(&["do", "king"], "the king's don't", Signs::Kept);
    assert_eq!(few, ["no the", "king", "('s)", "do", "no n't"], "the negation is missed");
}

#[test]
fn signs_that_the_vocabulary_has_are_kept_for_heads_only() {
    let words = ["fun", "so", "!", "?", ",", ".", "...", ":)", "\"", "--", "$", "5", "%", "!!!"];
    for (text, kept, dropped) in [
        ("so fun!", "so fun !", "so fun"),
        ("so, fun ... fun.", "so , fun ... fun .", "so fun ... fun"),
        ("\"fun?!\" :)", "\" fun ? ! \" :)", "fun :)"),
        ("fun—so…", "fun -- so ...", "fun so"),
        ("$5 5%", "$ 5 5 %", "5 5"),
        ("fun!!! !!! ?!", "fun !!! !!! ? !", "fun !!! (?!)"),
    ] {
        assert_eq!(found(&words, text, Signs::Kept).join(" "), kept, "{text}");
        assert_eq!(found(&words, text, Signs::Dropped).join(" "), dropped, "{text}");
    }
    // Nobody misses a sign; a symbol may be missed.
    assert_eq!(
        found(&["fun"], "fun , — (!) 😀 +", Signs::Kept).join(" "),
        "fun (,) (—) ((!)) no 😀 no +"
    );
}

#[test]
fn the_longest_form_with_signs_is_taken() {
    let words =
        ["c++", "c", "u.s.", "u.s", "u", "s", ".net", "net", "'em", "em", "inc.", "inc", ","];
    for (text, expected) in [
        ("C++, (C++). C++! c,", "c++ , c++ c++ c ,"),
        ("U.S., (U.S.) «U.S.»", "u.s. , u.s. u.s."),
        (".NET, (.net)", ".net , .net"),
        ("Inc.), inc)", "inc. , inc"),
        ("C#, c+++++", "c , c++"),
        ("(c++)—c", "c++ c"),
    ] {
        assert_eq!(found(&words, text, Signs::Kept).join(" "), expected, "{text}");
    }
}

#[test]
fn emoji_of_the_vocabulary_are_kept_beside_words() {
    let words = ["cat", "😀", "❤\u{fe0f}", "!", "5", "%"];
    for (text, expected) in [
        ("cat😀", "cat 😀"),
        ("😀cat❤\u{fe0f}!", "😀 cat ❤\u{fe0f}"),
        ("(😀) 😀😀 5%", "😀 😀 😀 5"),
        ("cat🐈", "cat"),
    ] {
        assert_eq!(found(&words, text, Signs::Dropped).join(" "), expected, "{text}");
    }
}

#[test]
fn long_pieces_without_white_space_take_no_memory_at_once() {
    let long = "映画film!".repeat(1 << 18);
    let mut parts = parts(&long, |word| (word == "film").then_some(()), Signs::Kept);
    assert_eq!(parts.by_ref().take(30).filter(|part| part.found.is_some()).count(), 10);
    let signs = "!".repeat(1 << 20);
    assert_eq!(found(&["!"], &signs, Signs::Kept).len(), 1);
    assert_eq!(found(&["x"], &format!("{signs}x{signs}"), Signs::Kept), ["x"]);
}

proptest! {
    #[test]
    fn parts_are_in_order_and_no_letter_is_lost(
        text in "[a-cé'’.,!*😀।்த\u{301}\u{200d}\u{200e} —\\-n]{0,24}",
        kept: bool,
        has in "[a-cn]",
    ) {
        let signs = if kept { Signs::Kept } else { Signs::Dropped };
        let find = |word: &str| (word == has).then_some(());
        let mut end = 0;
        for part in parts(&text, find, signs) {
            prop_assert!(part.bytes.start >= end && text.get(part.bytes.clone()).is_some());
            let between = &text[end..part.bytes.start];
            prop_assert!(!between.chars().any(char::is_alphanumeric), "{between:?} is lost");
            end = part.bytes.end;
        }
        prop_assert!(!text[end..].chars().any(char::is_alphanumeric), "{:?} is lost", &text[end..]);
    }

    #[test]
    fn no_text_panics(text in "\\PC{0,80}") {
        for signs in [Signs::Kept, Signs::Dropped] {
            for part in parts(&text, |_| None::<()>, signs) {
                prop_assert!(text.get(part.bytes).is_some_and(|part| !part.is_empty()));
            }
        }
    }
}
