//! The stemmer of Porter 1980, "An algorithm for suffix stripping": `connections` and `connected` both become `connect`.
//!
//! It is the stemmer that published retrieval figures use. The algorithm has not changed since, so it is here and not a
//! dependency. Words of one or two letters stay as they are, as in Porter's own program.

/// Endings of step 2 with what replaces them, if the rest has a vowel and then a consonant. Where two fit, the longer
/// one is first; so in all lists.
const STEP_2: [(&str, &str); 20] = [
    ("ational", "ate"),
    ("tional", "tion"),
    ("enci", "ence"),
    ("anci", "ance"),
    ("izer", "ize"),
    ("abli", "able"),
    ("alli", "al"),
    ("entli", "ent"),
    ("eli", "e"),
    ("ousli", "ous"),
    ("ization", "ize"),
    ("ation", "ate"),
    ("ator", "ate"),
    ("alism", "al"),
    ("iveness", "ive"),
    ("fulness", "ful"),
    ("ousness", "ous"),
    ("aliti", "al"),
    ("iviti", "ive"),
    ("biliti", "ble"),
];

const STEP_3: [(&str, &str); 7] = [
    ("icate", "ic"),
    ("ative", ""),
    ("alize", "al"),
    ("iciti", "ic"),
    ("ical", "ic"),
    ("ful", ""),
    ("ness", ""),
];

const STEP_4: [&str; 19] = [
    "al", "ance", "ence", "er", "ic", "able", "ible", "ant", "ement", "ment", "ent", "ion", "ou",
    "ism", "ate", "iti", "ous", "ive", "ize",
];

/// The stem of a word in lower case. A word with other characters than ASCII's stays as it is.
pub fn stem(word: &str) -> String {
    if word.len() <= 2 || !word.is_ascii() {
        return word.to_owned();
    }
    let mut word = word.as_bytes().to_vec();
    plural(&mut word);
    past_and_gerund(&mut word);
    if let Some(rest) = without(&word, "y")
        && has_vowel(rest)
    {
        replace(&mut word, "y", "i");
    }
    replace_one(&mut word, &STEP_2);
    replace_one(&mut word, &STEP_3);
    if let Some(ending) = STEP_4.iter().find(|ending| without(&word, ending).is_some()) {
        let rest = without(&word, ending).expect("it ends so");
        let fits = *ending != "ion" || matches!(rest.last(), Some(b's' | b't'));
        if fits && measure(rest) > 1 {
            replace(&mut word, ending, "");
        }
    }
    if let Some(rest) = without(&word, "e") {
        let parts = measure(rest);
        if parts > 1 || (parts == 1 && !is_short(rest)) {
            replace(&mut word, "e", "");
        }
    }
    if word.ends_with(b"ll") && measure(&word[..word.len() - 1]) > 1 {
        word.pop();
    }
    String::from_utf8(word).expect("ASCII")
}

/// Step 1a.
fn plural(word: &mut Vec<u8>) {
    for (ending, by) in [("sses", "ss"), ("ies", "i"), ("ss", "ss"), ("s", "")] {
        if without(word, ending).is_some() {
            return replace(word, ending, by);
        }
    }
}

/// Step 1b.
fn past_and_gerund(word: &mut Vec<u8>) {
    if let Some(rest) = without(word, "eed") {
        if measure(rest) > 0 {
            replace(word, "eed", "ee");
        }
        return;
    }
    let Some(ending) = ["ed", "ing"].into_iter().find(|ending| without(word, ending).is_some())
    else {
        return;
    };
    if !has_vowel(&word[..word.len() - ending.len()]) {
        return;
    }
    replace(word, ending, "");
    for ending in ["at", "bl", "iz"] {
        if without(word, ending).is_some() {
            return word.push(b'e');
        }
    }
    if ends_with_double(word) && !matches!(word.last(), Some(b'l' | b's' | b'z')) {
        word.pop();
    } else if measure(word) == 1 && is_short(word) {
        word.push(b'e');
    }
}

/// Replaces the first of these endings that the word has, if what is before it has a vowel and then a consonant.
fn replace_one(word: &mut Vec<u8>, endings: &[(&str, &str)]) {
    let found = endings.iter().find(|(ending, _)| without(word, ending).is_some());
    if let Some((ending, by)) = found
        && without(word, ending).is_some_and(|rest| measure(rest) > 0)
    {
        replace(word, ending, by);
    }
}

fn without<'a>(word: &'a [u8], ending: &str) -> Option<&'a [u8]> {
    word.strip_suffix(ending.as_bytes())
}

fn replace(word: &mut Vec<u8>, ending: &str, by: &str) {
    word.truncate(word.len() - ending.len());
    word.extend_from_slice(by.as_bytes());
}

/// `y` is a vowel after a consonant.
fn is_vowel(word: &[u8], at: usize) -> bool {
    match word[at] {
        b'a' | b'e' | b'i' | b'o' | b'u' => true,
        b'y' => at > 0 && !is_vowel(word, at - 1),
        _ => false,
    }
}

fn has_vowel(word: &[u8]) -> bool {
    (0..word.len()).any(|at| is_vowel(word, at))
}

/// How often a consonant follows a vowel: Porter's m.
fn measure(word: &[u8]) -> usize {
    (1..word.len()).filter(|&at| is_vowel(word, at - 1) && !is_vowel(word, at)).count()
}

fn ends_with_double(word: &[u8]) -> bool {
    let length = word.len();
    length >= 2 && word[length - 1] == word[length - 2] && !is_vowel(word, length - 1)
}

/// Whether it ends with consonant, vowel, consonant, the last not w, x or y: Porter's *o.
fn is_short(word: &[u8]) -> bool {
    let length = word.len();
    length >= 3
        && !is_vowel(word, length - 3)
        && is_vowel(word, length - 2)
        && !is_vowel(word, length - 1)
        && !matches!(word[length - 1], b'w' | b'x' | b'y')
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A word and its stem in each line, by NLTK's `PorterStemmer(mode="ORIGINAL_ALGORITHM")` and by Snowball's `porter`, which
    /// agree on them.
    const RECORDED: &str = include_str!("recorded/porter.tsv");

    #[test]
    fn stems_are_those_of_other_programs() {
        let mut count = 0;
        for line in RECORDED.lines().filter(|line| !line.starts_with('#')) {
            let (word, expected) = line.split_once('\t').unwrap();
            assert_eq!(stem(word), expected, "{word}");
            count += 1;
        }
        assert!(count > 150, "{count}");
    }

    #[test]
    fn examples_of_the_paper() {
        for (word, expected) in [
            ("caresses", "caress"),
            ("ponies", "poni"),
            ("cats", "cat"),
            ("feed", "feed"),
            ("agreed", "agre"),
            ("bled", "bled"),
            ("motoring", "motor"),
            ("sing", "sing"),
            ("conflated", "conflat"),
            ("hopping", "hop"),
            ("falling", "fall"),
            ("filing", "file"),
            ("happy", "happi"),
            ("sky", "sky"),
            ("generalizations", "gener"),
            ("oscillators", "oscil"),
            ("adoption", "adopt"),
            ("probate", "probat"),
            ("cease", "ceas"),
            ("controll", "control"),
        ] {
            assert_eq!(stem(word), expected, "{word}");
        }
    }

    #[test]
    fn short_words_and_those_in_other_letters_stay() {
        for word in ["", "s", "is", "ös", "größes", "слова", "1958", "!!!"] {
            assert_eq!(stem(word), word);
        }
        assert_eq!(stem("sss"), "sss");
        assert_eq!(stem("eed"), "eed");
        assert_eq!(stem("747s"), "747");
    }
}
