//! Small folders of static models, made in a test.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use tempfile::TempDir;

/// The tokens have a median length of two characters.
pub(crate) const TOKENS: [&str; 7] = ["[UNK]", "a", "##b", "to", "boundary", "\u{e9}", "!"];

pub(crate) fn tokenizer() -> Value {
    let vocabulary: serde_json::Map<String, Value> =
        TOKENS.iter().zip(0..).map(|(token, id)| ((*token).to_owned(), json!(id))).collect();
    json!({
        "truncation": {"direction": "Right", "max_length": 1}, "padding": {"strategy": {"Fixed": 9}},
        "added_tokens": [{"id": 0, "content": "[UNK]", "single_word": false, "lstrip": false,
                          "rstrip": false, "normalized": false, "special": true}],
        "normalizer": {"type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true,
                       "strip_accents": false, "lowercase": true},
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": {"type": "TemplateProcessing"},
        "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
                  "max_input_chars_per_word": 100, "vocab": vocabulary},
    })
}

/// A safetensors file of these tensors: name, type, shape, bytes.
pub(crate) fn safetensors(tensors: &[(&str, &str, &[usize], Vec<u8>)]) -> Vec<u8> {
    let (mut header, mut data) = (serde_json::Map::new(), Vec::<u8>::new());
    for (name, kind, shape, bytes) in tensors {
        let offsets = [data.len(), data.len() + bytes.len()];
        let entry = json!({"dtype": kind, "shape": shape, "data_offsets": offsets});
        header.insert((*name).to_owned(), entry);
        data.extend(bytes);
    }
    let header = Value::Object(header).to_string();
    let mut file = (header.len() as u64).to_le_bytes().to_vec();
    file.extend(header.bytes());
    file.extend(data);
    file
}

pub(crate) fn f32s(numbers: &[f32]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
}

/// Rows by their tokens: the row of token `i` is (i, 1).
pub(crate) fn rows() -> Vec<u8> {
    let components: Vec<f32> = (0..TOKENS.len()).flat_map(|row| [row as f32, 1.0]).collect();
    safetensors(&[("embeddings", "F32", &[TOKENS.len(), 2], f32s(&components))])
}

pub(crate) fn write(folder: &Path, name: &str, bytes: impl AsRef<[u8]>) {
    fs::create_dir_all(folder.join(name).parent().unwrap()).unwrap();
    fs::write(folder.join(name), bytes).unwrap();
}

/// A folder of Model2Vec with these settings.
pub(crate) fn model2vec(settings: Value) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let mut config = json!({"model_type": "model2vec", "max_length": 4});
    config.as_object_mut().unwrap().extend(settings.as_object().unwrap().clone());
    write(folder.path(), "config.json", config.to_string());
    write(folder.path(), "tokenizer.json", tokenizer().to_string());
    write(folder.path(), "model.safetensors", rows());
    // Model2Vec writes it as well; it decides nothing there.
    write(folder.path(), "modules.json", modules("", &["StaticEmbedding", "Normalize"]));
    folder
}

pub(crate) fn modules(path: &str, classes: &[&str]) -> String {
    let module = |class| json!({"path": path, "type": format!("sentence_transformers.x.{class}")});
    Value::Array(classes.iter().map(module).collect()).to_string()
}

/// A folder of sentence-transformers.
pub(crate) fn static_embedding(path: &str, classes: &[&str]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "modules.json", modules(path, classes));
    let mut tokenizer = tokenizer();
    tokenizer["truncation"] = Value::Null;
    write(&folder.path().join(path), "tokenizer.json", tokenizer.to_string());
    write(&folder.path().join(path), "model.safetensors", rows());
    folder
}
