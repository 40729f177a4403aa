//! Heads that PyTorch made: a state dict in safetensors becomes a head.
//!
//! - `tensors`: the file's tensors, by name, and their numbers;
//! - `embedding`: vectors of words;
//! - `expander`: expanders;
//! - here: which tensor is which part of a classifier.

mod embedding;
mod expander;
mod tensors;

use std::str::FromStr;

use contract::classifier::{Classifier, Convolution, Layer};
use model_store::ModelStore;
use model_store::format::Checksum;
use model_store::head::{
    Description, HEAD_VERSION, HeadKind, MadeFor, Parts, Probabilities, Tokens,
};
use serde_json::json;

use embedding::{OwnVectors, Vocabulary, own_vectors};
pub use expander::{ExpanderImportOptions, ImportedExpander, expander_weights, import_expander};
use tensors::{StateDict, Tensor};

/// The names of convolutions, each perhaps with a number: `convs.0`, `conv1`.
const CONVOLUTIONS: [&str; 4] = ["convs", "convs1", "conv", "convolutions"];
/// The names of dense layers in their order, each perhaps with a number: `fc`, `fc1`, `out`.
const LAYERS: [&str; 7] = ["fc", "fcs", "linear", "dense", "classifier", "out", "output"];
/// The names of embeddings.
const EMBEDDINGS: [&str; 6] =
    ["embedding", "embed", "embeddings", "emb", "word_embedding", "word_embeddings"];

/// How a state dict becomes a head.
#[derive(Debug, Clone, PartialEq)]
pub struct ImportOptions {
    /// The name of the file, for errors and for the head's description.
    pub file: String,
    /// The classes, in the order of the last layer's outputs.
    pub labels: Vec<String>,
    /// How texts become tokens. If the vocabulary has words with capitals, texts are not looked up
    /// in lower case.
    pub tokens: Tokens,
    /// How class scores become probabilities.
    pub probabilities: Probabilities,
    /// The padding of the convolutions, which a state dict does not have.
    pub padding: Padding,
    /// Names that Kindred knows, and what the file has instead: `convs.0`, `encoder.conv_a`.
    pub map: Vec<(String, String)>,
    /// Tensors of the file that have no part in class scores.
    pub ignore: Vec<String>,
}

/// Zero vectors at each end of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Padding {
    /// Half the width, rounded down, so that each token has a position; only for odd widths.
    Same,
    /// One fewer than the filters are wide.
    Full,
    /// This number for each convolution.
    All(usize),
    /// A number for each convolution, in their order.
    Each(Vec<usize>),
}

impl FromStr for Padding {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let numbers = || text.split(',').map(str::parse).collect::<Result<Vec<usize>, _>>();
        match text {
            "none" => Ok(Self::All(0)),
            "same" => Ok(Self::Same),
            "full" => Ok(Self::Full),
            _ => match numbers().as_deref() {
                Ok([all]) => Ok(Self::All(*all)),
                Ok(each) => Ok(Self::Each(each.to_vec())),
                Err(_) => {
                    Err("it must be none, same, full, a number, or numbers separated by commas")
                }
            },
        }
    }
}

/// Why no head was made. The message names the tensor or the option, and the cure.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ImportError(String);

/// What was made of a state dict.
#[derive(Debug, Clone)]
pub struct Imported {
    /// The head.
    pub parts: Parts,
    /// The convolutions, by their names in the file without `.weight`.
    pub convolutions: Vec<String>,
    /// The dense layers, in the same way.
    pub layers: Vec<String>,
    /// The vocabulary's name for padding, whose row was left out.
    pub padding: Option<String>,
}

/// Makes a head of a PyTorch state dict in safetensors: convolutions `[channels, dim, width]`
/// (`Conv1d`) or `[channels, 1, width, dim]` (`Conv2d`), dense layers `[outputs, inputs]`, and an
/// embedding `[rows, dim]` if there is one. Each line of `vocabulary` is the word of a row of the
/// embedding; without it, the rows are those of the model.
///
/// # Errors
/// If the bytes are no safetensors, a tensor is missing or does not fit, or there is one more. Each
/// error names the cure.
pub fn import_head(
    model: &ModelStore,
    state: &[u8],
    vocabulary: Option<&str>,
    options: &ImportOptions,
) -> Result<Imported, ImportError> {
    let file = &options.file[..];
    check_labels(options)?;
    let vocabulary = vocabulary.map(Vocabulary::parse).transpose()?;
    let mut dict = StateDict::with_names(file, state, &options.ignore, &options.map)?;

    let (of_convolutions, convolutions) = convolutions(&mut dict, model, &options.padding)?;
    let features = convolutions.iter().map(Convolution::channels).sum();
    let (of_layers, layers) = layers(&mut dict, features, &of_convolutions)?;
    let outputs = layers.last().map_or(0, |layer| layer.bias.len());
    if outputs != options.labels.len() {
        return Err(ImportError(format!(
            "there are {} labels, but the last layer, `{}` of {file}, has {outputs} outputs; give one label for each, in \
             their order",
            options.labels.len(),
            of_layers.last().map_or("", |name| name),
        )));
    }
    let own = match embedding(&mut dict) {
        Some(tensor) => own_vectors(tensor, vocabulary.as_ref(), model)?,
        None if vocabulary.is_some() => {
            let expected =
                "`embedding.weight`, whose words the vocabulary has (as in --map embedding=words)";
            return Err(dict.missing(expected));
        }
        None => OwnVectors::default(),
    };
    dict.check_all_are_used()?;
    let classifier = Classifier::new(model.dim(), convolutions, layers).map_err(|error| {
        ImportError(format!(
            "{file}: {error}; a head has convolutions, their maxima, and dense layers"
        ))
    })?;

    let lower_case =
        options.tokens.lower_case && vocabulary.is_none_or(|words| words.is_lower_case());
    let OwnVectors { tuned, words, added, unknown, padding } = own;
    let description = Description {
        kind: HeadKind::Classifier,
        version: HEAD_VERSION,
        model: MadeFor::of(model),
        tokens: Tokens { lower_case, ..options.tokens.clone() },
        labels: options.labels.clone(),
        probabilities: options.probabilities,
        temperature: 1.0,
        convolutions: Vec::new(),
        layers: Vec::new(),
        words,
        other_words: 1.0,
        weights: String::new(),
        training: origin(file, state),
        checksum: None,
    };
    let parts = Parts { description, classifier, tuned, added, unknown };
    Ok(Imported { parts, convolutions: of_convolutions, layers: of_layers, padding })
}

/// Where the head is from.
fn origin(file: &str, state: &[u8]) -> serde_json::Map<String, serde_json::Value> {
    let origin = json!({
        "made_by": concat!("kindred ", env!("CARGO_PKG_VERSION")),
        "imported_from": file,
        "checksum": Checksum::of(state).to_string(),
    });
    let serde_json::Value::Object(origin) = origin else { unreachable!("an object") };
    origin
}

fn check_labels(options: &ImportOptions) -> Result<(), ImportError> {
    let labels = &options.labels;
    let wrong = |what: String| Err(ImportError(what));
    if labels.iter().any(String::is_empty) {
        return wrong("a label is empty; give each class a name".to_owned());
    }
    let mut sorted: Vec<&String> = labels.iter().collect();
    sorted.sort_unstable();
    if let Some(two) = sorted.windows(2).find(|two| two[0] == two[1]) {
        return wrong(format!(
            "the label {:?} is given twice; give each class a name of its own",
            two[0]
        ));
    }
    if labels.len() == 1 && options.probabilities == Probabilities::Softmax {
        return wrong(
            "the probability of a single label would always be 1; if the model was trained with \
             BCEWithLogitsLoss, add --sigmoid"
                .to_owned(),
        );
    }
    Ok(())
}

/// A tensor's name without `.weight`.
fn layer_name(tensor: &Tensor<'_>) -> String {
    tensor.name.strip_suffix(".weight").unwrap_or(&tensor.name).to_owned()
}

/// Takes the convolutions, after their names in the file.
fn convolutions(
    dict: &mut StateDict<'_>,
    model: &ModelStore,
    padding: &Padding,
) -> Result<(Vec<String>, Vec<Convolution>), ImportError> {
    let found = dict.layers(&CONVOLUTIONS);
    if found.is_empty() {
        let expected =
            "`convs.0.weight`, the weights of a convolution (as in --map convs.0=encoder.conv_a)";
        return Err(dict.missing(expected));
    }
    let (mut names, mut convolutions) = (Vec::new(), Vec::new());
    for (index, name) in found.iter().enumerate() {
        let tensor = dict.take(&format!("{name}.weight")).expect("it was found");
        let (width, weights) = filters(tensor, model)?;
        let (shown, channels) = (layer_name(tensor), tensor.shape()[0]);
        let padding = padding.of(index, found.len(), &shown, width)?;
        let bias = dict.bias(name, channels)?;
        convolutions.push(Convolution { width, padding, weights, bias });
        names.push(shown);
    }
    Ok((names, convolutions))
}

/// A tensor without numbers may claim any number of channels, more than there is memory for their
/// biases.
fn check_not_empty(tensor: &Tensor<'_>) -> Result<(), ImportError> {
    match tensor.shape().contains(&0) {
        true => Err(tensor.misfit("none of its dimensions may be 0")),
        false => Ok(()),
    }
}

/// The width of a convolution, and its weights as `[channels, width, dim]`.
fn filters(tensor: &Tensor<'_>, model: &ModelStore) -> Result<(usize, Vec<f32>), ImportError> {
    check_not_empty(tensor)?;
    let dim = model.dim();
    let (channels, width, found, is_conv1d) = match *tensor.shape() {
        [channels, found, width] => (channels, width, found, true),
        [channels, 1, width, found] => (channels, width, found, false),
        _ => {
            return Err(tensor.misfit(format!(
                "a convolution has [channels, {dim}, width] (Conv1d) or [channels, 1, width, {dim}] (Conv2d)"
            )));
        }
    };
    if found != dim {
        return Err(tensor.misfit(format!(
            "it reads vectors of {found} components, but those of the model {} have {dim}; name the model that it was \
             trained with by --model",
            model.name()
        )));
    }
    let weights = tensor.floats()?;
    if !is_conv1d {
        return Ok((width, weights));
    }
    let mut turned = Vec::with_capacity(weights.len());
    for channel in 0..channels {
        for tap in 0..width {
            let of_channel = &weights[channel * dim * width..][..dim * width];
            turned.extend(of_channel.iter().skip(tap).step_by(width));
        }
    }
    Ok((width, turned))
}

impl Padding {
    /// The padding of a convolution.
    fn of(
        &self,
        index: usize,
        count: usize,
        name: &str,
        width: usize,
    ) -> Result<usize, ImportError> {
        let padding = match self {
            Self::Same if width.is_multiple_of(2) => {
                return Err(ImportError(format!(
                    "--padding same: `{name}` is {width} words wide, and PyTorch pads an even width by one more at the \
                     end; a head has the same padding at both ends"
                )));
            }
            Self::Same => width / 2,
            Self::Full => width.saturating_sub(1),
            Self::All(all) => *all,
            Self::Each(each) if each.len() != count => {
                return Err(ImportError(format!(
                    "--padding has {} numbers, but there are {count} convolutions; give one number for each, or one for all",
                    each.len()
                )));
            }
            Self::Each(each) => each[index],
        };
        match padding < width {
            true => Ok(padding),
            false => Err(ImportError(format!(
                "the padding of `{name}` is {padding}, and its filters are {width} words wide; it must be less"
            ))),
        }
    }
}

/// Takes the dense layers, after their names in the file.
fn layers(
    dict: &mut StateDict<'_>,
    features: usize,
    convolutions: &[String],
) -> Result<(Vec<String>, Vec<Layer>), ImportError> {
    let found = dict.layers(&LAYERS);
    if found.is_empty() {
        let expected = "`fc.weight`, the weights of a dense layer (as in --map fc=head.linear)";
        return Err(dict.missing(expected));
    }
    let mut inputs = features;
    let (mut names, mut layers) = (Vec::<String>::new(), Vec::new());
    for name in &found {
        let tensor = dict.take(&format!("{name}.weight")).expect("it was found");
        check_not_empty(tensor)?;
        let outputs = match *tensor.shape() {
            [outputs, found] if found == inputs => outputs,
            _ => {
                let from = match names.last() {
                    None => format!("the convolutions {}", convolutions.join(", ")),
                    Some(before) => format!("`{before}`"),
                };
                return Err(tensor.misfit(format!(
                    "[outputs, {inputs}] is needed after {from}; if the layers have another order, give it with --map \
                     fc1=NAME --map fc2=NAME"
                )));
            }
        };
        let weights = tensor.floats()?;
        names.push(layer_name(tensor));
        let bias = dict.bias(name, outputs)?;
        layers.push(Layer { weights, bias });
        inputs = outputs;
    }
    Ok((names, layers))
}

/// Takes the embedding.
fn embedding<'d, 'a>(dict: &'d mut StateDict<'a>) -> Option<&'d Tensor<'a>> {
    let names = EMBEDDINGS.map(|name| format!("{name}.weight"));
    let name = names.iter().find(|name| dict.has(name))?;
    dict.take(name)
}

#[cfg(test)]
mod tests;
