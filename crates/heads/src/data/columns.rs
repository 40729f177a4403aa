//! Texts with labels in the columns of CSV and TSV.

use super::{DataError, Format, Labelled, TEXT, Taking, TextsOptions, wanted};
use model_store::delimited::{Dialect, Problem, Reader, Whole, same_in_any_case};

/// Where the text and the label are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Places {
    text: usize,
    label: usize,
    first_line: FirstLine,
}

/// The content of the first line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FirstLine {
    /// The names of the columns.
    Names,
    /// A text and its label, because nobody says otherwise.
    Text,
    /// The same, because columns are given by numbers.
    SurelyText,
}

/// Reads the rows of a file.
pub(super) fn read(
    format: Format,
    content: &str,
    options: &TextsOptions,
    taking: &mut Taking<'_>,
) -> Result<(), DataError> {
    let dialect = if format == Format::Csv { Dialect::Csv } else { Dialect::Tsv };
    let (mut reader, mut bytes) = (Reader::new(dialect), Whole::new(content.as_bytes()));
    let mut found: Option<Places> = None;
    let mut names: Vec<String> = Vec::new();
    loop {
        let Ok(row) = reader.next(&mut bytes);
        let Some(row) = row else { break };
        let field = |column| str::from_utf8(reader.field(column)).expect("cut at ASCII signs");
        if (0..row.columns).all(|column| field(column).trim().is_empty()) && row.columns > 0 {
            continue;
        }
        let is_first = found.is_none();
        let places = match found {
            Some(places) => places,
            None => {
                names = (0..row.columns).map(|column| field(column).trim().to_owned()).collect();
                let places = match row.problem {
                    Some(problem) => Err(format!("its first line: {}", problem.reason(dialect))),
                    None => places(&names, dialect, options),
                };
                *found.insert(places.map_err(|what| taking.bad(what))?)
            }
        };
        if is_first && places.first_line == FirstLine::Names {
            continue;
        }
        if row.problem == Some(Problem::OpenQuote) && taking.skips {
            // It is the rest of the file, however many rows that was meant to be.
            let what = Problem::OpenQuote.reason(dialect);
            return Err(taking.bad(format!("line {}: {what}; close it", row.line)));
        }
        let is_name =
            |(column, name): (usize, &String)| same_in_any_case(field(column).trim(), name);
        let one = match row.problem {
            Some(problem) => Err(problem.reason(dialect)),
            // As where files were joined that both have names.
            None if places.first_line == FirstLine::Names
                && names.iter().enumerate().all(is_name) =>
            {
                Err("it repeats the names of the columns; remove it".to_owned())
            }
            None => Ok(Labelled {
                labels: vec![field(places.label).to_owned()],
                text: field(places.text).trim().to_owned(),
            }),
        };
        taking.take(row.line, one)?;
    }
    match found {
        Some(Places { first_line: FirstLine::Text, .. }) => match looks_like_names(taking) {
            Some(what) => Err(taking.bad(what)),
            None => Ok(()),
        },
        _ => Ok(()),
    }
}

/// Where the text and the label are, by the first line.
fn places(names: &[String], dialect: Dialect, options: &TextsOptions) -> Result<Places, String> {
    let number = |name: &Option<String>| name.as_deref()?.parse::<usize>().ok();
    let places = match (number(&options.text), number(&options.label)) {
        (Some(text), Some(label)) => {
            if let Ok(Places { first_line: FirstLine::Names, .. }) =
                of_names(names, dialect, &TextsOptions::default())
            {
                return Err(format!(
                    "its first line has the names {}; leave out the numbers of the columns",
                    names.join(" and ")
                ));
            }
            of_numbers([text, label], names.len())?
        }
        (None, None) => of_names(names, dialect, options)?,
        _ => {
            return Err(
                "--text-column and --label-column must both be numbers, for columns without \
                 names, or both names"
                    .to_owned(),
            );
        }
    };
    match places.text == places.label {
        true => Err(format!(
            "--text-column and --label-column both mean its column {}; name two",
            places.text + 1
        )),
        false => Ok(places),
    }
}

fn of_numbers(numbers: [usize; 2], columns: usize) -> Result<Places, String> {
    let place = |number: usize| {
        (1..=columns).contains(&number).then(|| number - 1).ok_or_else(|| {
            format!(
                "it has no column {number}; --text-column and --label-column may be numbers from \
                 1 to {columns}"
            )
        })
    };
    let [text, label] = numbers.map(place);
    Ok(Places { text: text?, label: label?, first_line: FirstLine::SurelyText })
}

fn of_names(names: &[String], dialect: Dialect, options: &TextsOptions) -> Result<Places, String> {
    let given = [options.text.as_deref(), options.label.as_deref()];
    let is_given = given.iter().any(Option::is_some);
    let text_names = if given[0].is_some() { given[0].as_slice() } else { TEXT };
    let label_names = if given[1].is_some() { given[1].as_slice() } else { &["label"] };
    let [text, label] = wanted("column", [text_names, label_names]);
    let bare = names.iter().map(|name| name.trim_matches('"').to_owned());
    let bare: Vec<String> = bare.collect();
    if dialect == Dialect::Tsv
        && bare != names
        && (text.place(&bare)?.is_some() || label.place(&bare)?.is_some())
    {
        return Err(
            "its names are between quotes, which are characters as any other in TSV; write \
                    it without (pandas: quoting=csv.QUOTE_NONE), or as CSV"
                .to_owned(),
        );
    }
    let or_numbers = |what: String| match names {
        // The one line that spreadsheets read as the separator.
        [first, ..] if dialect == Dialect::Csv && first.starts_with("sep=") => {
            format!("{what}; its first line names no columns; remove it: tail -n +2 FILE")
        }
        [one] if dialect == Dialect::Csv && one.contains(';') => {
            format!("{what}; if semicolons separate its columns, save it with commas")
        }
        [one] if dialect == Dialect::Csv && one.contains('|') => {
            format!("{what}; if bars separate its columns, save it with commas")
        }
        // A remark, as programs that do not read it write one.
        [first, ..] if dialect == Dialect::Csv && first.starts_with('#') => {
            format!("{what}; if its first line names no columns, remove it: tail -n +2 FILE")
        }
        [_] if dialect == Dialect::Csv => what,
        _ => format!(
            "{what} (if its first line is a text, give the numbers of the columns, such as \
             --text-column 2 --label-column 1)"
        ),
    };
    match (text.place(names)?, label.place(names)?) {
        (Some(text), Some(label)) => Ok(Places { text, label, first_line: FirstLine::Names }),
        (None, None) if dialect == Dialect::Tsv && !is_given => match names.len() {
            1 => Err("its first line has no tab; a line is a label, a tab and the text".to_owned()),
            2 => Ok(Places { text: 1, label: 0, first_line: FirstLine::Text }),
            columns => Err(or_numbers(format!(
                "its first line has {columns} columns, none of which is named `text`, `sentence` \
                 or `label`; name two of them \
                 with --text-column and --label-column: {}",
                names.join(", ")
            ))),
        },
        (None, _) => Err(or_numbers(text.missing(names))),
        (_, None) => Err(or_numbers(label.missing(names))),
    }
}

/// Why the first line seems to be names of columns: no other has its label, and it is two words
/// among longer texts, or a few words among texts that are nearly all longer and have no other
/// label that is given only once.
fn looks_like_names(taking: &Taking<'_>) -> Option<String> {
    const FEWEST: usize = 10;
    const MOST_WORDS: usize = 3;
    let [first, others @ ..] = &taking.found.texts[..] else { return None };
    let is_alone = taking.first == Some(true)
        && others.len() >= FEWEST
        && others.iter().all(|one| one.labels != first.labels);
    if !is_alone {
        return None;
    }
    let (label, text) = (&first.labels[0], &first.text);
    let words = |text: &str| text.split_whitespace().count();
    let long = others.iter().filter(|one| words(&one.text) > 1).count();
    let are_words = words(text) == 1 && words(label) == 1 && 2 * long > others.len();
    let are_few_words = || {
        let length = |text: &str| text.chars().count();
        let longer = others.iter().filter(|one| length(&one.text) > length(text)).count();
        let alone = taking.found.labels().iter().filter(|(_, count)| *count == 1).count();
        let most = words(text).max(words(label));
        most <= MOST_WORDS && 4 * longer > 3 * others.len() && alone == 1
    };
    (are_words || are_few_words()).then(|| {
        format!(
            "its first line seems to name the columns, because no other has the label `{label}`; \
             say so with --text-column {} --label-column {}, or, if it is a text, give the numbers \
             of the columns: --text-column 2 --label-column 1",
            quoted(text),
            quoted(label)
        )
    })
}

/// A name as a shell takes it for one argument.
fn quoted(name: &str) -> String {
    let is_plain = |one: char| one.is_alphanumeric() || matches!(one, '_' | '-' | '.');
    match name.chars().all(is_plain) {
        true => name.to_owned(),
        false => format!("'{}'", name.replace('\'', r"'\''")),
    }
}
