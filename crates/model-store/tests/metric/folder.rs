//! The folder of a model under the dot product.

use std::collections::HashSet;
use std::fs;
use std::io::Cursor;

use contract::{Metric, Row};
use model_store::format::{DATA_START, INDEX_FILE, Provenance, VECTORS_FILE, WORDS_FILE};
use model_store::prepare::{ModelFiles, ModelWriter};
use model_store::{ModelError, ModelStore};
use proptest::prelude::*;
use safetensors::SafeTensors;
use tempfile::TempDir;

/// As `ModelStore::from_rows_under_dot`, as files.
fn files(rows: &[(&str, &[f32])], metric: Metric, biases: Option<&[f32]>) -> ModelFiles {
    let dim = rows[0].1.len();
    let mut writer = ModelWriter::new(Cursor::new(Vec::new()), dim, metric).unwrap();
    for (i, (word, row)) in rows.iter().enumerate() {
        writer.add(word, row, biases.map(|biases| biases[i])).unwrap();
    }
    let (vectors, words, index) = writer.finish(Provenance::of_memory("m")).unwrap();
    ModelFiles { vectors: vectors.into_inner(), words, index, attributes: None }
}

fn three(metric: Metric, biases: Option<&[f32]>) -> ModelFiles {
    let rows: [(&str, &[f32]); 3] =
        [("the", &[1.0, 0.0, 0.0]), ("king", &[3.0, 4.0, 0.0]), ("zero", &[0.0, 0.0, 0.0])];
    files(&rows, metric, biases)
}

const BIASES: [f32; 3] = [0.5, -1.5, 1e-20];

fn open_and_verify(files: &ModelFiles) -> Result<ModelStore, ModelError> {
    let model = ModelStore::from_memory("m", files)?;
    model.verify(|_| ())?;
    Ok(model)
}

#[test]
fn the_table_has_the_metric_and_the_biases() {
    let cosine = open_and_verify(&three(Metric::Cosine, None)).unwrap();
    assert_eq!((cosine.metric(), cosine.table().metric()), (Metric::Cosine, Metric::Cosine));
    assert_eq!(cosine.table().biases(), None);
    for biases in [None, Some(&BIASES[..])] {
        let model = open_and_verify(&three(Metric::Dot, biases)).unwrap();
        assert_eq!((model.metric(), model.table().metric()), (Metric::Dot, Metric::Dot));
        assert_eq!(model.table().biases(), biases);
        assert_eq!(model.table().row(Row(1)), cosine.table().row(Row(1)));
        assert_eq!(model.table().norms(), cosine.table().norms());
        let expected = 3.0 + f64::from(model.table().bias(Row(1)));
        assert_eq!(model.table().score(&[1.0, 0.0, 0.0], 1.0, Row(1)), Some(expected));
    }
}

#[test]
fn versions_differ_between_metrics_and_biases() {
    let version =
        |metric, biases| open_and_verify(&three(metric, biases)).unwrap().version().to_owned();
    let versions = [
        version(Metric::Cosine, None),
        version(Metric::Dot, None),
        version(Metric::Dot, Some(&BIASES)),
        version(Metric::Dot, Some(&[0.5, -1.5, 2e-20])),
        version(Metric::Dot, Some(&[0.0, 0.0, 0.0])),
    ];
    assert_eq!(HashSet::from(versions.clone()).len(), versions.len(), "{versions:?}");
    assert_eq!(version(Metric::Dot, Some(&BIASES)), versions[2]);
}

#[test]
fn other_programs_read_the_biases() {
    for biases in [None, Some(&BIASES[..])] {
        let files = three(Metric::Dot, biases);
        let tensors = SafeTensors::deserialize(&files.vectors).unwrap();
        let found = tensors.tensor("biases").ok().map(|tensor| {
            assert_eq!((tensor.shape(), tensor.dtype()), (&[3][..], safetensors::Dtype::F32));
            bytemuck::pod_collect_to_vec::<u8, f32>(tensor.data())
        });
        assert_eq!(found.as_deref(), biases);
        let (_, header) = SafeTensors::read_metadata(&files.vectors).unwrap();
        let texts = header.metadata().as_ref().unwrap();
        assert_eq!((texts["kindred_format"].as_str(), texts["metric"].as_str()), ("2", "dot"));
        assert_eq!(texts.contains_key("checksum_biases"), biases.is_some());
    }
}

#[test]
fn any_changed_bit_is_found() {
    for biases in [None, Some(&BIASES[..])] {
        let good = three(Metric::Dot, biases);
        let text_end = good.vectors.iter().rposition(|&b| b == b'}').unwrap();
        let padding = text_end + 20..DATA_START - 20;
        for at in (0..good.vectors.len()).filter(|at| !padding.contains(at) || at % 1000 == 0) {
            let mut vectors = good.vectors.clone();
            vectors[at] ^= 1 << (at % 8);
            let bad = ModelFiles {
                vectors,
                words: good.words.clone(),
                index: good.index.clone(),
                attributes: None,
            };
            let result = std::panic::catch_unwind(|| open_and_verify(&bad));
            let result = result.unwrap_or_else(|_| panic!("byte {at}: panics"));
            assert!(result.is_err(), "byte {at}: not noticed");
        }
    }
}

/// The error for a header in which a text was changed into another of the same length.
fn forged(files: &ModelFiles, from: &str, to: &str) -> String {
    assert_eq!(from.len(), to.len());
    let header = String::from_utf8(files.vectors[8..DATA_START].to_vec()).unwrap();
    assert_eq!(header.matches(from).count(), 1, "{from}");
    let header = header.replace(from, to);
    let vectors = [&files.vectors[..8], header.as_bytes(), &files.vectors[DATA_START..]];
    let (words, index) = (files.words.clone(), files.index.clone());
    let forged = ModelFiles { vectors: vectors.concat(), words, index, attributes: None };
    ModelStore::from_memory("m", &forged).unwrap_err().to_string()
}

#[test]
fn a_header_with_another_metric_is_refused() {
    let dot = three(Metric::Dot, Some(&BIASES));
    let said = forged(&dot, r#""metric":"dot""#, r#""metric":"l2 ""#);
    assert!(
        said.contains("its metric is not `dot`") && said.contains("prepare it again"),
        "{said}"
    );
    let said = forged(&dot, r#""metric":"dot""#, r#""metrik":"dot""#);
    assert!(said.contains("its metadata has no `metric`"), "{said}");
    // The biases would be left over, and the scores others.
    let said = forged(&dot, r#""kindred_format":"2""#, r#""kindred_format":"1""#);
    assert!(said.contains("vectors.safetensors"), "{said}");
    let said = forged(&dot, "checksum_biases", "checksum_biasez");
    assert!(said.contains("vectors.safetensors"), "{said}");
    let said = forged(&dot, r#""kindred_format":"2""#, r#""kindred_format":"5""#);
    assert!(said.contains("model format 5") && said.contains("reads formats 1 and 2"), "{said}");
    // As the first change of a row does it.
    let said = forged(&dot, r#""kindred_format":"2""#, r#""kindred_format":"4""#);
    assert!(said.contains("were changed") && said.contains("`kindred changes verify`"), "{said}");
    let said = forged(&dot, r#""kindred_format":"2""#, r#""kindred_format":"3""#);
    assert!(said.contains("vectors.safetensors"), "{said}");
    let cosine = three(Metric::Cosine, None);
    let said = forged(&cosine, r#""kindred_format":"1""#, r#""kindred_format":"2""#);
    assert!(said.contains("its metadata has no `metric`"), "{said}");
}

#[test]
fn a_bias_that_is_not_finite_is_found_when_the_folder_is_opened() {
    let scratch = TempDir::new().unwrap();
    for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        let mut files = three(Metric::Dot, Some(&BIASES));
        let at = files.vectors.len() - 8;
        assert_eq!(files.vectors[at..at + 4], BIASES[1].to_le_bytes(), "the biases are last");
        files.vectors[at..at + 4].copy_from_slice(&bad.to_le_bytes());
        for (name, content) in
            [(VECTORS_FILE, &files.vectors), (WORDS_FILE, &files.words), (INDEX_FILE, &files.index)]
        {
            fs::write(scratch.path().join(name), content).unwrap();
        }
        let said = ModelStore::open(scratch.path()).unwrap_err().to_string();
        assert!(said.contains("the bias of row 1 is not finite"), "{said}");
    }
}

#[test]
fn a_truncated_folder_is_refused() {
    let good = three(Metric::Dot, Some(&BIASES));
    for cut in [1, 4, 12] {
        let vectors = good.vectors[..good.vectors.len() - cut].to_vec();
        let bad = ModelFiles {
            vectors,
            words: good.words.clone(),
            index: good.index.clone(),
            attributes: None,
        };
        let said = ModelStore::from_memory("m", &bad).unwrap_err().to_string();
        assert!(said.contains("vectors.safetensors"), "{said}");
    }
}

#[test]
fn a_repeated_word_drops_its_bias_too() {
    let rows: [(&str, &[f32]); 3] = [("a", &[1.0]), ("a", &[2.0]), ("b", &[3.0])];
    let model = ModelStore::from_rows_under_dot("m", 1, rows, Some(&[10.0, 20.0, 30.0])).unwrap();
    assert_eq!(model.table().biases(), Some(&[10.0, 30.0][..]));
    model.verify(|_| ()).unwrap();
}

#[test]
#[should_panic(expected = "one bias for each row")]
fn too_few_biases_in_memory_are_a_bug() {
    let rows: [(&str, &[f32]); 2] = [("a", &[1.0]), ("b", &[2.0])];
    let _ = ModelStore::from_rows_under_dot("m", 1, rows, Some(&[1.0]));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn any_finite_biases_come_back(
        bits in prop::collection::vec(any::<u32>(), 1..40),
        dim in 1usize..5,
        has_biases: bool,
    ) {
        let biases: Vec<f32> =
            bits.into_iter().map(f32::from_bits).map(|x| if x.is_finite() { x } else { 0.25 }).collect();
        let components: Vec<f32> = (0..biases.len() * dim).map(|i| i as f32).collect();
        let words: Vec<String> = (0..biases.len()).map(|row| format!("w{row}")).collect();
        let rows = || words.iter().map(String::as_str).zip(components.chunks(dim));
        let biases = has_biases.then_some(&biases[..]);
        let model = ModelStore::from_rows_under_dot("m", dim, rows(), biases).unwrap();
        model.verify(|_| ()).unwrap();
        let bits = |biases: &[f32]| biases.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
        prop_assert_eq!(model.table().biases().map(bits), biases.map(bits));
        // Everything else is as under the cosine.
        let cosine = ModelStore::from_rows("m", dim, rows()).unwrap();
        prop_assert_eq!(model.table().components(), cosine.table().components());
        prop_assert_eq!(model.table().norms(), cosine.table().norms());
        prop_assert_eq!(model.header().checksums.index, cosine.header().checksums.index);
    }
}
