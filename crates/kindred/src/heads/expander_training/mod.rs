//! Training of expanders: from queries with relevant texts to a head's description and weights.

mod pairs;

use std::ops::ControlFlow;
use std::sync::Arc;

use contract::Row;
use cpu_core::heads::Diverged;
use cpu_core::heads::expand::train::{
    Data, Example, Failure, Loss, Progress, Settings, StartBias, Terms, Trained, train_with,
};
use gpu_core::GpuError;
use model_store::ModelStore;
use model_store::head::{ExpanderDescription, ExpanderWeights, Tokens};
use rayon::ThreadPool;
use serde_json::json;

use super::Vocabulary;
use crate::device::Device;
pub use pairs::{Pair, Pairs};

/// The part of the data that decides which epoch is the best, if no other data do.
const DEV_PART: usize = 10;

/// Why nothing was trained.
#[derive(Debug, thiserror::Error)]
pub enum ExpanderTrainError {
    /// No pair has known words on both sides.
    #[error(
        "no pair has a query and a text with a word of the model; check the language, or choose another model"
    )]
    NoKnownWords,
    /// The loss needs irrelevant texts.
    #[error(
        "the margin loss needs an irrelevant text in every line, but {without} of {of} have none; add a third column, or use \
         --loss infonce"
    )]
    NoIrrelevant {
        /// Pairs without one.
        without: usize,
        /// All pairs.
        of: usize,
    },
    /// The loss or a weight is not finite any more.
    #[error("{0} or --bias-learning-rate, or the other factors")]
    Diverged(Diverged),
    /// A step would take more memory than anyone means.
    #[error(
        "a step would give {found} terms to its texts; at most {most} are possible: lower \
         --batch, --terms or --vocab"
    )]
    TooLarge {
        /// Terms of all texts of a step.
        found: u128,
        /// The limit.
        most: u128,
    },
    /// The GPU that was asked for can't be used.
    #[error(
        "--device {device}: {source}; use --device cpu, or --device auto to use a GPU only if there is one"
    )]
    Gpu {
        /// The requested device.
        device: Device,
        /// Why it can't be used.
        source: GpuError,
    },
}

/// What training made.
#[derive(Debug)]
pub struct MadeExpander {
    /// The head's description.
    pub description: ExpanderDescription,
    /// Its weights.
    pub weights: ExpanderWeights,
    /// The mean reciprocal rank of relevant texts among the deciding ones.
    pub quality: Option<f64>,
    /// Pairs that were learned from, and deciding ones.
    pub pairs: [usize; 2],
    /// Pairs that were left out, because the model has none of the words of a side.
    pub left_out: usize,
    /// Whether a GPU helped.
    pub on_gpu: bool,
    /// Why it failed, if it did. The CPU then went on alone.
    pub gpu_failure: Option<String>,
}

/// Trains an expander whose terms are the first `terms` words of the model. The device changes nothing but the time.
///
/// # Errors
/// If there is nothing to learn from, a step would be too large, training diverges, or the GPU
/// can't be used.
pub fn train_expander(
    model: &Arc<ModelStore>,
    [train_pairs, dev_pairs]: [&Pairs; 2],
    tokens: Tokens,
    terms: usize,
    settings: &Settings,
    (device, pool): (&Device, &ThreadPool),
    on_progress: &mut dyn FnMut(Progress) -> ControlFlow<()>,
) -> Result<MadeExpander, ExpanderTrainError> {
    model.words().make_table();
    let vocabulary = Vocabulary::of_model(model, &tokens);
    let mut left_out = 0;
    let mut examples = |pairs: &Pairs| -> Vec<Example> {
        let of = |text: &str| -> Option<Vec<u32>> {
            let tokens = vocabulary.tokenise(text).tokens;
            (!tokens.is_empty()).then(|| tokens.into_iter().map(|token| token.0).collect())
        };
        let example = |pair: &Pair| {
            let irrelevant = pair.irrelevant.as_deref().map(of);
            let example = (|| {
                let (query, relevant) = (of(&pair.query)?, of(&pair.relevant)?);
                Some(Example { query, relevant, irrelevant: irrelevant.flatten() })
            })();
            left_out += usize::from(example.is_none());
            example
        };
        pairs.pairs.iter().filter_map(example).collect()
    };
    let mut train_examples = examples(train_pairs);
    let mut dev = examples(dev_pairs);
    if matches!(settings.loss, Loss::Margin { .. }) {
        let all = || train_examples.iter().chain(&dev);
        let without = all().filter(|example| example.irrelevant.is_none()).count();
        if without > 0 {
            return Err(ExpanderTrainError::NoIrrelevant { without, of: all().count() });
        }
    }
    if dev.is_empty() {
        // Every tenth, so that sorted data are split alike.
        let mut numbers = 1..;
        let is_tenth =
            |_: &mut Example| numbers.next().is_some_and(|number| number % DEV_PART == 0);
        dev = train_examples.extract_if(.., is_tenth).collect();
    }
    if train_examples.is_empty() {
        return Err(ExpanderTrainError::NoKnownWords);
    }
    let table = model.table();
    let terms = terms.min(model.rows());
    let data = Data {
        train: &train_examples,
        dev: &dev,
        vectors: table.components(),
        dim: model.dim(),
        terms: Terms::First(terms),
    };
    check_size(&data, terms, settings)?;
    let mut on_gpu = false;
    let accelerate = &mut |vectors: &[f32], biases: &[f32], token_norm: f64| {
        // Training takes one.
        let on_first = |ordinal| {
            let options = gpu_core::Options { ordinal, ..gpu_core::Options::default() };
            gpu_core::accelerator(vectors, biases, token_norm, options)
        };
        let accelerator = device
            .on_first_gpu(on_first, |_| ())
            .map_err(|source| ExpanderTrainError::Gpu { device: device.clone(), source })?;
        on_gpu |= accelerator.is_some();
        Ok(accelerator)
    };
    let Trained { biases, projection, vectors, steps, quality, accelerator_failure: gpu_failure } =
        train_with(data, settings, pool, accelerate, on_progress).map_err(
            |failure| match failure {
                Failure::Accelerator(error) => error,
                Failure::Diverged(diverged) => ExpanderTrainError::Diverged(diverged),
            },
        )?;
    let rows = (terms < model.rows()).then(|| (0..terms as u32).map(Row).collect());
    let pairs = [train_examples.len(), dev.len()];
    let loss = match settings.loss {
        Loss::InfoNce { temperature } => json!({"infonce": {"temperature": temperature}}),
        Loss::Margin { margin } => json!({"margin": {"margin": margin}}),
    };
    let training = json!({
        "pairs": pairs[0],
        "dev_pairs": pairs[1],
        "left_out": left_out,
        "steps": steps,
        "dev_mean_reciprocal_rank": quality,
        "loss": loss,
        "flops_queries": settings.flops_queries,
        "flops_texts": settings.flops_texts,
        "batch": settings.batch,
        "epochs": settings.epochs,
        "learning_rate": settings.learning_rate,
        "bias_learning_rate": settings.bias_learning_rate,
        "weight_decay": settings.weight_decay,
        "seed": settings.seed,
        "made_by": concat!("kindred ", env!("CARGO_PKG_VERSION")),
    });
    let serde_json::Value::Object(training) = training else { unreachable!("it is an object") };
    let description = ExpanderDescription {
        log1p: settings.log1p,
        training,
        ..ExpanderDescription::of_model(model, tokens)
    };
    let weights = ExpanderWeights { rows, vectors, biases: Some(biases), projection };
    Ok(MadeExpander { description, weights, quality, pairs, left_out, on_gpu, gpu_failure })
}

/// Refuses what would take more memory than anyone means, before it is allocated.
fn check_size(
    data: &Data<'_>,
    terms: usize,
    settings: &Settings,
) -> Result<(), ExpanderTrainError> {
    /// Of 32 bytes, at the same time.
    const MOST: u128 = 1 << 27;
    let of_text = match settings.bias {
        StartBias::TermsPerText(wanted) => (wanted as usize).min(terms),
        StartBias::Value(_) => 0,
    };
    // A query, a relevant and an irrelevant text.
    let texts = 3 * settings.batch.min(data.train.len()) as u128;
    match texts * of_text as u128 {
        found if found > MOST => Err(ExpanderTrainError::TooLarge { found, most: MOST }),
        _ => Ok(()),
    }
}
