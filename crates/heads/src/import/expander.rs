//! Expanders that PyTorch trained: the state dict of a SPLADE head, such as `kindred.torch`'s.

use std::collections::HashSet;

use contract::Row;
use model_store::ModelStore;
use model_store::head::{ExpanderDescription, ExpanderWeights, Tokens};

use super::embedding::Vocabulary;
use super::tensors::{StateDict, Tensor};
use super::{ImportError, origin};

/// The names of the terms' vectors and biases; the last is that of a head saved by itself.
const TERMS: [&str; 5] = ["head", "terms", "decoder", "splade", ""];
/// The names of the layer that turns the tokens' vectors.
const PROJECTIONS: [&str; 4] = ["projection", "turn", "dense", "linear"];

/// Options for making an expander of a state dict.
#[derive(Debug, Clone, PartialEq)]
pub struct ExpanderImportOptions {
    /// The name of the file, for errors and for the head's description.
    pub file: String,
    /// The splitting of texts into tokens.
    pub tokens: Tokens,
    /// Whether weights are `log(1 + value)`, as in SPLADE.
    pub log1p: bool,
    /// Names that Kindred knows, and the file's: `head`, `splade.output`.
    pub map: Vec<(String, String)>,
    /// Tensors of the file that terms do not depend on.
    pub ignore: Vec<String>,
}

/// The content of a state dict.
#[derive(Debug, Clone)]
pub struct ImportedExpander {
    /// The head's description.
    pub description: ExpanderDescription,
    /// Its weights.
    pub weights: ExpanderWeights,
    /// The number of terms.
    pub terms: usize,
}

/// Makes an expander of a PyTorch state dict in safetensors: the terms' vectors `[terms, dim]` and
/// biases `[terms]`, named `head` (or `weight` and `bias`), and perhaps a `projection`
/// `[dim, dim]`, the matrix of an `nn.Linear` without biases that tokens' vectors are multiplied
/// by. Without vectors, the terms have those of the model. Each line of `vocabulary` is the word
/// of a term; without it, the terms are the first rows of the model.
///
/// # Errors
/// If the bytes are no safetensors, a tensor does not fit or there is one more, or a term is no
/// word of the model. Each error names the cure.
pub fn import_expander(
    model: &ModelStore,
    state: &[u8],
    vocabulary: Option<&str>,
    options: &ExpanderImportOptions,
) -> Result<ImportedExpander, ImportError> {
    let (file, dim) = (&options.file[..], model.dim());
    let vocabulary = vocabulary.map(Vocabulary::parse).transpose()?;
    let mut dict = StateDict::with_names(file, state, &options.ignore, &options.map)?;
    let vectors = take(&mut dict, &TERMS, "weight", |tensor| match *tensor.shape() {
        [terms, found] if found == dim && terms > 0 => Ok((tensor.floats()?, terms)),
        _ => Err(tensor.misfit(format!(
            "the terms' vectors have the shape [terms, {dim}], as many components as the model \
             {}; if the head was trained over other vectors, name their model with --model, or \
             prepare the terms as a model (docs/expand.md)",
            model.name()
        ))),
    })?;
    let biases = take(&mut dict, &TERMS, "bias", |tensor| match *tensor.shape() {
        [terms] if terms > 0 => Ok((tensor.floats()?, terms)),
        _ => Err(tensor.misfit("the terms' biases have the shape [terms]")),
    })?;
    let projection = take(&mut dict, &PROJECTIONS, "weight", |tensor| match *tensor.shape() {
        [out, from] if out == dim && from == dim => tensor.floats(),
        _ => Err(tensor.misfit(format!("the projection has the shape [{dim}, {dim}]"))),
    })?;
    let terms = match (&vectors, &biases) {
        (Some((_, terms)), Some((_, others))) if terms != others => {
            return Err(ImportError(format!(
                "{file}: there are {terms} vectors of terms and {others} biases; a term has one of \
                 each"
            )));
        }
        (Some((_, terms)), _) | (None, Some((_, terms))) => *terms,
        (None, None) => {
            let expected = "`head.weight` [terms, dim] or `head.bias` [terms] (as in --map \
                            head=splade.output)";
            return Err(dict.missing(expected));
        }
    };
    dict.check_all_are_used()?;
    let words = vocabulary.as_ref().map(|vocabulary| &vocabulary.words[..]);
    let weights = ExpanderWeights {
        rows: None,
        vectors: vectors.map(|(vectors, _)| vectors),
        biases: biases.map(|(biases, _)| biases),
        projection,
    };
    let weights = expander_weights(model, words, terms, weights)?;
    let description = ExpanderDescription {
        log1p: options.log1p,
        training: origin(file, state),
        ..ExpanderDescription::of_model(model, options.tokens.clone())
    };
    Ok(ImportedExpander { description, weights, terms })
}

/// The weights of an expander whose terms are these words of the model, or without words its first
/// rows: `vectors` `[terms, dim]` and `biases` `[terms]`, in the words' order.
///
/// # Errors
/// If a term is no word of the model, or is there twice, or there are too few or too many words or
/// numbers.
pub fn expander_weights(
    model: &ModelStore,
    words: Option<&[&str]>,
    terms: usize,
    weights: ExpanderWeights,
) -> Result<ExpanderWeights, ImportError> {
    let mut seen = HashSet::new();
    if let Some(word) = words.into_iter().flatten().find(|word| !seen.insert(**word)) {
        return Err(ImportError(format!(
            "the term {word:?} is there twice; each term needs a word of its own"
        )));
    }
    let dim = model.dim();
    for (name, found, needed) in [
        ("weight", weights.vectors.as_ref(), terms * dim),
        ("bias", weights.biases.as_ref(), terms),
    ] {
        if let Some(found) = found.filter(|found| found.len() != needed) {
            return Err(ImportError(format!(
                "the {name} has {} numbers, but {terms} terms of {dim} components need {needed}",
                found.len()
            )));
        }
    }
    let (rows, order) = rows_of(model, words, terms)?;
    // In the order of the rows.
    let reordered = |of: Vec<f32>| -> Vec<f32> {
        let width = of.len() / order.len();
        order.iter().flat_map(|&term| &of[term * width..][..width]).copied().collect()
    };
    let ExpanderWeights { vectors, biases, projection, .. } = weights;
    let (vectors, biases) = (vectors.map(reordered), biases.map(reordered));
    Ok(ExpanderWeights { rows, vectors, biases, projection })
}

/// Takes the first tensor of this kind under one of the names.
fn take<T>(
    dict: &mut StateDict<'_>,
    names: &[&str],
    kind: &str,
    read: impl FnOnce(&Tensor<'_>) -> Result<T, ImportError>,
) -> Result<Option<T>, ImportError> {
    let whole = |name: &&str| match name.is_empty() {
        true => kind.to_owned(),
        false => format!("{name}.{kind}"),
    };
    let found = names.iter().map(whole).find(|name| dict.has(name));
    found.and_then(|name| dict.take(&name)).map(read).transpose()
}

/// The rows of the terms, ascending, unless they are all of the model's; and the place of each
/// term among the words.
fn rows_of(
    model: &ModelStore,
    words: Option<&[&str]>,
    terms: usize,
) -> Result<(Option<Vec<Row>>, Vec<usize>), ImportError> {
    let wrong = |what: String| Err(ImportError(what));
    let mut rows: Vec<Row> = match words {
        None if terms > model.rows() => {
            return wrong(format!(
                "there are {terms} terms, and the model {} has {} rows; give the words of the \
                 terms (--vocabulary FILE, or terms= in Python)",
                model.name(),
                model.rows()
            ));
        }
        None => (0..terms as u32).map(Row).collect(),
        Some(words) if words.len() != terms => {
            return wrong(format!(
                "there are {} words and {terms} terms; word n must be that of term n",
                words.len()
            ));
        }
        Some(words) => {
            let unknown: Vec<&str> =
                words.iter().copied().filter(|word| model.words().row(word).is_none()).collect();
            if let [first, ..] = unknown[..] {
                return wrong(format!(
                    "the model {} lacks {} of the terms, such as {first:?}; to keep them, prepare \
                     the terms as a model of their own (docs/expand.md)",
                    model.name(),
                    unknown.len()
                ));
            }
            words.iter().filter_map(|word| model.words().row(word)).collect()
        }
    };
    let mut order: Vec<usize> = (0..terms).collect();
    order.sort_unstable_by_key(|&term| rows[term]);
    rows.sort_unstable();
    let are_all = terms == model.rows();
    Ok(((!are_all).then_some(rows), order))
}

impl ImportedExpander {
    /// The tensors that were found, in a line.
    pub fn summary(&self) -> String {
        let Self { weights: ExpanderWeights { vectors, biases, projection, .. }, terms, .. } = self;
        let has = |there, what, otherwise| if there { what } else { otherwise };
        format!(
            "an expander of {terms} terms, {}, {}, {}",
            has(vectors.is_some(), "with vectors of their own", "with the model's vectors"),
            has(biases.is_some(), "with biases", "without biases"),
            has(projection.is_some(), "with a projection", "without a projection"),
        )
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use model_store::head::{Cut, Expander, Tokeniser};
    use safetensors::Dtype;
    use safetensors::tensor::TensorView;

    use super::*;

    fn model() -> Arc<ModelStore> {
        let rows = [("a", [1.0, 0.0]), ("b", [0.0, 1.0]), ("c", [1.0, 1.0])];
        let rows = rows.iter().map(|(word, row)| (*word, &row[..]));
        Arc::new(ModelStore::from_rows("m", 2, rows).unwrap())
    }

    fn options() -> ExpanderImportOptions {
        let (tokeniser, cut) = (Tokeniser::Unicode, Cut::End);
        let tokens = Tokens { tokeniser, lower_case: true, limit: 8, cut };
        let file = "s.safetensors".to_owned();
        ExpanderImportOptions { file, tokens, log1p: false, map: vec![], ignore: vec![] }
    }

    /// Name, shape and numbers.
    type Tensor<'a> = (&'a str, &'a [usize], &'a [f32]);

    fn file(tensors: &[Tensor<'_>]) -> Vec<u8> {
        let bytes: Vec<Vec<u8>> = tensors
            .iter()
            .map(|(.., values)| values.iter().flat_map(|value| value.to_le_bytes()).collect())
            .collect();
        let views = tensors.iter().zip(&bytes).map(|((name, shape, _), bytes)| {
            (*name, TensorView::new(Dtype::F32, shape.to_vec(), bytes).unwrap())
        });
        safetensors::serialize(views, None).unwrap()
    }

    fn refused(
        tensors: &[Tensor<'_>],
        words: Option<&str>,
        options: &ExpanderImportOptions,
    ) -> String {
        import_expander(&model(), &file(tensors), words, options).unwrap_err().to_string()
    }

    #[test]
    fn terms_are_the_first_rows_or_the_words_of_the_vocabulary() {
        let vectors = [0.0, 2.0, 3.0, 0.0];
        let state = file(&[("head.weight", &[2, 2], &vectors), ("head.bias", &[2], &[-1.0, -2.0])]);
        let model = model();
        for (words, rows, first) in [(None, [0, 1], -1.0), (Some("c\na\n"), [0, 2], -2.0)] {
            let made = import_expander(&model, &state, words, &options()).unwrap();
            assert_eq!(made.weights.rows.as_ref().unwrap(), &rows.map(Row));
            assert_eq!(made.weights.biases.as_ref().unwrap()[0], first);
            let expander = Expander::from_memory(made.description, made.weights, &model).unwrap();
            assert_eq!(
                (expander.len(), expander.term(Row(1))),
                (2, ["b", "c"][words.iter().len()])
            );
        }
    }

    #[test]
    fn a_head_by_itself_and_one_of_all_rows_without_vectors() {
        let identity = [1.0, 0.0, 0.0, 1.0];
        let all: [Tensor<'_>; 2] =
            [("bias", &[3], &[-0.5; 3]), ("turn.weight", &[2, 2], &identity)];
        let made = import_expander(&model(), &file(&all), None, &options()).unwrap();
        assert_eq!((made.terms, made.weights.rows, made.weights.vectors), (3, None, None));
        assert_eq!(made.weights.projection.unwrap(), identity);
        let options = ExpanderImportOptions {
            map: vec![("head".to_owned(), "out".to_owned())],
            ignore: vec!["step".to_owned()],
            ..options()
        };
        let other: [Tensor<'_>; 2] = [("out.weight", &[1, 2], &[1.0, 2.0]), ("step", &[1], &[9.0])];
        assert_eq!(import_expander(&model(), &file(&other), None, &options).unwrap().terms, 1);
    }

    #[test]
    fn what_does_not_fit_is_refused_with_the_cure() {
        let (five, four) = (&[0.0; 5][..], &[0.0; 4][..]);
        let all: [(&[Tensor<'_>], Option<&str>, &str); 9] = [
            (&[], None, "has no tensor `head.weight`"),
            (&[("head.weight", &[1, 5], five)], None, "[terms, 2], as many components"),
            (&[("head.weight", &[0, 2], &[])], None, "[terms, 2]"),
            (&[("head.bias", &[5, 1], five)], None, "have the shape [terms]"),
            (&[("bias", &[5], five)], None, "give the words of the terms (--vocabulary"),
            (&[("bias", &[5], five)], Some("a\nb"), "there are 2 words and 5 terms"),
            (&[("weight", &[2, 2], four)], Some("a\nx"), "lacks 1 of the terms, such as \"x\""),
            (&[("bias", &[2], &[0.0; 2]), ("turn.weight", &[1, 4], four)], None, "[2, 2]"),
            (&[("bias", &[2], &[0.0; 2]), ("turn.bias", &[2], &[0.0; 2])], None, "no place for"),
        ];
        for (tensors, words, expected) in all {
            let error = refused(tensors, words, &options());
            assert!(error.contains(expected), "{error}");
        }
        let two = [("weight", &[2, 2][..], four), ("bias", &[3][..], &[0.0; 3][..])];
        assert!(refused(&two, None, &options()).contains("2 vectors of terms and 3 biases"));
        let nan = [("bias", &[1][..], &[f32::NAN][..])];
        assert!(refused(&nan, None, &options()).contains("not a finite float32"));
    }
}
