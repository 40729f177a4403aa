//! What an expander learns from, and how.

/// A query with a text that is relevant for it, and perhaps one that is not. Texts are tokens: words, by their rows in
/// [`Data::vectors`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Example {
    /// The query.
    pub query: Vec<u32>,
    /// The relevant text.
    pub relevant: Vec<u32>,
    /// The irrelevant text.
    pub irrelevant: Option<Vec<u32>>,
}

/// Which words are terms.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Terms<'a> {
    /// The first ones.
    First(usize),
    /// These, in this order: a collection's vocabulary.
    Words(&'a [u32]),
}

/// What an expander learns from.
#[derive(Debug, Clone, Copy)]
pub struct Data<'a> {
    /// Examples to learn from.
    pub train: &'a [Example],
    /// Examples that decide which epoch is the best; there may be none.
    pub dev: &'a [Example],
    /// The words' vectors, `[words, dim]`.
    pub vectors: &'a [f32],
    /// Components of a vector.
    pub dim: usize,
    /// The terms.
    pub terms: Terms<'a>,
}

/// What is minimised, beside the regulariser. A mean over queries.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Loss {
    /// The cross-entropy of a softmax over scores divided by `temperature`. Candidates are all relevant and irrelevant texts of the
    /// batch. A text that equals the query's relevant text is no candidate.
    InfoNce {
        /// What scores are divided by.
        temperature: f32,
    },
    /// `max(0, margin − score of the relevant text + score of the irrelevant text)`. Every example needs an irrelevant text.
    Margin {
        /// How much higher the relevant text should score.
        margin: f32,
    },
}

/// The terms' first bias.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum StartBias {
    /// This number.
    Value(f32),
    /// The number with which a text touches about as many terms as this, by a sample of the relevant texts.
    ///
    /// About half of all dot products of word vectors are above zero. Without a bias below zero, a text would touch nearly every
    /// term.
    TermsPerText(f32),
}

/// How an expander is trained.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// What is minimised.
    pub loss: Loss,
    /// Whether weights are `ln(1 + f)` instead of `f`.
    pub log1p: bool,
    /// The regulariser's factor for queries: of `Σ over terms of (the batch's mean weight)²`.
    pub flops_queries: f32,
    /// The same for texts, relevant and irrelevant together.
    pub flops_texts: f32,
    /// Steps in which both factors grow from zero with the square of the step's number; 0: they start as they are.
    pub warm_up: usize,
    /// The first bias of all terms.
    pub bias: StartBias,
    /// Whether a projection of the tokens' vectors is trained.
    pub projection: bool,
    /// Whether the terms' vectors are trained.
    pub own_vectors: bool,
    /// Examples in a step. An epoch leaves out the last ones that are fewer, unless there are no others.
    pub batch: usize,
    /// Passes over the data.
    pub epochs: usize,
    /// The size of steps of the projection and of the terms' vectors.
    pub learning_rate: f32,
    /// The size of steps of biases, whose scale is that of dot products.
    pub bias_learning_rate: f32,
    /// How much weights are drawn towards where they started, beside the gradients' steps (AdamW).
    pub weight_decay: f32,
    /// Decides everything that is random: the order of examples.
    pub seed: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            loss: Loss::InfoNce { temperature: 1.0 },
            log1p: true,
            flops_queries: 1e-3,
            flops_texts: 1e-3,
            warm_up: 500,
            bias: StartBias::TermsPerText(100.0),
            projection: true,
            own_vectors: false,
            batch: 64,
            epochs: 10,
            learning_rate: 1e-3,
            bias_learning_rate: 1e-2,
            weight_decay: 0.01,
            seed: 1,
        }
    }
}

/// Panics unless all that is named exists, and all numbers are usable.
pub(super) fn check(data: Data<'_>, settings: &Settings) {
    assert!(!data.train.is_empty() && data.dim > 0, "something to learn from");
    assert!(data.vectors.iter().all(|x| x.is_finite()), "finite vectors");
    let words = data.vectors.len() / data.dim;
    let exist = |all: &[u32]| all.iter().all(|&word| (word as usize) < words);
    assert!(
        match data.terms {
            Terms::First(count) => count <= words,
            Terms::Words(all) => exist(all),
        },
        "terms that exist"
    );
    let is_margin = matches!(settings.loss, Loss::Margin { .. });
    for one in data.train.iter().chain(data.dev) {
        let irrelevant = one.irrelevant.as_deref().unwrap_or_default();
        assert!([&one.query, &one.relevant, irrelevant].into_iter().all(exist), "words that exist");
        assert!(one.irrelevant.is_some() || !is_margin, "an irrelevant text for a margin");
    }
    let of_loss = match settings.loss {
        Loss::InfoNce { temperature } => {
            assert!(temperature > 0.0, "a temperature above zero");
            temperature
        }
        Loss::Margin { margin } => margin,
    };
    let (StartBias::Value(bias) | StartBias::TermsPerText(bias)) = settings.bias;
    let Settings { flops_queries, flops_texts, learning_rate, bias_learning_rate, .. } = *settings;
    let numbers = [of_loss, bias, flops_queries, flops_texts, learning_rate, bias_learning_rate];
    assert!(
        numbers.iter().chain([&settings.weight_decay]).all(|x| x.is_finite()),
        "finite settings"
    );
}
