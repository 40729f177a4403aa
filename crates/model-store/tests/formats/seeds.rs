//! Runs the fuzz targets' seeds and findings through the same checks, without a fuzzer.

use std::fs;
use std::num::NonZeroUsize;
use std::path::Path;

use model_store::ModelStore;
use model_store::prepare::{Input, PrepareOptions, Separator, VectorsFormat, prepare_in_memory};

use super::support::Scratch;

/// The format of a fuzz target, and whether its words are in another file.
fn of_target(target: &str) -> Vec<(Option<VectorsFormat>, bool)> {
    match target {
        "glove" => vec![(Some(VectorsFormat::Glove), false)],
        "glove_norm" => vec![(Some(VectorsFormat::GloveNorm), false)],
        "word2vec" => vec![(Some(VectorsFormat::Word2vec), false)],
        "word2vec_binary" => vec![(Some(VectorsFormat::Word2vecBinary), false)],
        "norms_and_components" => vec![(Some(VectorsFormat::GloveNorm), true)],
        "npy" => vec![(Some(VectorsFormat::Npy), true)],
        "safetensors" => vec![(Some(VectorsFormat::Safetensors), true)],
        "detect" => vec![(None, false), (None, true)],
        "packed" => vec![(None, false)],
        // Changes of a folder, not files to prepare.
        "model_folder" | "changes" => vec![],
        // Requests, not files.
        "expression" | "filter" | "npy_body" | "post_body" | "query_string" | "row_json" => vec![],
        // What heads are made of, and what is beside rows: the crate `kindred` runs them.
        "head" | "words" | "biases" | "attributes" | "labelled_texts" | "import_head" => vec![],
        // Encoders' files: the crate `encoders` runs them.
        "fasttext" => vec![],
        other => panic!("{other}: which format is that?"),
    }
}

#[test]
fn every_seed_is_refused_or_becomes_a_whole_model() {
    let scratch = Scratch::new();
    let words = scratch.with_words("the\nof\nand\nto\n").words;
    let seeds = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds");
    let (mut models, mut refused) = (0, 0);
    for target in fs::read_dir(&seeds).unwrap() {
        let target = target.unwrap();
        for (format, has_words) in of_target(target.file_name().to_str().unwrap()) {
            for seed in fs::read_dir(target.path()).unwrap() {
                let bytes = fs::read(seed.unwrap().path()).unwrap();
                let words = words.clone().filter(|_| has_words);
                let own = || PrepareOptions { format, words: words.clone(), ..Default::default() };
                let encoding = |name: &str| Some(name.parse().unwrap());
                let tabs = PrepareOptions { separator: Separator::Tab, ..own() };
                let commas = PrepareOptions { separator: Separator::Comma, ..own() };
                for options in [
                    own(),
                    PrepareOptions { limit: NonZeroUsize::new(2), ..tabs },
                    PrepareOptions { encoding: encoding("shift_jis"), ..commas },
                    PrepareOptions { encoding: encoding("utf-16le"), ..own() },
                ] {
                    let input = Input::Bytes { name: "seed", bytes: &bytes };
                    match prepare_in_memory(input, &options) {
                        Ok(files) => {
                            let model = ModelStore::from_memory("seed", &files).unwrap();
                            model.verify(|_| ()).unwrap();
                            models += 1;
                        }
                        Err(_) => refused += 1,
                    }
                }
            }
        }
    }
    assert!(models >= 15 && refused >= 3, "{models} became models, {refused} were refused");
}
