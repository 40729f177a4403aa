//! A head's folder: two bytes say how long head.json is, then come head.json and the weights. It is refused, or it classifies. It is
//! read as it is, and with the model and the checksum that it should have.
#![no_main]

use std::sync::{Arc, LazyLock};

use contract::{Token, TokenClassifier, TokenText};
use libfuzzer_sys::fuzz_target;
use model_store::ModelStore;
use model_store::head::Head;

/// A model that the head may say it was made for: its version is put into every description.
static MODEL: LazyLock<ModelStore> = LazyLock::new(|| {
    let rows = [("the", [1.0f32, -0.5]), ("of", [0.25, 2.0]), ("naïve", [0.0, 0.0])];
    let rows = rows.iter().map(|(word, row)| (*word, &row[..]));
    ModelStore::from_rows("fuzzed", 2, rows).expect("a model")
});

/// The description with this model, and with the weights' checksum.
fn described(description: &[u8], weights: &[u8]) -> Vec<u8> {
    let Ok(mut json) = serde_json::from_slice::<serde_json::Value>(description) else {
        return description.to_vec();
    };
    if json["model"].is_object() {
        json["model"]["version"] = MODEL.version().into();
        json["model"]["rows"] = MODEL.rows().into();
        json["model"]["dim"] = MODEL.dim().into();
    }
    if json["weights"].is_string() {
        json["weights"] = format!("blake3:{}", blake3::hash(weights)).into();
    }
    json.to_string().into_bytes()
}

fuzz_target!(|bytes: &[u8]| {
    let [low, high, rest @ ..] = bytes else { return };
    let length = usize::from(u16::from_le_bytes([*low, *high])).min(rest.len());
    let (description, weights) = rest.split_at(length);
    for description in [description.to_vec(), described(description, weights)] {
        let Ok(head) = Head::from_bytes("fuzzed", &description, weights, &MODEL) else { continue };
        let head = Arc::new(head);
        let count = head.tokens().min(head.longest_text()).min(4) as u32;
        let scores = TokenText::new(head.clone(), (0..count).map(Token).collect()).scores(&MODEL.table());
        assert_eq!(scores.len(), head.description().labels.len());
    }
});
