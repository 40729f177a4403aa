//! The model of a tokeniser: from a piece of a text to ids. Which kind it is, `type` says.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::bpe::{self, Bpe};
use super::fault::{Fault, not_read};
use super::scores::score;
use super::unigram::{self, Unigram};
use super::word_piece::WordPiece;

/// A model of one of the kinds.
#[derive(Debug)]
pub(super) enum Model {
    WordPiece(WordPiece),
    Unigram(Unigram),
    Bpe(Box<Bpe>),
}

/// Memory that is used again.
#[derive(Debug, Default)]
pub(super) struct Work {
    unigram: unigram::Work,
    bpe: bpe::Work,
}

#[derive(Deserialize)]
struct Kind {
    #[serde(rename = "type")]
    kind: Option<String>,
}

#[derive(Deserialize)]
struct WordPieceFields {
    unk_token: String,
    continuing_subword_prefix: String,
    max_input_chars_per_word: usize,
    vocab: BTreeMap<String, u32>,
}

#[derive(Deserialize)]
struct UnigramFields<'a> {
    unk_id: Option<u32>,
    #[serde(default)]
    byte_fallback: bool,
    #[serde(borrow)]
    vocab: Vec<(String, &'a RawValue)>,
}

impl Model {
    /// Reads a model and its tokens by their ids.
    pub(super) fn read(json: &RawValue) -> Result<(Self, Vec<String>), Fault> {
        match fields::<Kind>(json)?.kind.as_deref().unwrap_or("without a type") {
            "WordPiece" => {
                let model: WordPieceFields = fields(json)?;
                let tokens = by_id(&model.vocab)?;
                let Some(unknown) = model.vocab.get(&model.unk_token) else {
                    let reason = format!("its unknown token {:?} has no id", model.unk_token);
                    return Err(Fault::Faulty(reason));
                };
                let prefix = &model.continuing_subword_prefix;
                let most = model.max_input_chars_per_word;
                Ok((Self::WordPiece(WordPiece::new(&tokens, prefix, *unknown, most)), tokens))
            }
            "Unigram" => {
                let UnigramFields { unk_id, byte_fallback, vocab } = fields(json)?;
                let Some(unknown) = unk_id else {
                    return Err(Fault::Unsupported(
                        "its model has no unk_id, and tokenizers fails at each character without \
                         a piece; set its unk_id to the id of its unknown token"
                            .into(),
                    ));
                };
                let (mut tokens, mut scores) = (Vec::new(), Vec::new());
                for (piece, text) in vocab {
                    let Some(score) = score(text) else {
                        let reason = format!("the score of its piece {piece:?} is {text}");
                        return Err(Fault::Faulty(reason));
                    };
                    tokens.push(piece);
                    scores.push(score);
                }
                let model = Unigram::new(&tokens, scores, unknown, byte_fallback)?;
                Ok((Self::Unigram(model), tokens))
            }
            "BPE" => {
                let fields: bpe::Fields = fields(json)?;
                let tokens = by_id(&fields.vocab)?;
                Ok((Self::Bpe(Box::new(Bpe::new(fields)?)), tokens))
            }
            other => Err(not_read("model", other, &["BPE", "Unigram", "WordPiece"])),
        }
    }

    /// The kind's name.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::WordPiece(_) => "wordpiece",
            Self::Unigram(_) => "unigram",
            Self::Bpe(_) => "bpe",
        }
    }

    /// The id of what is unknown, if there is one.
    pub(super) fn unknown(&self) -> Option<u32> {
        match self {
            Self::WordPiece(model) => Some(model.unknown()),
            Self::Unigram(model) => Some(model.unknown()),
            Self::Bpe(model) => model.unknown(),
        }
    }

    /// Appends the ids of a piece's tokens.
    pub(super) fn encode(&self, piece: &str, work: &mut Work, ids: &mut Vec<u32>) {
        match self {
            Self::WordPiece(model) => model.encode(piece, ids),
            Self::Unigram(model) => model.encode(piece, &mut work.unigram, ids),
            Self::Bpe(model) => model.encode(piece, &mut work.bpe, ids),
        }
    }
}

fn fields<'a, T: Deserialize<'a>>(json: &'a RawValue) -> Result<T, Fault> {
    serde_json::from_str(json.get()).map_err(|error| Fault::Faulty(format!("its model: {error}")))
}

/// The tokens by their ids, which are those from 0 on.
fn by_id(vocabulary: &BTreeMap<String, u32>) -> Result<Vec<String>, Fault> {
    let mut tokens = vec![None; vocabulary.len()];
    for (token, id) in vocabulary {
        let fault = match tokens.get_mut(*id as usize) {
            Some(place @ None) => {
                *place = Some(token.clone());
                continue;
            }
            Some(Some(other)) => format!("{token:?} and {other:?} have the id {id}"),
            None => {
                format!("{token:?} has the id {id}, and the ids end at {}", vocabulary.len() - 1)
            }
        };
        return Err(Fault::Faulty(fault));
    }
    Ok(tokens.into_iter().map(|token| token.expect("as many ids as tokens")).collect())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn read(model: &Value) -> Result<(Model, Vec<String>), Fault> {
        Model::read(&RawValue::from_string(model.to_string()).unwrap())
    }

    #[test]
    fn each_kind_has_its_name_tokens_and_unknown_id() {
        let unigram = json!({"type": "Unigram", "unk_id": 1, "vocab": [["a", -1], ["?", 0.0]]});
        let bpe = json!({"type": "BPE", "vocab": {"a": 1, "?": 0}, "merges": []});
        for (model, kind, unknown, tokens) in
            [(unigram, "unigram", Some(1), ["a", "?"]), (bpe, "bpe", None, ["?", "a"])]
        {
            let (model, found) = read(&model).unwrap_or_else(|_| panic!("{kind}"));
            assert_eq!(
                (model.kind(), model.unknown(), &found[..]),
                (kind, unknown, &tokens.map(str::to_owned)[..])
            );
            let mut ids = Vec::new();
            model.encode("aa", &mut Work::default(), &mut ids);
            assert_eq!(ids.len(), 2);
        }
    }

    #[test]
    fn other_models_are_refused_by_name_and_faults_are_named() {
        for (model, said, is_unsupported) in [
            (
                json!({"type": "WordLevel"}),
                "model is WordLevel, and only these are read: BPE",
                true,
            ),
            (json!({}), "without a type", true),
            (json!({"type": "Unigram", "vocab": []}), "no unk_id", true),
            (json!({"type": "Unigram", "unk_id": 0, "vocab": []}), "unk_id is 0, of 0", false),
            (json!({"type": "Unigram", "unk_id": 0, "vocab": [["a", "b"]]}), "score of", false),
            (json!({"type": "Unigram", "unk_id": -1, "vocab": []}), "its model: ", false),
            (json!({"type": "BPE", "vocab": {"a": 1}, "merges": []}), "the ids end at 0", false),
            (json!({"type": "BPE", "vocab": {}}), "missing field `merges`", false),
            (json!([]), "its model: ", false),
        ] {
            let (reason, unsupported) = match read(&model).map(|_| ()).expect_err(said) {
                Fault::Unsupported(reason) => (reason, true),
                Fault::Faulty(reason) => (reason, false),
            };
            assert!(reason.contains(said) && unsupported == is_unsupported, "{reason}");
        }
    }
}
