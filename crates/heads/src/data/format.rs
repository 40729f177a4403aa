//! The formats of texts with labels, and which one a file has.

use std::path::Path;

use super::fast_text::{PREFIX, has_label};
use super::{DataError, TEXT, TextsOptions, spaced};
use model_store::delimited::same_in_any_case;

/// The form in which a file has texts and labels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Columns with tabs between them; quotes are plain characters. The first line may name them:
    /// without names there are two, the label before the text.
    Tsv,
    /// Columns with names in the first line; quotes as in RFC 4180.
    Csv,
    /// A JSON object in each line: `{"text": "…", "label": "…"}`, or with `labels`.
    JsonLines,
    /// A line for each text, with labels such as `__label__x` among its words.
    FastText,
    /// A label, a space and the text. Detected only if nearly all lines begin with labels that are
    /// whole numbers.
    Space,
}

contract::names! {
    Format { Tsv: "tsv", Csv: "csv", JsonLines: "jsonl", FastText: "fasttext", Space: "space" }
}

impl Format {
    /// The format of this content, by its first line. If that says nothing, a file named `.csv` is
    /// one, and lines that begin with a few whole numbers have labels.
    ///
    /// # Errors
    /// If that is none of them; says what the line should be.
    pub fn of(file: &str, content: &str, options: &TextsOptions) -> Result<Self, DataError> {
        let (line, first) = content
            .lines()
            .enumerate()
            .find(|(_, line)| !line.trim().is_empty())
            .ok_or_else(|| DataError::File {
            file: file.to_owned(),
            what: "it has no texts; give a file with a label, a tab and a text in each line"
                .to_owned(),
        })?;
        let given = [&options.text, &options.label].into_iter().flatten();
        let names: Vec<&str> =
            given.map(String::as_str).chain(TEXT.iter().copied()).chain(["label"]).collect();
        let has_name_between = |sign: char| {
            let columns = first.split(sign).map(|name| name.trim().trim_matches('"').trim());
            columns.into_iter().any(|own| names.iter().any(|name| same_in_any_case(own, name)))
        };
        let has_numbers = || {
            let is_number = |name: &String| name.parse::<usize>().is_ok();
            options.text.as_ref().is_some_and(is_number) && first.contains(',')
        };
        let is_named_csv =
            || Path::new(file).extension().is_some_and(|own| own.eq_ignore_ascii_case("csv"));
        let is_unnamed = options.text.is_none() && options.label.is_none();
        let start = first.trim_start();
        let is_array = || {
            start
                .strip_prefix('[')
                .is_some_and(|rest| matches!(rest.trim_start().chars().next(), None | Some('{')))
        };
        match first {
            _ if start.starts_with('{') || is_array() => Ok(Self::JsonLines),
            _ if has_label(first) => Ok(Self::FastText),
            // A tab may be in a text of a file of commas.
            _ if first.contains('\t') && !(is_named_csv() && first.contains(',')) => Ok(Self::Tsv),
            _ if first.contains('\t') && has_name_between('\t') => Ok(Self::Tsv),
            _ if has_name_between(',') || has_numbers() || is_named_csv() => Ok(Self::Csv),
            _ if is_unnamed && spaced::have_whole_labels(content) => Ok(Self::Space),
            _ => Err(DataError::Line {
                file: file.to_owned(),
                line: line as u64 + 1,
                what: format!(
                    "it has no tab after a label; lines are `label`, a tab and the text, or JSON \
                     objects with `label` and `text`, \
                     or `{PREFIX}x text`, or CSV whose first line names the columns `label` and \
                     `text`, or those that --label-column and --text-column name; if a space \
                     follows each label, train with --format space, or make it a tab: \
                     sed 's/ /\\t/' FILE"
                ),
            }),
        }
    }
}
