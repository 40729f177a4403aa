//! State dicts made by hand: names, shapes, types, vocabularies, and what is refused.

use std::sync::Arc;

use model_store::head::{Cut, Head, Tokeniser};
use proptest::prelude::*;
use safetensors::Dtype;

use super::*;
use crate::{TextClassifier, explain, labels};
use contract::{Row, TokenClassifier};

const DIM: usize = 4;

fn model() -> ModelStore {
    let words = ["good", "bad", "not", "film", "the"];
    let row = |n: usize| -> [f32; DIM] { std::array::from_fn(|i| ((n * 7 + i * 3) as f32).sin()) };
    let rows: Vec<_> = words.iter().enumerate().map(|(n, word)| (*word, row(n))).collect();
    ModelStore::from_rows("m", DIM, rows.iter().map(|(word, row)| (*word, &row[..]))).unwrap()
}

fn options() -> ImportOptions {
    ImportOptions {
        file: "state.safetensors".to_owned(),
        labels: ["no", "yes"].map(str::to_owned).to_vec(),
        tokens: Tokens { tokeniser: Tokeniser::Words, lower_case: true, limit: 512, cut: Cut::End },
        probabilities: Probabilities::Softmax,
        padding: Padding::All(0),
        map: Vec::new(),
        ignore: Vec::new(),
    }
}

/// A tensor to be written.
#[derive(Clone)]
struct Written(String, Dtype, Vec<usize>, Vec<u8>);

fn tensor(name: &str, shape: &[usize], values: &[f32]) -> Written {
    let bytes = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    Written(name.to_owned(), Dtype::F32, shape.to_vec(), bytes)
}

/// Numbers that differ, with few digits: float16 and bfloat16 have them too.
fn numbers(count: usize, from: usize) -> Vec<f32> {
    (from..from + count).map(|n| (n * 37 % 101) as f32 / 64.0 - 0.75).collect()
}

fn file(tensors: &[Written]) -> Vec<u8> {
    let views = tensors.iter().map(|Written(name, dtype, shape, bytes)| {
        (name, safetensors::tensor::TensorView::new(*dtype, shape.clone(), bytes).unwrap())
    });
    safetensors::serialize(views, None).unwrap()
}

/// The weights of filters, `[channels, width, DIM]`, as `Conv1d` has them.
fn conv1d(name: &str, channels: usize, width: usize, weights: &[f32]) -> Written {
    let mut turned = Vec::new();
    for channel in 0..channels {
        for component in 0..DIM {
            for tap in 0..width {
                turned.push(weights[(channel * width + tap) * DIM + component]);
            }
        }
    }
    tensor(name, &[channels, DIM, width], &turned)
}

/// Two convolutions and one dense layer.
fn state() -> Vec<Written> {
    vec![
        conv1d("convs.0.weight", 3, 2, &numbers(24, 0)),
        tensor("convs.0.bias", &[3], &numbers(3, 30)),
        conv1d("convs.1.weight", 2, 3, &numbers(24, 40)),
        tensor("convs.1.bias", &[2], &numbers(2, 70)),
        tensor("fc.weight", &[2, 5], &numbers(10, 80)),
        tensor("fc.bias", &[2], &numbers(2, 95)),
    ]
}

fn renamed(state: Vec<Written>, names: &[(&str, &str)]) -> Vec<Written> {
    let rename = |Written(mut name, dtype, shape, bytes): Written| {
        for (from, to) in names {
            name = name.replace(from, to);
        }
        Written(name, dtype, shape, bytes)
    };
    state.into_iter().map(rename).collect()
}

fn imported(state: &[Written], options: &ImportOptions) -> Imported {
    import_head(&model(), &file(state), None, options).unwrap()
}

fn refused(state: &[Written], vocabulary: Option<&str>, options: &ImportOptions) -> String {
    import_head(&model(), &file(state), vocabulary, options).unwrap_err().to_string()
}

#[track_caller]
fn has(error: &str, parts: &[&str]) {
    assert!(parts.iter().all(|part| error.contains(part)), "{error}");
}

#[test]
fn conv1d_and_conv2d_give_the_same_head() {
    let narrow = imported(&state(), &options()).parts;
    let mut kim = state();
    kim[0] = tensor("convs.0.weight", &[3, 1, 2, DIM], &numbers(24, 0));
    kim[2] = tensor("convs.1.weight", &[2, 1, 3, DIM], &numbers(24, 40));
    let kim = imported(&kim, &options()).parts;
    assert_eq!(narrow.classifier, kim.classifier);
    let [first, second] = narrow.classifier.convolutions() else { panic!() };
    assert_eq!((&first.weights, &second.weights), (&numbers(24, 0), &numbers(24, 40)));
    assert_eq!(
        (&first.bias, &narrow.classifier.layers()[0].bias),
        (&numbers(3, 30), &numbers(2, 95))
    );

    // It is a head that can be opened and asked, and it says where it is from.
    let model = model();
    let head = Head::from_memory(&narrow, &model).unwrap();
    let origin = &head.description().training;
    assert_eq!(origin["imported_from"], "state.safetensors");
    assert_eq!(origin["checksum"], Checksum::of(&file(&state())).to_string());
    assert_eq!(head.description().other_words, 1.0);
    let text = "not the good film";
    let tokenised = crate::Vocabulary::of_head(&head, &model).tokenise(text);
    let head = TextClassifier::from(Arc::new(head));
    let why = explain(&model, &head, text, &tokenised, 1, 5);
    assert_eq!(labels(&head, &[why.score, why.score]).unwrap().len(), 2);
}

#[test]
fn layers_are_found_by_many_names_and_by_those_that_are_given() {
    let expected = imported(&state(), &options());
    for names in [
        &[("convs.", "conv.")][..],
        &[("convs.0", "conv1"), ("convs.1", "conv2")],
        &[("convs.0", "convs.9.0"), ("convs.1", "convs.10.0"), ("fc", "classifier")],
        &[("convs.", "convs1."), ("fc", "linear")],
        &[("fc", "fc.3")],
    ] {
        let found = imported(&renamed(state(), names), &options());
        assert_eq!(found.parts.classifier, expected.parts.classifier, "{names:?}");
    }
    let odd = renamed(state(), &[("convs.0", "enc.b"), ("convs.1", "enc.a"), ("fc", "enc.top")]);
    let map = [("convs.0", "enc.b"), ("convs.1", "enc.a"), ("fc", "enc.top")];
    let map = map.map(|(known, name)| (known.to_owned(), name.to_owned())).to_vec();
    let found = imported(&odd, &ImportOptions { map, ..options() });
    assert_eq!(found.parts.classifier, expected.parts.classifier);
    assert_eq!(
        (found.convolutions, found.layers),
        (vec!["enc.b".into(), "enc.a".into()], vec!["enc.top".into()])
    );
    // A whole list at once.
    let inside = renamed(state(), &[("convs", "net.filters")]);
    let map = vec![("convs".to_owned(), "net.filters".to_owned())];
    let found = imported(&inside, &ImportOptions { map, ..options() });
    assert_eq!(found.parts.classifier, expected.parts.classifier);

    // A hidden layer, and layers without biases.
    let mut deep = state();
    deep.truncate(4);
    deep.remove(1);
    deep.push(tensor("fc.weight", &[3, 5], &numbers(15, 0)));
    deep.push(tensor("out.weight", &[2, 3], &numbers(6, 20)));
    let found = imported(&deep, &options()).parts.classifier;
    assert_eq!(
        (&found.layers()[0].bias, &found.convolutions()[0].bias),
        (&vec![0.0; 3], &vec![0.0; 3])
    );
    assert_eq!(found.layers()[1].weights, numbers(6, 20));
}

#[test]
fn all_floating_point_types_are_read() {
    let expected = imported(&state(), &options()).parts.classifier;
    let as_type = |dtype: Dtype, bytes: fn(f32) -> Vec<u8>| -> Vec<Written> {
        let change = |Written(name, _, shape, old): Written| {
            let values =
                old.chunks_exact(4).map(|four| f32::from_le_bytes(four.try_into().unwrap()));
            Written(name, dtype, shape, values.flat_map(bytes).collect())
        };
        state().into_iter().map(change).collect()
    };
    let f64s = as_type(Dtype::F64, |x| f64::from(x).to_le_bytes().to_vec());
    let bf16s = as_type(Dtype::BF16, |x| x.to_le_bytes()[2..].to_vec());
    // All numbers are multiples of 1/64 below 1 or 0: a float16 has them, with other exponent bits.
    let f16s = as_type(Dtype::F16, |x| {
        let bits = x.to_bits();
        let half = match bits << 1 {
            0 => 0,
            _ => ((bits & 0x7fff_ffff) >> 13) as u16 - (112 << 10),
        };
        (half | (bits >> 16) as u16 & 0x8000).to_le_bytes().to_vec()
    });
    for other in [f64s, bf16s, f16s] {
        assert_eq!(imported(&other, &options()).parts.classifier, expected);
    }
    let mut other = state();
    other[0].1 = Dtype::I32;
    has(&refused(&other, None, &options()), &["`convs.0.weight` has the type I32", ".float()"]);
    let mut infinite = state();
    infinite[4] = tensor("fc.weight", &[2, 5], &[f32::NAN; 10]);
    has(&refused(&infinite, None, &options()), &["number 0 of `fc.weight` is not a finite"]);
}

#[test]
fn padding_is_given_by_name_or_number() {
    let padding = |text: &str| -> Result<Vec<usize>, String> {
        let options = ImportOptions { padding: text.parse()?, ..options() };
        let mut odd = state();
        odd.drain(..2);
        odd[2] = tensor("fc.weight", &[2, 2], &numbers(4, 80));
        let state = if text == "same" { odd } else { state() };
        let made =
            import_head(&model(), &file(&state), None, &options).map_err(|e| e.to_string())?;
        Ok(made.parts.classifier.convolutions().iter().map(|one| one.padding).collect())
    };
    for (text, expected) in [
        ("none", vec![0, 0]),
        ("full", vec![1, 2]),
        ("1", vec![1, 1]),
        ("0,2", vec![0, 2]),
        ("same", vec![1]),
    ] {
        assert_eq!(padding(text).unwrap(), expected, "{text}");
    }
    has(&padding("2").unwrap_err(), &["padding of `convs.0` is 2", "2 words wide", "must be less"]);
    has(&padding("1,1,1").unwrap_err(), &["3 numbers", "there are 2 convolutions"]);
    has(&padding("half").unwrap_err(), &["none, same, full, a number"]);
    let same = ImportOptions { padding: Padding::Same, ..options() };
    has(&refused(&state(), None, &same), &["`convs.0` is 2 words wide", "even width"]);
}

#[test]
fn rows_of_an_embedding_become_the_heads_words() {
    let model = model();
    let row = |word: &str| model.table().row(model.words().row(word).unwrap());
    // In another order than the model's: one is the model's own, two are others.
    let own: Vec<f32> =
        [&[0.0; DIM], &[0.5; DIM], row("film"), &[1.0; DIM], &[2.0; DIM], &[3.0; DIM]].concat();
    let mut tuned = state();
    tuned.push(tensor("embedding.weight", &[6, DIM], &own));
    let words = "<pad>\n<unk>\nfilm\nbad\ngreat\ngood\n";
    let made = import_head(&model, &file(&tuned), Some(words), &options()).unwrap();
    assert_eq!(made.padding.as_deref(), Some("<pad>"));
    let Parts { tuned: (rows, vectors), added, unknown, description, .. } = &made.parts;
    assert_eq!(
        (&rows[..], &vectors[..]),
        (&[Row(0), Row(1)][..], &[3., 3., 3., 3., 1., 1., 1., 1.][..])
    );
    assert_eq!((&description.words[..], &added[..]), (&["great".to_owned()][..], &[2.0; DIM][..]));
    assert_eq!(unknown.as_deref(), Some(&[0.5; DIM][..]));
    assert!(description.tokens.lower_case);
    let head = Head::from_memory(&made.parts, &model).unwrap();
    assert_eq!(head.vector(&model.table(), head.of_own_word("great").unwrap())[..], [2.0; DIM]);
    let cased = words.replace("great", "Great");
    let made = import_head(&model, &file(&tuned), Some(&cased), &options()).unwrap();
    assert!(!made.parts.description.tokens.lower_case, "a word with a capital");

    // Without a vocabulary: the rows of the model.
    let mut whole = model.table().components().to_vec();
    whole[2 * DIM] = 9.0;
    let mut of_model = state();
    of_model.push(tensor("embed.weight", &[5, DIM], &whole));
    let made = import_head(&model, &file(&of_model), None, &options()).unwrap();
    assert_eq!((made.parts.tuned.0, made.parts.unknown), (vec![Row(2)], None));

    let error = refused(&tuned, None, &options());
    has(
        &error,
        &["has 6 rows, and the model m has 5", "--vocabulary FILE", "--ignore embedding.weight"],
    );
    let ignored = ImportOptions { ignore: vec!["embedding".to_owned()], ..options() };
    assert!(imported(&tuned, &ignored).parts.tuned.0.is_empty());
    // Empty lines at the end are of no row.
    let [end, ends] = [words.to_owned() + "\n", words.to_owned() + "\r\n\r\n"];
    for vocabulary in [words, &end, &ends] {
        import_head(&model, &file(&tuned), Some(vocabulary), &options()).unwrap();
    }
    for (vocabulary, expected) in [
        ("a\nb\n", "the vocabulary has 2 lines, but `embedding.weight`"),
        ("a\nb\na\nc\nd\ne\n", "\"a\" in lines 1 and 3"),
        ("a\n\nb\nc\nd\ne\n", "line 2 of the vocabulary is empty"),
        ("<unk>\n[UNK]\nb\nc\nd\ne\n", "both stand for unknown words"),
    ] {
        has(&refused(&tuned, Some(vocabulary), &options()), &[expected]);
    }
    has(&refused(&state(), Some("a\n"), &options()), &["no tensor `embedding.weight`", "--map"]);
    tuned[6] = tensor("embedding.weight", &[8, 3], &[0.0; 24]);
    has(
        &refused(&tuned, Some(words), &options()),
        &["have 3 components", "model m have 4", "--model"],
    );
    tuned[6] = tensor("embedding.weight", &[24], &[0.0; 24]);
    has(&refused(&tuned, Some(words), &options()), &["[24]", "[rows, 4]"]);
}

#[test]
fn the_length_of_a_header_may_look_like_the_signature_of_a_pickle() {
    let whole = file(&state());
    let header = 8 + u64::from_le_bytes(whole[..8].try_into().unwrap()) as usize;
    let expected = import_head(&model(), &whole, None, &options()).unwrap().parts.classifier;
    for length in [640_u64, 896, 1152, 1408, 35_615] {
        let mut text = whole[8..header].to_vec();
        assert!(text.len() <= length as usize, "{}", text.len());
        text.resize(length as usize, b' ');
        let bytes = [&length.to_le_bytes()[..], &text, &whole[header..]].concat();
        let made = import_head(&model(), &bytes, None, &options()).unwrap();
        assert!(made.parts.classifier == expected, "{length}");
    }
}

#[test]
fn what_does_not_fit_is_refused_with_the_cure() {
    let with = |index: usize, tensor: Written| {
        let mut state = state();
        state[index] = tensor;
        refused(&state, None, &options())
    };
    has(
        &with(0, tensor("convs.0.weight", &[3, 5, 2], &numbers(30, 0))),
        &[
            "`convs.0.weight` has the shape [3, 5, 2]",
            "5 components",
            "the model m have 4",
            "--model",
        ],
    );
    has(
        &with(0, tensor("convs.0.weight", &[1, 2, 3, DIM], &numbers(24, 0))),
        &["[1, 2, 3, 4]", "[channels, 4, width] (Conv1d)", "[channels, 1, width, 4] (Conv2d)"],
    );
    has(
        &with(1, tensor("convs.0.bias", &[2], &[0.0; 2])),
        &["`convs.0.bias`", "[2]", "[3] is needed"],
    );
    has(
        &with(4, tensor("fc.weight", &[2, 7], &numbers(14, 0))),
        &["`fc.weight` has the shape [2, 7]", "[outputs, 5]", "convs.0, convs.1", "--map fc1=NAME"],
    );
    has(&with(0, conv1d("filters.weight", 3, 2, &numbers(24, 0))), &["[outputs, 2] is needed"]);
    let mut more = state();
    more.push(tensor("norm.running_mean", &[5], &[0.0; 5]));
    has(
        &refused(&more, None, &options()),
        &[
            "no place for `norm.running_mean` [5]",
            "--map convs.0=norm",
            "--ignore norm.running_mean",
        ],
    );
    let ignored = ImportOptions { ignore: vec!["norm".to_owned()], ..options() };
    imported(&more, &ignored);
    has(
        &refused(&state(), None, &ignored),
        &["--ignore norm", "no such tensor", "`fc.weight` [2, 5]"],
    );

    has(
        &refused(&state()[4..], None, &options()),
        &["no tensor `convs.0.weight`", "--map", "`fc.bias` [2]"],
    );
    has(
        &refused(&state()[..4], None, &options()),
        &["no tensor `fc.weight`", "`convs.1.weight` [2, 4, 3]"],
    );
    has(&refused(&[], None, &options()), &["The file has no tensors"]);
    let map = |known: &str, name: &str| {
        let map = vec![(known.to_owned(), name.to_owned())];
        refused(&state(), None, &ImportOptions { map, ..options() })
    };
    has(
        &map("convs.0", "conv_a"),
        &["--map convs.0=conv_a", "has no tensor conv_a", "`fc.bias` [2]"],
    );
    has(&map("convs.0", "convs.1"), &["would both be `convs.0.bias`"]);

    let labels = |labels: &[&str], probabilities| {
        let labels = labels.iter().map(|&label| label.to_owned()).collect();
        refused(&state(), None, &ImportOptions { labels, probabilities, ..options() })
    };
    let softmax = Probabilities::Softmax;
    has(&labels(&["a", "b", "c"], softmax), &["3 labels", "`fc`", "2 outputs"]);
    has(&labels(&["a", "a"], softmax), &["\"a\" is given twice"]);
    has(&labels(&["a", ""], softmax), &["a label is empty"]);
    has(&labels(&["a"], softmax), &["BCEWithLogitsLoss", "--sigmoid"]);
    has(&labels(&["a"], Probabilities::Sigmoid), &["1 labels", "2 outputs"]);

    let unreadable =
        |bytes: &[u8]| import_head(&model(), bytes, None, &options()).unwrap_err().to_string();
    has(&unreadable(b"PK\x03\x04"), &["torch.save", "safetensors.torch.save_file"]);
    has(&unreadable(b"hello"), &["not a safetensors file"]);
    // Files of `torch.save` are named, as are all others.
    let mut torch = b"PK\x03\x04".to_vec();
    torch.resize(26, 0);
    torch.extend(16_u16.to_le_bytes().into_iter().chain([0, 0]));
    torch.extend(b"archive/data.pkl\x80\x02}q\0.");
    has(&unreadable(&torch), &["it is a PyTorch file (torch.save), and not safetensors"]);
    let legacy = b"\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.";
    has(&unreadable(legacy), &["PyTorch file", "safetensors.torch.save_file"]);
    has(&unreadable(b"\x80\x04\x95\0\0"), &["it is a Python pickle, and not safetensors"]);
    has(&unreadable(b"\x89HDF\r\n\x1a\n"), &["it is an HDF5 file", "safetensors.torch"]);
    has(&unreadable(b"\x1f\x8b\x08\0\0\0\0\0\0\x03"), &["compressed with gzip", "gunzip"]);
    has(&unreadable(b"<!DOCTYPE html>\n<title>Not found</title>"), &["web page", "\"Not found\""]);
    has(&unreadable(b"version https://git-lfs.github.com/spec/v1\noid"), &["git lfs pull"]);
    has(&unreadable(b"{\"fc.weight\": [[1.0]]}"), &["it is JSON, and not safetensors; write the"]);
    has(&unreadable(b""), &["it is empty", "safetensors.torch.save_file"]);
    let mut cut = file(&state());
    cut.pop();
    has(&unreadable(&cut), &["not a safetensors file"]);
    for shape in [[0, DIM, 2], [1 << 50, DIM, 0]] {
        let none = [tensor("convs.0.weight", &shape, &[]), tensor("fc.weight", &[2, 0], &[])];
        has(&refused(&none, None, &options()), &["`convs.0.weight`", "dimensions may be 0"]);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]
    #[test]
    fn a_changed_file_is_refused_or_becomes_a_head_that_opens(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        in_header: bool,
        vocabulary in prop::option::of("(<unk>\n|<pad>\n|good\n|[a-cA]\n|\n){0,6}"),
    ) {
        let model = model();
        let mut state = state();
        state.push(tensor("embedding.weight", &[5, DIM], &numbers(20, 7)));
        let mut bytes = file(&state);
        let header = 8 + usize::from(bytes[0]) + 256 * usize::from(bytes[1]);
        for (at, to) in changes {
            let at = at.index(if in_header { header } else { bytes.len() });
            bytes[at] = to;
        }
        if let Ok(made) = import_head(&model, &bytes, vocabulary.as_deref(), &options()) {
            Head::from_memory(&made.parts, &model).unwrap();
        }
    }
}
