//! Exporting a model with its biases and preparing both again gives the same model, bit for bit.

use std::fs;
use std::ops::ControlFlow;
use std::path::PathBuf;

use contract::Metric;
use model_store::export::{ExportOptions, export};
use model_store::prepare::{PrepareOptions, VectorsFormat};
use model_store::{ModelError, ModelStore};
use proptest::prelude::*;

use crate::formats::support::Scratch;

fn write(
    model: &ModelStore,
    format: VectorsFormat,
    scratch: &Scratch,
    biases: Option<PathBuf>,
) -> Result<PrepareOptions, ModelError> {
    let words = format.needs_words_file().then(|| scratch.path("words.any"));
    let out = Some(scratch.path("exported"));
    let options = ExportOptions {
        format,
        out,
        words: words.clone(),
        biases: biases.clone(),
        attributes: None,
        replace: false,
    };
    export(model, &options, &mut |_| ControlFlow::Continue(()))?;
    Ok(PrepareOptions { words, metric: model.metric(), biases, ..Default::default() })
}

fn comes_back(model: &ModelStore, format: VectorsFormat) {
    let scratch = Scratch::new();
    let biases = model.table().biases().map(|_| scratch.path("biases.npy"));
    let options = write(model, format, &scratch, biases).unwrap();
    let content = fs::read(scratch.path("exported")).unwrap();
    scratch.prepare(content, &options).unwrap_or_else(|e| panic!("{format:?}: {e}"));
    assert_eq!(scratch.open().header().checksums, model.header().checksums, "{format:?}");
    assert_eq!(scratch.open().version(), model.version(), "{format:?}");
}

fn three(biases: Option<&[f32]>) -> ModelStore {
    let rows: [(&str, &[f32]); 3] = [("a", &[1.0, 2.0]), ("b", &[0.1, 0.0]), ("c", &[0.0, 0.0])];
    ModelStore::from_rows_under_dot("m", 2, rows, biases).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]
    #[test]
    fn every_bias_comes_back(bits: [u32; 3], has_biases: bool) {
        let biases = bits.map(f32::from_bits).map(|x| if x.is_finite() { x } else { f32::MIN });
        let model = three(has_biases.then_some(&biases[..]));
        for format in VectorsFormat::WRITTEN {
            comes_back(&model, format);
        }
    }
}

#[test]
fn biases_are_written_only_if_they_are_asked_for() {
    let scratch = Scratch::new();
    write(&three(Some(&[1.0, 2.0, 3.0])), VectorsFormat::Glove, &scratch, None).unwrap();
    assert_eq!(
        fs::read_to_string(scratch.path("exported")).unwrap(),
        "a 1.0 2.0\nb 0.1 0.0\nc 0.0 0.0\n"
    );
    assert!(!scratch.path("biases.npy").exists());
}

#[test]
fn biases_that_a_model_lacks_are_not_written() {
    let cosine = ModelStore::from_rows("m", 1, [("a", &[1.0][..])]).unwrap();
    assert_eq!(cosine.metric(), Metric::Cosine);
    for model in [cosine, three(None)] {
        let scratch = Scratch::new();
        let biases = Some(scratch.path("biases.npy"));
        let said = write(&model, VectorsFormat::Glove, &scratch, biases).unwrap_err().to_string();
        assert!(said.contains("m: it has no biases; omit --bias"), "{said}");
        assert!(!scratch.path("exported").exists() && !scratch.path("biases.npy").exists());
    }
}

#[test]
fn all_files_are_written_or_none() {
    let (scratch, model) = (Scratch::new(), three(Some(&[1.0, 2.0, 3.0])));
    let taken = scratch.path("thesis");
    fs::write(&taken, "years of work").unwrap();
    let said =
        write(&model, VectorsFormat::Npy, &scratch, Some(taken.clone())).unwrap_err().to_string();
    assert!(said.contains("thesis is there already"), "{said}");
    for name in ["exported", "words.any"] {
        assert!(!scratch.path(name).exists(), "{name}");
        let biases = Some(scratch.path(name));
        let said = write(&model, VectorsFormat::Npy, &scratch, biases).unwrap_err().to_string();
        assert!(said.contains("give each its own name"), "{said}");
    }
    assert_eq!(fs::read_to_string(&taken).unwrap(), "years of work");
}
