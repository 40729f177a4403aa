//! Suggestions for words that a model does not have.

use model_store::{MAX_SUGGESTED_WORD_CHARS, ModelStore, mistaken_for};

fn model(words: &[&str]) -> ModelStore {
    ModelStore::from_rows("words", 1, words.iter().map(|&word| (word, &[1.0f32][..]))).unwrap()
}

#[test]
fn case_variants_come_first_then_one_edit_then_two_each_by_frequency() {
    let model = model(&["frogs", "flog", "fog", "FROG", "Frog", "froggy", "xfrogx", "unrelated"]);
    // `frogs` and `flog` are more frequent than `FROG`, but further away.
    assert_eq!(model.words().suggestions("frog"), ["FROG", "Frog", "frogs", "flog", "fog"]);
    assert_eq!(model.words().suggestions("froggs"), ["frogs", "froggy", "flog", "FROG"][..2]);
}

#[test]
fn neighbours_that_change_places_are_one_edit() {
    let model = model(&["sign", "king", "women", "woman", "日本語"]);
    // Words of four letters have no suggestions two edits away.
    assert_eq!(model.words().suggestions("kign"), ["sign", "king"]);
    assert!(model.words().suggestions("ignk").is_empty());
    // Two edits from `women`, which is more frequent.
    assert_eq!(model.words().suggestions("womna"), ["woman", "women"]);
    assert_eq!(model.words().suggestions("本日語"), ["日本語"]);
}

#[test]
fn two_edits_only_from_five_letters_on() {
    let model = model(&["abxy", "abcdxy"]);
    assert!(model.words().suggestions("abcd").is_empty());
    assert_eq!(model.words().suggestions("abcdz"), ["abcdxy"]);
}

#[test]
fn at_most_five_and_never_the_same_twice() {
    let words: Vec<String> = ('a'..='z').map(|c| format!("wor{c}")).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    assert_eq!(model(&words).words().suggestions("wor"), words[..5]);
    assert_eq!(model(&["Wort", "wort"]).words().suggestions("WORT"), ["Wort", "wort"]);
}

#[test]
fn characters_outside_ascii_count_as_one_and_fold_their_case() {
    let model = model(&["naïve", "ΣΊΣΥΦΟΣ", "iPhone", "日本"]);
    assert_eq!(model.words().suggestions("NAÏVE"), ["naïve"]);
    assert_eq!(model.words().suggestions("naive"), ["naïve"]);
    assert_eq!(model.words().suggestions("nai%CC%88ve%"), [""; 0]);
    assert_eq!(model.words().suggestions("na%C3%AFve"), ["naïve"]);
    assert_eq!(model.words().suggestions("σίσυφος"), ["ΣΊΣΥΦΟΣ"]);
    assert_eq!(model.words().suggestions("IPHONE"), ["iPhone"]);
    assert_eq!(model.words().suggestions("日"), ["日本"]);
}

#[test]
fn a_word_that_an_address_changed_is_suggested_as_it_was() {
    let model = model(&["c++", "100%", "new york", "caf\u{e9}"]);
    for (changed, meant) in
        [("c  ", "c++"), ("c%2B%2B", "c++"), ("new%20york", "new york"), ("caf%C3%A9", "caf\u{e9}")]
    {
        assert_eq!(model.words().suggestions(changed), [meant], "{changed}");
        assert!(mistaken_for(changed, meant).is_some(), "{changed}");
    }
    for (word, other) in [("c++", "c++"), ("c+", "c++"), ("100%2", "100%"), ("%FF", "%FF ")] {
        assert_eq!(mistaken_for(word, other), None, "{word}");
    }
    let why = mistaken_for("cafe\u{301}", "caf\u{e9}").unwrap();
    assert_eq!(why, "the same letters, as other code points");
}

#[test]
fn characters_that_mean_something_in_a_pattern_mean_themselves() {
    let model = model(&["C++", "aXc"]);
    assert_eq!(model.words().suggestions("c++"), ["C++"]);
    assert_eq!(model.words().suggestions("A.C"), ["aXc"][..0]);
    for odd in ["", "(", "[a-z]+", "\\", "\u{10ffff}", "\n"] {
        model.words().suggestions(odd);
    }
}

#[test]
fn long_words_get_none_and_the_longest_allowed_do() {
    let word: String = ('a'..='z').cycle().take(MAX_SUGGESTED_WORD_CHARS).collect();
    let near = format!("{}zz", &word[..MAX_SUGGESTED_WORD_CHARS - 2]);
    let model = model(&[&word]);
    assert_eq!(model.words().suggestions(&near), [&word]);
    assert!(model.words().suggestions(&format!("{word}x")).is_empty());
}

#[test]
fn the_longest_words_of_the_widest_characters_can_be_searched() {
    let word: String = std::iter::repeat_n('𝔘', MAX_SUGGESTED_WORD_CHARS).collect();
    let near: String = word.chars().skip(1).collect();
    assert_eq!(model(&[&word]).words().suggestions(&near), [&word]);
}

#[test]
fn characters_that_share_their_first_bytes_are_told_apart() {
    let model = model(&["привет", "日本語"]);
    for close in ["првет", "приввет", "привет!", "прибет"] {
        assert_eq!(model.words().suggestions(close), ["привет"], "{close}");
    }
    assert_eq!(model.words().suggestions("日木語"), ["日本語"]);
}

#[test]
fn a_word_that_the_model_has_resembles_others_but_not_itself() {
    let model = model(&["frogs", "frog", "Frog"]);
    assert_eq!(model.words().suggestions("frog"), ["Frog", "frogs"]);
    assert_eq!(model.words().suggestions("Frog"), ["frog"]);
}

#[test]
fn more_words_than_the_map_is_asked_for_begin_alike() {
    let words: Vec<String> = (0..30_000).map(|i| format!("{}{i}", ["b", "a"][i % 2])).collect();
    let model =
        ModelStore::from_rows("words", 1, words.iter().map(|w| (&w[..], &[1.0f32][..]))).unwrap();
    let found = |prefix, limit| {
        let rows = model.words().with_prefix(prefix, limit).into_iter();
        rows.map(|row| model.words().word(row)).collect::<Vec<_>>()
    };
    assert_eq!(found("a", 3), ["a1", "a3", "a5"]);
    assert_eq!(found("", 3), ["b0", "a1", "b2"]);
    assert_eq!(found("a2999", 9), ["a2999", "a29991", "a29993", "a29995", "a29997", "a29999"]);
    assert_eq!(found("c", 9), [""; 0]);
}

#[test]
fn a_byte_is_found_in_any_word() {
    let words: Vec<String> = (0..500).map(|i| format!("{}{i}", "w".repeat(i % 70))).collect();
    for odd in [0, 1, 250, 499] {
        let mut words = words.clone();
        words[odd].push('"');
        let rows = words.iter().map(|word| (word.as_str(), &[1.0f32][..]));
        let model = ModelStore::from_rows("m", 1, rows).unwrap();
        assert!(model.words().any_byte(|byte| byte == b'"'), "{odd}");
        assert!(!model.words().any_byte(|byte| byte == b'\\' || byte.is_ascii_uppercase()));
    }
}

#[test]
fn a_table_finds_the_same_rows() {
    let words: Vec<String> = (0..5000).map(|n| format!("{}w{n}", "é".repeat(n % 3))).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let model = model(&words);
    let rows = || -> Vec<_> {
        let asked = words.iter().copied().chain(["", "w", "w5000", "éw0", "W1"]);
        asked.map(|word| model.words().row(word)).collect()
    };
    let by_map = rows();
    assert!(
        by_map[..5000].iter().all(Option::is_some) && by_map[5000..].iter().all(Option::is_none)
    );
    model.words().make_table();
    assert_eq!(rows(), by_map);
}
