//! `tokenizer.json`: what is read of it, and what is refused by name.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use model_store::ModelError;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::Tokeniser;
use super::added::{Added, AddedTokens};
use super::fault::Fault;
use super::model::Model;
use super::normal::Normal;
use super::{normalizer, pre_tokenizer};
use crate::EncoderError;

#[derive(Deserialize)]
struct File<'a> {
    #[serde(default)]
    added_tokens: Vec<Stored>,
    #[serde(default)]
    truncation: Option<Truncation>,
    #[serde(default)]
    normalizer: Value,
    #[serde(default)]
    pre_tokenizer: Value,
    #[serde(borrow)]
    model: &'a RawValue,
}

#[derive(Deserialize)]
struct Truncation {
    direction: String,
    max_length: usize,
}

/// An added token.
#[derive(Deserialize)]
struct Stored {
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

pub(super) fn open(path: &Path) -> Result<Tokeniser, EncoderError> {
    let bytes = fs::read(path).map_err(|source| ModelError::Io {
        action: "read",
        path: path.to_owned(),
        source,
    })?;
    read(path, &bytes)
}

pub(super) fn read(path: &Path, bytes: &[u8]) -> Result<Tokeniser, EncoderError> {
    tokeniser(bytes).map_err(|fault| match fault {
        Fault::Faulty(reason) => EncoderError::Faulty { path: path.to_owned(), reason },
        Fault::Unsupported(reason) => EncoderError::Unsupported { path: path.to_owned(), reason },
    })
}

fn tokeniser(bytes: &[u8]) -> Result<Tokeniser, Fault> {
    let file = serde_json::from_slice(bytes)
        .map_err(|error| Fault::Faulty(format!("it is no tokenizer.json: {error}")))?;
    let File { added_tokens, truncation, normalizer, pre_tokenizer, model } = file;
    if let Some(Truncation { direction, .. }) = &truncation
        && direction != "Right"
    {
        return Err(Fault::Unsupported(format!(
            "it cuts texts on the side {direction:?}, and only \"Right\" is read; set its \
             truncation to null if no text is long"
        )));
    }
    let (model, mut tokens) = Model::read(model)?;
    let normalizer = normalizer::read(&normalizer)?;
    let pre_tokenizer = pre_tokenizer::read(&pre_tokenizer)?;
    let asks_for_head = pre_tokenizer.iter().any(pre_tokenizer::Step::asks_for_head);
    if asks_for_head && normalizer.iter().any(|step| matches!(step, normalizer::Step::Bert(_))) {
        return Err(Fault::Unsupported(
            "its pre_tokenizer Metaspace has the prepend_scheme first, which is not read behind a \
             BertNormalizer; set the scheme to always if that is meant"
                .into(),
        ));
    }
    let (raw, normal) = added(added_tokens, &normalizer, &mut tokens)?;
    let max_tokens = truncation.map(|truncation| truncation.max_length);
    Ok(Tokeniser {
        added: AddedTokens::new(raw),
        added_normal: AddedTokens::new(normal),
        normalizer,
        pre_tokenizer,
        asks_for_head,
        model,
        tokens,
        max_tokens,
    })
}

/// The added tokens that are found in a text as it is, and those that are found in a normalised
/// one. Those that the vocabulary does not have get the ids behind it.
fn added(
    stored: Vec<Stored>,
    normalizer: &[normalizer::Step],
    tokens: &mut Vec<String>,
) -> Result<(Vec<Added>, Vec<Added>), Fault> {
    let mut ids: BTreeMap<String, u32> = tokens.iter().cloned().zip(0..).collect();
    // What is said last of a token counts.
    let (mut raw, mut normal) = (BTreeMap::new(), BTreeMap::new());
    for token in stored {
        let Stored { content, single_word, lstrip, rstrip, normalized } = token;
        if content.is_empty() {
            continue;
        }
        let id = *ids.entry(content.clone()).or_insert_with(|| {
            tokens.push(content.clone());
            tokens.len() as u32 - 1
        });
        let mut text = content;
        if normalized {
            let mut work = Normal::default();
            work.begin(&text, false);
            normalizer.iter().for_each(|step| step.apply(&mut work));
            if work.text.is_empty() {
                let reason = format!("its added token {text:?} is normalised to nothing");
                return Err(Fault::Faulty(reason));
            }
            text = work.text;
        }
        let token = Added { text, id, single_word, lstrip, rstrip };
        raw.remove(&id);
        normal.remove(&id);
        if normalized {
            normal.insert(id, token)
        } else {
            raw.insert(id, token)
        };
    }
    let mut texts: Vec<&str> = normal.values().map(|token| &token.text[..]).collect();
    texts.sort_unstable();
    if let Some(twice) = texts.windows(2).find(|pair| pair[0] == pair[1]) {
        let reason = format!("two of its added tokens are {:?} once normalised", twice[0]);
        return Err(Fault::Faulty(reason));
    }
    Ok((raw.into_values().collect(), normal.into_values().collect()))
}
