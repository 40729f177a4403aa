//! Cosine models are what they were before models had a metric, byte for byte.

use std::io::Cursor;

use contract::Metric;
use model_store::ModelStore;
use model_store::format::{Checksum, Provenance};
use model_store::prepare::{ModelFiles, ModelWriter};

/// A model of an odd number of components, with nothing in it that differs from run to run.
fn recorded() -> ModelFiles {
    let mut writer = ModelWriter::new(Cursor::new(Vec::new()), 3, Metric::Cosine).unwrap();
    for (word, row) in
        [("the", [0.5, -1.25, 3.0]), ("naïve", [-0.0, 1e-3, -7.5]), ("zero", [0.0; 3])]
    {
        writer.add(word, &row, None).unwrap();
    }
    let provenance = Provenance {
        source: "three.txt".into(),
        source_format: "glove text".into(),
        source_bytes: 57,
        source_checksum: Checksum::of(b"three"),
        prepared_by: "kindred 0.1.0".into(),
        prepared_at: "2024-01-01T00:00:00Z".into(),
        bad_rows_skipped: 1,
        duplicate_words_dropped: 2,
    };
    let (vectors, words, index) = writer.finish(provenance).unwrap();
    ModelFiles { vectors: vectors.into_inner(), words, index, attributes: None }
}

#[test]
fn a_cosine_model_is_the_same_bytes_as_ever() {
    let files = recorded();
    assert_eq!(files.vectors.len(), 16 * 1024 + 3 * 3 * 4 + 4 + 3 * 8 + 4 * 8);
    let checksum = |bytes: &[u8]| Checksum::of(bytes).to_string();
    // Recorded before models had a metric. If this changes, older models have other versions than
    // new ones.
    assert_eq!(
        checksum(&files.vectors),
        "blake3:1548624f1ee6780324d3a39be34e3ae77484485dfb44f4fd8478cd35dd54b679"
    );
    let model = ModelStore::from_memory("recorded", &files).unwrap();
    model.verify(|_| ()).unwrap();
    assert_eq!(model.version(), "ba221bd53baa54b3");
}
