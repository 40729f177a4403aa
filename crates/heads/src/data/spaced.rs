//! Lines of a label, white space and the text.

use std::collections::HashSet;

use super::Labelled;

/// Reads a line. `is_whole`: its label must be a whole number.
pub(super) fn read(line: &str, is_whole: bool) -> Result<Labelled, String> {
    let Some((label, text)) = split(line) else {
        return Err("it has no space; a line is a label, a space and the text".to_owned());
    };
    if is_whole && !is_whole_number(label) {
        return Err(format!(
            "it begins with `{}`, but labels are whole numbers in other lines; --format space \
             takes any word for a label",
            label.chars().take(40).collect::<String>()
        ));
    }
    Ok(Labelled { labels: vec![label.to_owned()], text: text.trim().to_owned() })
}

/// Whether lines begin with labels that are whole numbers, as in `1 a good film`. A text may begin
/// with a number, too: nearly all lines must, and with few different ones.
pub(super) fn have_whole_labels(content: &str) -> bool {
    let (mut lines, mut labelled) = (0, 0);
    let mut labels = HashSet::new();
    for line in content.lines().filter(|line| !line.trim().is_empty()) {
        lines += 1;
        if let Some((label, _)) = split(line).filter(|(label, _)| is_whole_number(label)) {
            labelled += 1;
            labels.insert(label);
        }
    }
    10 * labelled >= 9 * lines && 2 * labels.len() <= labelled
}

fn split(line: &str) -> Option<(&str, &str)> {
    line.trim().split_once(char::is_whitespace)
}

fn is_whole_number(label: &str) -> bool {
    /// More digits are an id.
    const MOST_DIGITS: usize = 4;
    let digits = label.strip_prefix(['+', '-']).unwrap_or(label);
    (1..=MOST_DIGITS).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::super::{DataError, Format, Texts, TextsOptions};

    fn options(format: Option<Format>, skip_bad_rows: bool) -> TextsOptions {
        TextsOptions { format, skip_bad_rows, ..TextsOptions::default() }
    }

    fn pairs(content: &str, options: &TextsOptions) -> Vec<(String, String)> {
        let texts = Texts::parse("data", content, options).unwrap_or_else(|e| panic!("{e}"));
        texts.texts.into_iter().map(|one| (one.labels.join("+"), one.text)).collect()
    }

    fn refused(content: &str) -> DataError {
        Texts::parse("data", content, &TextsOptions::default()).unwrap_err()
    }

    #[test]
    fn whole_numbers_before_a_space_are_labels() {
        let content = "1 a good film , or not\n0  dull\r\n\n 1 so  so\n0 3 hours of it\n";
        let expected =
            [("1", "a good film , or not"), ("0", "dull"), ("1", "so  so"), ("0", "3 hours of it")]
                .map(|(label, text)| (label.to_owned(), text.to_owned()));
        assert_eq!(pairs(content, &TextsOptions::default()), expected);
        assert_eq!(pairs(content, &options(Some(Format::Space), false)), expected);
        let signed = "-1 bad\n+1 good\n-1 dull\n+1 fine\n";
        assert_eq!(pairs(signed, &TextsOptions::default())[1], ("+1".into(), "good".into()));
    }

    #[test]
    fn texts_that_begin_with_numbers_have_no_labels() {
        for content in [
            // Some do.
            "3 hours of it\na good film\n3 stars\n",
            // Numbers of the lines, or years.
            "1 a good film\n2 dull\n3 so so\n4 fine\n",
            "1999 was good\n2001 is dull\n1984 as well\n1999 again\n",
            "20251126 a\n20251126 b\n20251126 c\n",
            "1\n1\n0\n0\n",
            "1 x\n",
        ] {
            let error = refused(content);
            let DataError::Line { line: 1, what, .. } = &error else { panic!("{error}") };
            assert!(what.contains("no tab after a label") && what.contains("sed"), "{error}");
        }
    }

    #[test]
    fn a_line_without_its_number_is_named_or_skipped() {
        let content = "1 good\n0 bad\n".repeat(10) + "dull film\n";
        let error = refused(&content);
        let DataError::Line { line: 21, what, .. } = &error else { panic!("{error}") };
        assert!(what.contains("`dull`") && what.contains("--format space"), "{error}");
        let texts = Texts::parse("data", &content, &options(None, true)).unwrap();
        assert_eq!((texts.texts.len(), texts.skipped), (20, 1));
        // Whoever names the format has labels that are words.
        let texts = Texts::parse("data", &content, &options(Some(Format::Space), false)).unwrap();
        assert_eq!(texts.labels(), [("0", 10), ("1", 10), ("dull", 1)]);
        let words = pairs("pos a good film\nneg dull\n", &options(Some(Format::Space), false));
        assert_eq!(words[0], ("pos".into(), "a good film".into()));
        let alone = Texts::parse("data", "pos\n", &options(Some(Format::Space), false));
        assert!(alone.unwrap_err().to_string().contains("a label, a space and the text"));
    }

    #[test]
    fn other_formats_come_first() {
        for (content, expected) in [
            (" __label__1 1 good\n __label__0 0 bad\n", ("1", "1 good")),
            ("1 a\tgood\n1 a\tbad\n", ("1 a", "good")),
            ("text,label\n1 good,1\n1 bad,0\n", ("1", "1 good")),
        ] {
            let found = pairs(content, &TextsOptions::default());
            assert_eq!(found[0], (expected.0.to_owned(), expected.1.to_owned()), "{content}");
        }
    }
}
