//! The rows of an embedding: vectors of the model's words, of other words, and for unknown ones.

use std::collections::HashMap;

use contract::Row;
use model_store::ModelStore;

use super::ImportError;
use super::tensors::Tensor;

/// How vocabularies name the row for unknown words.
const UNKNOWN: [&str; 3] = ["<unk>", "<UNK>", "[UNK]"];
/// How they name the row for what follows a short text in a batch.
const PADDING: [&str; 3] = ["<pad>", "<PAD>", "[PAD]"];

/// The words of an embedding's rows, in their order.
pub(super) struct Vocabulary<'a> {
    pub(super) words: Vec<&'a str>,
}

/// What the head has for words.
#[derive(Default)]
pub(super) struct OwnVectors {
    /// Rows of the model that have another vector, ascending, and these, `[rows, dim]`.
    pub(super) tuned: (Vec<Row>, Vec<f32>),
    /// Words that the model does not have, and their vectors, `[words, dim]`.
    pub(super) words: Vec<String>,
    pub(super) added: Vec<f32>,
    /// The vector for unknown words, `[dim]`.
    pub(super) unknown: Option<Vec<f32>>,
    /// The name of the row for padding, which is left out.
    pub(super) padding: Option<String>,
}

impl<'a> Vocabulary<'a> {
    /// One word in each line, in the order of the rows.
    pub(super) fn parse(text: &'a str) -> Result<Self, ImportError> {
        // Empty lines at the end are of no row.
        let text = text.strip_prefix('\u{feff}').unwrap_or(text).trim_end_matches(['\n', '\r']);
        let words: Vec<&str> = text.lines().collect();
        let mut lines = HashMap::new();
        let mut unknown = None;
        for (line, &word) in (1..).zip(&words) {
            let wrong = |what: String| Err(ImportError(what));
            if word.is_empty() {
                return wrong(format!(
                    "line {line} of the vocabulary is empty; write one word in each line, in the order of the embedding's rows"
                ));
            }
            if let Some(first) = lines.insert(word, line) {
                return wrong(format!(
                    "the vocabulary has {word:?} in lines {first} and {line}; each row needs a word of its own"
                ));
            }
            if UNKNOWN.contains(&word)
                && let Some(first) = unknown.replace(word)
            {
                return wrong(format!(
                    "the vocabulary has {first:?} and {word:?}, which both stand for unknown words; rename one of them"
                ));
            }
        }
        Ok(Self { words })
    }

    /// Whether texts in lower case have all its words.
    pub(super) fn is_lower_case(&self) -> bool {
        let is_special = |word: &&&str| UNKNOWN.contains(word) || PADDING.contains(word);
        self.words.iter().filter(|word| !is_special(word)).all(|word| word.to_lowercase() == **word)
    }
}

/// Sorts the rows of an embedding. Without a vocabulary they are those of the model.
pub(super) fn own_vectors(
    tensor: &Tensor<'_>,
    vocabulary: Option<&Vocabulary<'_>>,
    model: &ModelStore,
) -> Result<OwnVectors, ImportError> {
    let (dim, rows) = (model.dim(), model.rows());
    let &[found, columns] = tensor.shape() else {
        return Err(tensor.misfit(format!("an embedding has the shape [rows, {dim}]")));
    };
    if columns != dim {
        return Err(tensor.misfit(format!(
            "its vectors have {columns} components, but those of the model {} have {dim}; name the model that the \
             embedding was made from with --model",
            model.name()
        )));
    }
    let Tensor { file, name, .. } = tensor;
    match vocabulary {
        Some(Vocabulary { words }) if words.len() != found => {
            let lines = words.len();
            return Err(ImportError(format!(
                "the vocabulary has {lines} lines, but `{name}` in {file} has {found} rows; line n must be the word of row n"
            )));
        }
        None if found != rows => {
            return Err(ImportError(format!(
                "{file}: `{name}` has {found} rows, and the model {} has {rows}; give the words of the rows with \
                 --vocabulary FILE, or leave the embedding out with --ignore {name}",
                model.name()
            )));
        }
        _ => {}
    }
    let table = model.table();
    let mut own = OwnVectors::default();
    let mut tuned: Vec<(Row, Vec<f32>)> = Vec::new();
    for (index, vector) in tensor.parts(dim)?.enumerate() {
        let vector = vector?;
        let word = vocabulary.map(|vocabulary| vocabulary.words[index]);
        let row = match word {
            None => Some(Row(index as u32)),
            Some(word) if UNKNOWN.contains(&word) => {
                own.unknown = Some(vector);
                continue;
            }
            Some(word) if PADDING.contains(&word) => {
                own.padding = Some(word.to_owned());
                continue;
            }
            Some(word) => model.words().row(word),
        };
        match (row, word) {
            (Some(row), _) if table.row(row) == vector => {}
            (Some(row), _) => tuned.push((row, vector)),
            (None, word) => {
                own.words.extend(word.map(str::to_owned));
                own.added.extend(vector);
            }
        }
    }
    tuned.sort_unstable_by_key(|(row, _)| *row);
    for (row, vector) in tuned {
        own.tuned.0.push(row);
        own.tuned.1.extend(vector);
    }
    Ok(own)
}
