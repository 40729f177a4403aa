//! Expanders: which terms a text implies.
//!
//! - `description`: `head.json`;
//! - `weights`: `weights.safetensors`;
//! - here: opening an expander beside its model, and writing one.

mod description;
#[cfg(test)]
mod tests;
mod weights;

use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use contract::{HasTable, Metric, Row, Table, TermExpander, score};

pub use description::{ExpanderDescription, TermsFrom};
pub use weights::ExpanderWeights;

use super::description::Tokens;
use super::{HEAD_FILE, HeadError, WEIGHTS_FILE, seal};
use crate::ModelStore;
use crate::format::Checksum;
use crate::mapped::Mapped;
use weights::WeightShape;

/// An expander that fits its model.
///
/// # Errors
/// Whatever opens or makes one, if there is no expander, if it is damaged, or if it was made for
/// another model. Each error names the cure.
#[derive(Debug)]
pub struct Expander {
    description: ExpanderDescription,
    /// What has the words of the terms.
    words: Arc<ModelStore>,
    /// The rows of these words, if not all of them are terms.
    rows: Option<Vec<Row>>,
    /// The rows of stop words among the tokens, ascending.
    stop_rows: Vec<Row>,
    terms: Arc<dyn HasTable>,
    projection: Option<Vec<f32>>,
}

/// A model's rows with biases that the expander has.
#[derive(Debug)]
struct TiedTerms {
    model: Arc<ModelStore>,
    biases: Option<Vec<f32>>,
}

impl HasTable for TiedTerms {
    fn table(&self) -> Table<'_> {
        self.model.table().under_dot(self.biases.as_deref())
    }
}

/// Vectors that the expander has.
#[derive(Debug)]
struct OwnTerms {
    components: Vec<f32>,
    norms: Vec<f64>,
    dim: usize,
    biases: Option<Vec<f32>>,
}

impl HasTable for OwnTerms {
    fn table(&self) -> Table<'_> {
        Table::new(&self.components, &self.norms, self.dim).under_dot(self.biases.as_deref())
    }
}

impl Expander {
    /// Opens an expander's folder. Checks the description and its checksum, that it was made for
    /// this model, all shapes, the checksum of the weights, and that they are finite.
    pub fn open(folder: &Path, model: &Arc<ModelStore>) -> Result<Self, HeadError> {
        super::check_folder(folder)?;
        let path = folder.join(HEAD_FILE);
        let description = ExpanderDescription::parse(&path, &Mapped::open(&path)?)?;
        let weights = Mapped::open(&folder.join(WEIGHTS_FILE))?;
        Self::from_parts(folder, description, &weights, model)
    }

    /// An expander from the content of its two files. `name` is for errors.
    pub fn from_bytes(
        name: &str,
        description: &[u8],
        weights: &[u8],
        model: &Arc<ModelStore>,
    ) -> Result<Self, HeadError> {
        let folder = PathBuf::from(name);
        let description = ExpanderDescription::parse(&folder.join(HEAD_FILE), description)?;
        Self::from_parts(&folder, description, weights, model)
    }

    /// An expander of these weights in memory.
    pub fn from_memory(
        description: ExpanderDescription,
        weights: ExpanderWeights,
        model: &Arc<ModelStore>,
    ) -> Result<Self, HeadError> {
        let folder = Path::new("an expander in memory");
        let words = words_of(folder, &description, model)?;
        let shape = shape(&description, &words, model);
        let damaged = |reason| HeadError::Damaged { path: folder.join(WEIGHTS_FILE), reason };
        // What is wrong with a file would be wrong with these.
        let file = weights.write(shape).map_err(damaged)?;
        let weights = ExpanderWeights::read(&file, shape).map_err(damaged)?;
        Self::new(folder, description, weights, words, model)
    }

    /// The words of a model under the metric `dot` as terms, with its vectors and biases.
    pub fn of_model(model: &Arc<ModelStore>, tokens: Tokens) -> Result<Self, HeadError> {
        let description = ExpanderDescription::of_model(model, tokens);
        Self::from_memory(description, ExpanderWeights::default(), model)
    }

    fn from_parts(
        folder: &Path,
        description: ExpanderDescription,
        weights: &[u8],
        model: &Arc<ModelStore>,
    ) -> Result<Self, HeadError> {
        let damaged = |reason| HeadError::Damaged { path: folder.join(WEIGHTS_FILE), reason };
        description.model.check(folder, model)?;
        seal::check_file(folder, WEIGHTS_FILE, weights, &description.weights)?;
        let words = words_of(folder, &description, model)?;
        let shape = shape(&description, &words, model);
        let weights = ExpanderWeights::read(weights, shape).map_err(damaged)?;
        Self::new(folder, description, weights, words, model)
    }

    fn new(
        folder: &Path,
        description: ExpanderDescription,
        weights: ExpanderWeights,
        words: Arc<ModelStore>,
        model: &Arc<ModelStore>,
    ) -> Result<Self, HeadError> {
        let ExpanderWeights { rows, vectors, biases, projection } = weights;
        let token_dim = token_dim(&description, &words, model);
        if projection.is_none() && token_dim != words.dim() {
            let reason = format!(
                "tokens have {token_dim} components and terms {}, but there is no `projection`",
                words.dim()
            );
            let path = folder.join(WEIGHTS_FILE);
            return Err(HeadError::Damaged { path, reason: reason.into() });
        }
        let dim = words.dim();
        let terms: Arc<dyn HasTable> = match (vectors, &rows) {
            (None, None) if biases.is_none() && words.metric() == Metric::Dot => words.clone(),
            (None, None) => Arc::new(TiedTerms { model: words.clone(), biases }),
            (vectors, rows) => {
                let table = words.table();
                let components = vectors.unwrap_or_else(|| {
                    let rows = rows.as_deref().unwrap_or_default();
                    rows.iter().flat_map(|&row| table.row(row)).copied().collect()
                });
                let own = |biases: &[f32]| -> Vec<f32> {
                    let rows = rows.as_deref().unwrap_or_default();
                    rows.iter().map(|row| biases[row.index()]).collect()
                };
                let biases = biases.or_else(|| {
                    let inherits = words.metric() == Metric::Dot && rows.is_some();
                    table.biases().filter(|_| inherits).map(own)
                });
                let norms = components.chunks_exact(dim).map(score::norm).collect();
                Arc::new(OwnTerms { components, norms, dim, biases })
            }
        };
        let stop_rows = description.stop_rows(model);
        Ok(Self { description, words, rows, stop_rows, terms, projection })
    }

    /// What the expander is.
    pub fn description(&self) -> &ExpanderDescription {
        &self.description
    }

    /// The rows of its stop words in the model whose words are the tokens, ascending.
    pub fn stop_rows(&self) -> &[Row] {
        &self.stop_rows
    }

    /// The checksum that belongs into its description, if that has none.
    pub fn missing_checksum(&self) -> Option<String> {
        self.description.checksum.is_none().then(|| seal::checksum_of(&self.description))
    }

    /// The model folder that has the terms, if the expander's own model does not. Opening an
    /// expander opens it, but does not verify all of it: [`ModelStore::verify`] does.
    pub fn terms_folder(&self) -> Option<&Arc<ModelStore>> {
        matches!(self.description.terms, TermsFrom::Folder { .. }).then_some(&self.words)
    }

    /// The rows of the terms in the model that has their words; `None` if all of its rows are terms,
    /// in their order.
    pub fn term_rows(&self) -> Option<&[Row]> {
        self.rows.as_deref()
    }

    /// The number of terms.
    pub fn len(&self) -> usize {
        self.terms.table().rows()
    }

    /// Whether there are no terms: never.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The word of a term.
    ///
    /// # Panics
    /// If there is no such term.
    pub fn term(&self, row: Row) -> &str {
        self.words.words().word(self.rows.as_ref().map_or(row, |rows| rows[row.index()]))
    }

    /// The weight of a term of this value, above zero.
    pub fn weight(&self, value: f64) -> f64 {
        if self.description.log1p { libm::log1p(value) } else { value }
    }

    /// A value that every term of at least this weight has.
    pub fn least_value(&self, weight: f64) -> f64 {
        // Rounding may go either way. Terms are chosen by their weights in the end.
        const SLACK: f64 = 1e-12;
        match self.description.log1p {
            true => libm::expm1(weight) * (1.0 - SLACK),
            false => weight,
        }
    }
}

impl TermExpander for Expander {
    fn terms(&self) -> &Arc<dyn HasTable> {
        &self.terms
    }

    fn projection(&self) -> Option<&[f32]> {
        self.projection.as_deref()
    }
}

/// What has the words of the terms.
fn words_of(
    folder: &Path,
    description: &ExpanderDescription,
    model: &Arc<ModelStore>,
) -> Result<Arc<ModelStore>, HeadError> {
    match &description.terms {
        TermsFrom::Model {} => Ok(model.clone()),
        TermsFrom::Folder { path, model: made_for } => {
            let path = relative_to(folder, path);
            let terms = ModelStore::open(&path)?;
            made_for.check(folder, &terms)?;
            if terms.metric() == Metric::Dot {
                return Ok(Arc::new(terms));
            }
            let reason = "it has the metric `cosine`; prepare it with `--metric dot`".into();
            Err(HeadError::Damaged { path, reason })
        }
    }
}

/// A path relative to a folder that may not exist yet, so that the system could not go up from it.
fn relative_to(folder: &Path, path: &Path) -> PathBuf {
    let mut whole = folder.to_owned();
    for part in path.components() {
        match part {
            Component::ParentDir if whole.file_name().is_some() => drop(whole.pop()),
            part => whole.push(part),
        }
    }
    whole
}

/// Components of a token's vector.
fn token_dim(description: &ExpanderDescription, words: &ModelStore, model: &ModelStore) -> usize {
    if description.tokens.is_some() { model.dim() } else { words.dim() }
}

fn shape(description: &ExpanderDescription, words: &ModelStore, model: &ModelStore) -> WeightShape {
    let token_dim = token_dim(description, words, model);
    WeightShape { terms: words.rows(), dim: words.dim(), token_dim }
}

/// Writes an expander's folder, complete or not at all. The checksums are computed.
///
/// # Errors
/// If `out` exists (unless it is a head and `replace` is set), or can't be written; if the weights
/// do not fit the model.
pub fn write_expander(
    out: &Path,
    replace: bool,
    description: &ExpanderDescription,
    weights: &ExpanderWeights,
    model: &Arc<ModelStore>,
) -> Result<(), HeadError> {
    let words = words_of(out, description, model)?;
    let shape = shape(description, &words, model);
    let damaged = |reason| HeadError::Damaged { path: WEIGHTS_FILE.into(), reason };
    let file = weights.write(shape).map_err(damaged)?;
    let description =
        ExpanderDescription { weights: Checksum::of(&file).to_string(), ..description.clone() };
    let checksum = Some(seal::checksum_of(&description));
    let description = ExpanderDescription { checksum, ..description };
    Expander::from_parts(out, description.clone(), &file, model)?;
    seal::write(out, replace, &description, (WEIGHTS_FILE, &file))
}
