//! Valid files of every format, with every compression.

use std::io::Write;
use std::process::{Command, Stdio};

use contract::Row;
use model_store::ModelStore;
use model_store::prepare::{PrepareOptions, VectorsFormat};

use super::files::{
    examples, glove, glove_with_norms, npy, safetensors, to_bf16, to_f16, with_norms,
};
use super::support::{Packing, ROWS, Scratch, components, words_text, zip};

/// Checks a model of the example rows, with components rounded to `number`'s precision.
fn check(model: &ModelStore, number: &str, what: &str) {
    assert_eq!((model.rows(), model.dim()), (4, 3), "{what}");
    for (row, (word, components)) in ROWS.iter().enumerate() {
        let row = Row(row as u32);
        assert_eq!(model.words().word(row), *word, "{what}");
        let expected = components.map(|x| match number {
            _ if number.contains("bfloat16") => to_bf16(x).1,
            _ if number.contains("float16") => to_f16(x).1,
            _ => x,
        });
        let bits = |row: &[f32]| row.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
        assert_eq!(bits(model.table().row(row)), bits(&expected), "{what}: {word}");
    }
}

#[test]
fn every_format_in_every_packing_is_known_by_its_content() {
    for example in examples() {
        for packing in Packing::ALL {
            let what = format!("{}, {packing:?}", example.name);
            let scratch = Scratch::new();
            let mut options = PrepareOptions::default();
            if example.has_words {
                options = scratch.with_words(packing.pack(words_text().as_bytes()));
            }
            options.format = example.format;
            // These bytes do not identify their format. If they are compressed, even their number
            // is unknown.
            let nameless = example.name == "norms and components";
            if nameless && packing != Packing::Plain {
                let said = scratch.refused(packing.pack(&example.content), &options);
                assert!(said.contains("--dim"), "{said}");
                options.dim = std::num::NonZeroUsize::new(3);
            }
            let summary = scratch.prepare(packing.pack(&example.content), &options);
            let summary = summary.unwrap_or_else(|e| panic!("{what}: {e}"));
            let model = scratch.open();
            check(&model, example.described, &what);
            assert_eq!((summary.rows, summary.provenance.bad_rows_skipped), (4, 0), "{what}");
            let mut expected = example.described.to_owned();
            if example.has_words {
                expected += " with words in words.any";
            }
            if packing != Packing::Plain {
                expected += &format!(", {}", format!("{packing:?}").to_lowercase());
            }
            assert_eq!(model.header().provenance.source_format, expected, "{what}");
            let packed = packing.pack(&example.content);
            assert_eq!(summary.provenance.source_bytes, packed.len() as u64, "{what}");
            let checksum = format!("blake3:{}", blake3::hash(&packed).to_hex());
            // An archive contains the time, so its bytes may differ each time.
            if packing != Packing::Zip {
                assert_eq!(
                    model.header().provenance.source_checksum.to_string(),
                    checksum,
                    "{what}"
                );
            }
        }
    }
}

#[test]
fn the_format_can_be_said() {
    for (format, content, has_words) in [
        (VectorsFormat::Glove, glove(" ", "\n").into_bytes(), false),
        (VectorsFormat::GloveNorm, glove_with_norms().into(), false),
        (VectorsFormat::GloveNorm, with_norms(), true),
        (VectorsFormat::Word2vec, format!("4 3\n{}", glove(" ", "\n")).into(), false),
        (VectorsFormat::Npy, npy("<f4", "False", "(4, 3)", &components()), true),
        (VectorsFormat::Safetensors, safetensors("F32", &components()), true),
    ] {
        let scratch = Scratch::new();
        let options = if has_words { scratch.with_words(words_text()) } else { Default::default() };
        scratch.prepare(content, &PrepareOptions { format: Some(format), ..options }).unwrap();
        check(&scratch.open(), "float32", &format!("{format:?}"));
    }
}

#[test]
fn one_of_several_members_and_tensors_can_be_chosen() {
    let (first, second) = (b"a 1 2\n", glove(" ", "\n"));
    let archive = zip(&[
        ("small.txt", first),
        ("__MACOSX/._large.txt", b"x"),
        ("large.txt", second.as_bytes()),
    ]);
    let scratch = Scratch::new();
    let said = scratch.refused(&archive, &PrepareOptions::default());
    assert!(said.contains("--member") && said.contains("`small.txt`, `large.txt`"), "{said}");
    let member = |name: &str| PrepareOptions { member: Some(name.into()), ..Default::default() };
    let said = scratch.refused(&archive, &member("huge.txt"));
    assert!(said.contains("no member `huge.txt`"), "{said}");
    scratch.prepare(&archive, &member("large.txt")).unwrap();
    check(&scratch.open(), "float32", "large.txt");

    let file = safetensors("F32", &components());
    let scratch = Scratch::new();
    let options = scratch.with_words(words_text());
    let tensor = |name: &str| PrepareOptions { tensor: Some(name.into()), ..options.clone() };
    let said = scratch.refused(&file, &tensor("bias"));
    assert!(
        said.contains("no two-dimensional tensor `bias`") && said.contains("`table` [4, 3]"),
        "{said}"
    );
    scratch.prepare(&file, &tensor("table")).unwrap();
    check(&scratch.open(), "float32", "table");
}

#[test]
fn a_model_folder_s_own_file_is_a_vectors_file_too() {
    let scratch = Scratch::new();
    scratch.prepare(glove(" ", "\n"), &PrepareOptions::default()).unwrap();
    let again = Scratch::new();
    let vectors = std::fs::read(scratch.out().join("vectors.safetensors")).unwrap();
    let words = std::fs::read(scratch.out().join("words.txt")).unwrap();
    again.prepare(vectors, &again.with_words(words)).unwrap();
    assert_eq!(again.open().header().checksums, scratch.open().header().checksums);
}

#[test]
fn chunks_of_many_rows_stay_in_order() {
    // Several chunks of each: words and numbers must not get out of step.
    const ROWS: u32 = 300_000;
    let word = |row: u32| format!("w{row}{}", "x".repeat(row as usize % 7));
    let row = |row: u32| [row as f32, 0.5 - row as f32, 1.0 / (1.0 + row as f32), 7.0];
    let words: String = (0..ROWS).map(|row| word(row) + "\n").collect();
    let numbers: Vec<u8> = (0..ROWS).flat_map(row).flat_map(f32::to_le_bytes).collect();
    let mut binary = format!("{ROWS} 4\n").into_bytes();
    for (i, numbers) in numbers.chunks(16).enumerate() {
        binary.extend(word(i as u32).bytes().chain([b' ']));
        binary.extend(numbers);
        binary.extend((i % 2 == 0).then_some(b'\n'));
    }
    let array = npy("<f4", "False", &format!("({ROWS}, 4)"), &numbers);
    for (content, with_words) in [(binary, false), (array, true)] {
        let scratch = Scratch::new();
        let options = if with_words { scratch.with_words(&words) } else { Default::default() };
        scratch.prepare(content, &options).unwrap();
        let model = scratch.open();
        assert_eq!(model.rows(), ROWS as usize);
        for i in 0..ROWS {
            assert_eq!(model.words().word(Row(i)), word(i));
            assert_eq!(model.table().row(Row(i)), row(i));
        }
    }
}

#[cfg(unix)]
#[test]
fn a_named_pipe_is_read_once_from_its_start() {
    let scratch = Scratch::new();
    let pipe = scratch.path("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    for packing in [Packing::Plain, Packing::Xz, Packing::Zip] {
        let content = packing.pack(glove(" ", "\n").as_bytes());
        let mut writer = Command::new("sh");
        let mut writer =
            writer.args(["-c", "cat > \"$0\""]).arg(&pipe).stdin(Stdio::piped()).spawn().unwrap();
        let mut input = writer.stdin.take().unwrap();
        let feeding = std::thread::spawn(move || drop(input.write_all(&content)));
        let result = model_store::prepare::prepare_folder(
            model_store::prepare::Input::File(&pipe),
            &scratch.out(),
            &PrepareOptions { replace: true, ..Default::default() },
            &mut |_| std::ops::ControlFlow::Continue(()),
        );
        feeding.join().unwrap();
        writer.wait().unwrap();
        if packing == Packing::Zip {
            let said = result.unwrap_err().to_string();
            assert!(said.contains("save it to a file first"), "{said}");
        } else {
            result.unwrap();
            check(&scratch.open(), "float32", "pipe");
        }
    }
}
