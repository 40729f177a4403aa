//! The heads of a served model.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use kindred::contract::{TokenClassifier, TokenText};
use kindred::heads::{
    AnyHead, BUILT_IN, Head, HeadError, HeadKind, TextClassifier, Token, about, built_in,
    own_expander,
};
use kindred::{ModelError, ModelStore};
use tracing::warn;

use crate::config::{Config, ModelSource};

/// A head and the name that it is served under.
#[derive(Debug, Clone)]
pub struct ServedHead {
    /// Its name: from the settings, or that of its folder.
    pub name: String,
    /// The head.
    pub head: AnyHead,
    /// A hash of its name and its content: its answers depend on these and on the model.
    pub(crate) digest: u64,
    /// Of a classifier over the model's rows. An expander is searched like the model itself, and
    /// a head of fastText needs no engine.
    probe: Option<Arc<Probe>>,
}

/// A text whose class scores are known, for readiness checks.
#[derive(Debug)]
pub(super) struct Probe {
    text: TokenText,
    scores: Vec<f64>,
    /// Whether the head was asked. Before that, nothing is computed from it on the engine, and
    /// nothing is checked.
    is_in_use: AtomicBool,
}

impl ServedHead {
    /// A head of this model.
    fn new(name: String, head: AnyHead, model: &ModelStore) -> Self {
        let probe = match &head {
            AnyHead::Classifier(TextClassifier::OverRows(head)) => {
                Some(Arc::new(Probe::new(head, model)))
            }
            _ => None,
        };
        let content = serde_json::json!([name, head.description()]).to_string();
        let mut first = [0; size_of::<u64>()];
        first.copy_from_slice(&blake3::hash(content.as_bytes()).as_bytes()[..size_of::<u64>()]);
        let digest = u64::from_be_bytes(first);
        Self { name, head, digest, probe }
    }

    /// Notes that it is asked for texts, so that the engine is checked with its probe.
    pub(crate) fn set_in_use(&self) {
        let Some(probe) = &self.probe else { return };
        if !probe.is_in_use.load(Ordering::Relaxed) {
            probe.is_in_use.store(true, Ordering::Relaxed);
        }
    }

    /// Its probe to check the engine with, if it has one and is in use.
    pub(super) fn probe(&self) -> Option<&Probe> {
        self.probe.as_deref().filter(|probe| probe.is_in_use.load(Ordering::Relaxed))
    }
}

impl Probe {
    fn new(head: &Arc<Head>, model: &ModelStore) -> Self {
        const TOKENS: usize = 3;
        let count = TOKENS.min(head.tokens()).min(head.longest_text());
        let text = TokenText::new(head.clone(), (0..count as u32).map(Token).collect());
        let scores = text.scores(&model.table());
        Self { text, scores, is_in_use: AtomicBool::new(false) }
    }

    pub(super) fn text(&self) -> TokenText {
        self.text.clone()
    }

    /// Whether these are the class scores of the probe, or nearly. What engines promise is much
    /// less than this.
    pub(super) fn is_right(&self, scores: &[f64]) -> bool {
        const TOLERANCE: f64 = 0.01;
        let near = |(a, b): (&f64, &f64)| (a - b).abs() <= TOLERANCE * b.abs().max(1.0);
        scores.len() == self.scores.len() && scores.iter().zip(&self.scores).all(near)
    }
}

/// Opens the heads of the settings that were made for this model. If it has no classifier of these,
/// the built-in model has its own. If it has no expander, a model under the metric `dot` expands
/// texts to its own words, and the built-in model to words near theirs.
///
/// # Errors
/// If the folder of any head can't be read, or one of these heads is damaged.
pub(super) fn open(model: &Arc<ModelStore>, config: &Config) -> Result<Vec<ServedHead>, HeadError> {
    let mut heads = Vec::new();
    for source in &config.head {
        let folder = folder(source);
        if !about(folder)?.fits(model) {
            continue;
        }
        let head = AnyHead::open(folder, model)?;
        if head.missing_checksum().is_some() {
            warn!("{}", without_checksum(folder));
        }
        heads.push(ServedHead::new(source.expected_name(), head, model));
    }
    let has = |kind| heads.iter().any(|one| one.head.kind() == kind);
    let (has_classifier, has_expander) = (has(HeadKind::Classifier), has(HeadKind::Expander));
    if !has_classifier && let Some(head) = built_in(model) {
        heads.push(ServedHead::new(BUILT_IN.to_owned(), AnyHead::Classifier(head.into()), model));
    }
    if !has_expander && let Some((name, head)) = own_expander(model) {
        heads.push(ServedHead::new(name.to_owned(), AnyHead::Expander(head), model));
    }
    // Texts have many words. No request waits for the table.
    if !heads.is_empty() {
        model.words().make_table();
    }
    Ok(heads)
}

/// Says that damage of this head is not found.
pub fn without_checksum(folder: &Path) -> String {
    format!(
        "{0}: its head.json has no checksum, as those of earlier versions, so changed labels or \
         settings are not noticed; `kindred verify --model MODEL --head {0}` prints the checksum to add",
        folder.display()
    )
}

/// The head of this name and kind, or the only one of this kind, among those of a model.
///
/// # Errors
/// Why there is none, and what to do.
pub fn find_head<'a>(
    all: &'a [ServedHead],
    model: &str,
    name: Option<&str>,
    kind: HeadKind,
) -> Result<&'a ServedHead, String> {
    let heads: Vec<&ServedHead> = all.iter().filter(|head| head.head.kind() == kind).collect();
    let names = || heads.iter().map(|head| head.name.as_str()).collect::<Vec<_>>().join(", ");
    Err(match (name, &heads[..]) {
        (None, [only]) => return Ok(only),
        (_, []) => {
            format!(
                "the model `{model}` has no {}; make one {}, and serve it with `kindred serve \
                 --model DIR --head HEAD`",
                kind.name(),
                kind.how_to_make()
            )
        }
        (None, _) => format!("there are several heads; name one in `head`: {}", names()),
        (Some(name), _) => match heads.iter().find(|head| head.name == name) {
            Some(head) => return Ok(head),
            None => match all.iter().find(|head| head.name == name) {
                Some(other) => {
                    let kind = other.head.kind().with_article();
                    format!("the head `{name}` is {kind}; choose from: {}", names())
                }
                None => format!("there is no head `{name}`; heads: {}", names()),
            },
        },
    })
}

/// Verifies what opening these heads does not: the folders that they take terms from.
///
/// # Errors
/// For the first that is damaged; [`ModelError::Cancelled`] soon after `goes_on` has said no.
pub(super) fn verify(heads: &[ServedHead], goes_on: impl Fn() -> bool) -> Result<(), ModelError> {
    let mut folders = heads.iter().filter_map(|head| head.head.terms_folder());
    folders.try_for_each(|terms| terms.verify_while(|_| (), &goes_on))
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
        let Some(made_for) = about(folder)?.model else { continue };
        if !models.clone().any(|model| made_for.is(model)) {
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

/// The folder of a head in the settings.
pub(super) fn folder(source: &ModelSource) -> &Path {
    source.folder.as_deref().expect("the settings were checked")
}
