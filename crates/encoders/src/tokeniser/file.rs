//! `tokenizer.json`: what is read of it, and what is refused by name.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use model_store::ModelError;
use serde::Deserialize;
use serde_json::Value;

use super::Tokeniser;
use super::added::AddedTokens;
use super::bert::Normalizer;
use super::word_piece::WordPiece;
use crate::EncoderError;

#[derive(Deserialize)]
struct File {
    #[serde(default)]
    added_tokens: Vec<Added>,
    #[serde(default)]
    truncation: Option<Truncation>,
    #[serde(default)]
    normalizer: Value,
    #[serde(default)]
    pre_tokenizer: Value,
    model: Value,
}

#[derive(Deserialize)]
struct Truncation {
    direction: String,
    max_length: usize,
}

#[derive(Deserialize)]
struct Added {
    content: String,
    #[serde(default)]
    single_word: bool,
    #[serde(default)]
    lstrip: bool,
    #[serde(default)]
    rstrip: bool,
    #[serde(default)]
    normalized: bool,
}

#[derive(Deserialize)]
struct Model {
    unk_token: String,
    continuing_subword_prefix: String,
    max_input_chars_per_word: usize,
    vocab: BTreeMap<String, u32>,
}

pub(super) fn open(path: &Path) -> Result<Tokeniser, EncoderError> {
    let bytes = fs::read(path).map_err(|source| ModelError::Io {
        action: "read",
        path: path.to_owned(),
        source,
    })?;
    read(path, &bytes)
}

pub(super) fn read(path: &Path, bytes: &[u8]) -> Result<Tokeniser, EncoderError> {
    let faulty = |reason: String| EncoderError::Faulty { path: path.to_owned(), reason };
    let is_json = |error: serde_json::Error| faulty(format!("it is no tokenizer.json: {error}"));
    let File { added_tokens, truncation, normalizer, pre_tokenizer, model } =
        serde_json::from_slice(bytes).map_err(is_json)?;
    for (part, found, read) in [
        ("model", &model, "WordPiece"),
        ("normalizer", &normalizer, "BertNormalizer"),
        ("pre_tokenizer", &pre_tokenizer, "BertPreTokenizer"),
    ] {
        let found = found["type"].as_str().unwrap_or("without a type");
        if found != read {
            return Err(EncoderError::Unsupported {
                path: path.to_owned(),
                reason: format!(
                    "its {part} is {found}, and only {read} is read; the model's rows without \
                     texts can be prepared from its safetensors file"
                ),
            });
        }
    }
    if let Some(Truncation { direction, .. }) = &truncation
        && direction != "Right"
    {
        let reason = format!(
            "it cuts texts on the side {direction:?}, and only \"Right\" is read; set its \
             truncation to null if no text is long"
        );
        return Err(EncoderError::Unsupported { path: path.to_owned(), reason });
    }
    let normalizer: Normalizer = serde_json::from_value(normalizer).map_err(is_json)?;
    let model: Model = serde_json::from_value(model).map_err(is_json)?;
    let tokens = by_id(&model.vocab).map_err(&faulty)?;
    let Some(unknown) = model.vocab.get(&model.unk_token) else {
        return Err(faulty(format!("its unknown token {:?} has no id", model.unk_token)));
    };
    let mut added = Vec::new();
    for token in added_tokens {
        let Added { content, single_word, lstrip, rstrip, normalized } = token;
        if single_word || lstrip || rstrip || normalized {
            let reason = format!(
                "its added token {content:?} is found by rules that are not read (single_word, \
                 lstrip, rstrip, normalized); set them to false if no text has it"
            );
            return Err(EncoderError::Unsupported { path: path.to_owned(), reason });
        }
        match model.vocab.get(&content) {
            Some(id) if !content.is_empty() => added.push((content, *id)),
            Some(_) => {}
            None => return Err(faulty(format!("its added token {content:?} has no id"))),
        }
    }
    let (prefix, max_chars) = (&model.continuing_subword_prefix, model.max_input_chars_per_word);
    let model = WordPiece::new(&tokens, prefix, *unknown, max_chars);
    let max_tokens = truncation.map(|truncation| truncation.max_length);
    Ok(Tokeniser { added: AddedTokens::new(added), normalizer, model, tokens, max_tokens })
}

/// The tokens by their ids, which are those from 0 on.
fn by_id(vocabulary: &BTreeMap<String, u32>) -> Result<Vec<String>, String> {
    let mut tokens = vec![None; vocabulary.len()];
    for (token, id) in vocabulary {
        match tokens.get_mut(*id as usize) {
            Some(place @ None) => *place = Some(token.clone()),
            Some(Some(other)) => return Err(format!("{token:?} and {other:?} have the id {id}")),
            None => {
                let most = vocabulary.len() - 1;
                return Err(format!("{token:?} has the id {id}, and the ids end at {most}"));
            }
        }
    }
    Ok(tokens.into_iter().map(|token| token.expect("as many ids as tokens")).collect())
}
