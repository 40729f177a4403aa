//! The heads of a served model.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use contract::{TokenClassifier, TokenText};
use kindred::heads::{BUILT_IN, Head, HeadError, Token, built_in};
use model_store::ModelStore;

use crate::config::{Config, ModelSource};

/// A head and the name that it is served under.
#[derive(Debug, Clone)]
pub struct ServedHead {
    /// Its name: from the settings, or that of its folder.
    pub name: String,
    /// The head.
    pub head: Arc<Head>,
    /// A text whose class scores are known.
    probe: Arc<Probe>,
}

/// A text whose class scores are known, for readiness checks.
#[derive(Debug)]
struct Probe {
    text: TokenText,
    scores: Vec<f64>,
    /// Whether the head was asked. Before that, nothing is computed from it on the engine, and nothing is checked.
    is_in_use: AtomicBool,
}

impl ServedHead {
    /// A head of this model.
    fn new(name: String, head: Arc<Head>, model: &ModelStore) -> Self {
        const TOKENS: usize = 3;
        let count = TOKENS.min(head.tokens()).min(head.longest_text());
        let text = TokenText::new(head.clone(), (0..count as u32).map(Token).collect());
        let scores = text.scores(&model.table());
        let probe = Arc::new(Probe { text, scores, is_in_use: AtomicBool::new(false) });
        Self { name, head, probe }
    }

    /// The head, for texts to classify, which have words of this model.
    pub(crate) fn classifier(&self, model: &ModelStore) -> Arc<dyn TokenClassifier> {
        if !self.probe.is_in_use.load(Ordering::Relaxed) {
            self.probe.is_in_use.store(true, Ordering::Relaxed);
            model.words().make_table();
        }
        self.head.clone()
    }

    /// A text to check the engine with, if the head is in use.
    pub(super) fn probe(&self) -> Option<TokenText> {
        self.probe.is_in_use.load(Ordering::Relaxed).then(|| self.probe.text.clone())
    }

    /// Whether these are the class scores of the probe, or nearly. What engines promise is much less than this.
    pub(super) fn is_right(&self, scores: &[f64]) -> bool {
        const TOLERANCE: f64 = 0.01;
        let near = |(a, b): (&f64, &f64)| (a - b).abs() <= TOLERANCE * b.abs().max(1.0);
        scores.len() == self.probe.scores.len() && scores.iter().zip(&self.probe.scores).all(near)
    }
}

/// Opens the heads of the settings that were made for this model. If there are none, the built-in model has its own.
///
/// # Errors
/// If the folder of any head can't be read, or one of these heads is damaged.
pub(super) fn open(model: &ModelStore, config: &Config) -> Result<Vec<ServedHead>, HeadError> {
    let mut heads = Vec::new();
    for source in &config.head {
        let folder = folder(source);
        if Head::describe(folder)?.model.version == model.version() {
            let head = Arc::new(Head::open(folder, model)?);
            heads.push(ServedHead::new(source.expected_name(), head, model));
            model.words().make_table();
        }
    }
    if heads.is_empty()
        && let Some(head) = built_in(model)
    {
        heads.push(ServedHead::new(BUILT_IN.to_owned(), head, model));
    }
    Ok(heads)
}

/// Checks that each head of the settings was made for one of these models.
///
/// # Errors
/// For the first that was not.
pub(super) fn check_models<'a>(
    config: &Config,
    models: impl Iterator<Item = &'a ModelStore> + Clone,
) -> Result<(), HeadError> {
    for source in &config.head {
        let folder = folder(source);
        let made_for = Head::describe(folder)?.model;
        if !models.clone().any(|model| model.version() == made_for.version) {
            let names: Vec<&str> = models.map(ModelStore::name).collect();
            return Err(HeadError::OtherModel {
                path: folder.to_owned(),
                made_for: made_for.to_string(),
                model: names.join(" or "),
            });
        }
    }
    Ok(())
}

fn folder(source: &ModelSource) -> &Path {
    source.folder.as_deref().expect("the settings were checked")
}
