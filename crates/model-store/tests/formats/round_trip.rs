//! Exporting and preparing again gives the same model, bit for bit.

use std::fs;
use std::ops::ControlFlow;
use std::path::Path;

use model_store::export::{ExportOptions, export};
use model_store::prepare::{PrepareOptions, VectorsFormat};
use model_store::{ModelError, ModelStore};
use proptest::prelude::*;

use super::support::Scratch;

fn write(
    model: &ModelStore,
    format: VectorsFormat,
    scratch: &Scratch,
) -> Result<PrepareOptions, ModelError> {
    let words = format.needs_words_file().then(|| scratch.path("words.any"));
    let out = Some(scratch.path("exported"));
    let options = ExportOptions {
        format,
        out,
        words: words.clone(),
        biases: None,
        attributes: None,
        replace: true,
    };
    export(model, &options, &mut |_| ControlFlow::Continue(()))?;
    Ok(PrepareOptions { words, ..Default::default() })
}

fn comes_back(model: &ModelStore, format: VectorsFormat) {
    let scratch = Scratch::new();
    let options = write(model, format, &scratch).unwrap();
    let content = fs::read(scratch.path("exported")).unwrap();
    scratch.prepare(content, &options).unwrap_or_else(|e| panic!("{format:?}: {e}"));
    // Words, components, norms and the word map: every byte.
    assert_eq!(scratch.open().header().checksums, model.header().checksums, "{format:?}");
}

fn rows(components: &[f32], dim: usize, words: &[&str]) -> ModelStore {
    let rows = words.iter().copied().zip(components.chunks_exact(dim));
    ModelStore::from_rows("m", dim, rows).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    #[test]
    fn every_float32_comes_back(bits in prop::collection::vec(any::<u32>(), 12..60), dim in 1usize..5) {
        let components: Vec<f32> =
            bits.into_iter().map(f32::from_bits).filter(|x| x.is_finite()).collect();
        let words: Vec<String> = (0..components.len() / dim).map(|row| format!("w{row}")).collect();
        prop_assume!(!words.is_empty());
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let model = rows(&components, dim, &words);
        for format in VectorsFormat::WRITTEN {
            comes_back(&model, format);
        }
    }
}

#[test]
fn the_smallest_largest_and_negative_zero_come_back() {
    let extremes =
        [f32::MAX, f32::MIN, f32::MIN_POSITIVE, f32::from_bits(1), -0.0, 0.1, 1e-7, 16_777_217.0];
    let model = rows(&extremes, 2, &["a", "1.5", "naïve\u{85}", "\u{1F438}"]);
    for format in VectorsFormat::WRITTEN {
        comes_back(&model, format);
    }
}

#[test]
fn words_with_spaces_come_back_or_are_refused() {
    let numbers = [1.0, 2.0, 3.0];
    let fine = rows(&numbers, 1, &["the", ". . .", "at name@domain.com"]);
    for format in VectorsFormat::WRITTEN {
        if format == VectorsFormat::Word2vecBinary {
            let said = write(&fine, format, &Scratch::new()).unwrap_err().to_string();
            assert!(said.contains("\". . .\" of row 1") && said.contains("use word2vec"), "{said}");
        } else {
            comes_back(&fine, format);
        }
    }
    for word in ["route 66", " x", "x "] {
        let model = rows(&numbers, 1, &["the", word, "of"]);
        for format in [VectorsFormat::Glove, VectorsFormat::Word2vec] {
            let said = write(&model, format, &Scratch::new()).unwrap_err().to_string();
            assert!(said.contains("of row 1") && said.contains("npy"), "{said}");
        }
        comes_back(&model, VectorsFormat::Npy);
        comes_back(&model, VectorsFormat::Safetensors);
    }
    let first = rows(&numbers, 1, &[". . .", "b", "c"]);
    assert!(write(&first, VectorsFormat::Glove, &Scratch::new()).is_err());
    comes_back(&first, VectorsFormat::Word2vec);
    for word in ["\u{feff}x", "x\r"] {
        let model = rows(&numbers, 1, &[word, "b", "c"]);
        assert!(write(&model, VectorsFormat::Npy, &Scratch::new()).is_err(), "{word:?}");
        comes_back(&model, VectorsFormat::Word2vec);
    }
    for word in ["a\tb", "a\t1"] {
        let model = rows(&numbers, 1, &["the", word, "c"]);
        assert!(write(&model, VectorsFormat::Glove, &Scratch::new()).is_err(), "{word:?}");
        comes_back(&model, VectorsFormat::Npy);
    }
    // Both sides agree on what is not a number; control characters do not make text binary.
    for word in ["to infinity", "\u{1}a", "nul\0"] {
        let model = rows(&numbers, 1, &["the", word, "c"]);
        comes_back(&model, VectorsFormat::Glove);
        comes_back(&model, VectorsFormat::Word2vec);
        let first = rows(&numbers, 1, &[word.trim_start_matches("to "), "b", "c"]);
        comes_back(&first, VectorsFormat::Word2vec);
        comes_back(&first, VectorsFormat::Glove);
    }
}

#[cfg(unix)]
#[test]
fn only_files_are_replaced_and_links_stay() {
    let scratch = Scratch::new();
    let model = rows(&[1.0, 2.0], 1, &["a", "b"]);
    let replace = |out: &Path, words: Option<&Path>| {
        let format = if words.is_some() { VectorsFormat::Npy } else { VectorsFormat::Glove };
        let (out, words) = (Some(out.to_owned()), words.map(Path::to_owned));
        let options =
            ExportOptions { format, out, words, biases: None, attributes: None, replace: true };
        export(&model, &options, &mut |_| ControlFlow::Continue(()))
    };
    let pipe = scratch.path("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let said = replace(&pipe, None).unwrap_err().to_string();
    assert!(said.contains("device or a pipe"), "{said}");
    let (file, link) = (scratch.path("file"), scratch.path("link"));
    std::os::unix::fs::symlink(&file, &link).unwrap();
    fs::write(&file, "old").unwrap();
    replace(&link, None).unwrap();
    assert!(link.is_symlink() && fs::read_to_string(&file).unwrap().starts_with("a 1.0"));
    let said = replace(&file, Some(&link)).unwrap_err().to_string();
    assert!(said.contains("give each its own name"), "{said}");
    let left = scratch.path(".kindred-export-killed");
    fs::write(&left, "half").unwrap();
    let long_ago = std::time::SystemTime::now() - std::time::Duration::from_secs(60);
    fs::File::open(&left).unwrap().set_modified(long_ago).unwrap();
    replace(&file, None).unwrap();
    assert!(!left.exists());
}

#[test]
fn the_files_of_the_model_itself_are_never_replaced() {
    let scratch = Scratch::new();
    scratch.prepare("a 1 2\nb 3 4\n", &PrepareOptions::default()).unwrap();
    let model = scratch.open();
    let own = |file: &str| Some(scratch.out().join(file));
    for (out, words) in [
        (Some(scratch.path("x.npy")), own("words.txt")),
        (own("vectors.safetensors"), Some(scratch.path("x.words"))),
        (own("../model/words.fst"), Some(scratch.path("x.words"))),
    ] {
        let format = VectorsFormat::Safetensors;
        let options =
            ExportOptions { format, out, words, biases: None, attributes: None, replace: true };
        let written = export(&model, &options, &mut |_| ControlFlow::Continue(()));
        let said = written.unwrap_err().to_string();
        assert!(said.contains("is a file of the model itself"), "{said}");
    }
    scratch.open();
    assert!(!scratch.path("x.npy").exists() && !scratch.path("x.words").exists());
}

#[test]
fn files_in_the_way_stay_unless_they_may_be_replaced() {
    let scratch = Scratch::new();
    let model = rows(&[1.0, 2.0], 1, &["a", "b"]);
    let thesis = scratch.path("thesis");
    let try_to = |out: &Path, words: Option<&Path>, replace| {
        let options = ExportOptions {
            format: if words.is_some() { VectorsFormat::Npy } else { VectorsFormat::Glove },
            out: Some(out.to_owned()),
            words: words.map(Path::to_owned),
            biases: None,
            attributes: None,
            replace,
        };
        export(&model, &options, &mut |_| ControlFlow::Continue(()))
    };
    fs::write(&thesis, "years of work").unwrap();
    let said = try_to(&thesis, None, false).unwrap_err().to_string();
    assert!(said.contains("thesis is there already") && said.contains("--replace"), "{said}");
    try_to(&scratch.path("new.npy"), Some(&thesis), false).unwrap_err();
    assert!(!scratch.path("new.npy").exists(), "neither or both");
    assert_eq!(fs::read_to_string(&thesis).unwrap(), "years of work");
    try_to(&thesis, None, true).unwrap();
    assert_eq!(fs::read_to_string(&thesis).unwrap(), "a 1.0\nb 2.0\n");
    let stopped = export(
        &model,
        &ExportOptions {
            format: VectorsFormat::Glove,
            out: Some(scratch.path("x")),
            words: None,
            biases: None,
            attributes: None,
            replace: false,
        },
        &mut |_| ControlFlow::Break(()),
    );
    assert!(matches!(stopped, Err(ModelError::Cancelled)));
    assert!(!scratch.path("x").exists());
}
