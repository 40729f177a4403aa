//! A model that was opened: with rows that stay as they are, or with rows that change.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use kindred::demo;
use kindred::filters::FilterSets;
use kindred::live::Live;
use kindred::live::changes::{Access, ChangeOptions};
use kindred::rows::{AtPosition, Rows as _};
use kindred::{ModelError, ModelStore, text_encoder};
use tracing::info;

use super::{LoadError, Writer, heads, tables};
use crate::config::{Config, ModelSource};
use crate::system::available_memory;

/// A model without an engine.
#[derive(Debug, Clone)]
pub(super) struct Opened {
    /// The model; the base of a table whose rows change.
    pub(super) model: Arc<ModelStore>,
    /// The table, if its rows change.
    pub(super) live: Option<Arc<Live>>,
    /// Commits changes of the table, if it may be changed here.
    pub(super) writer: Option<Arc<Writer>>,
}

impl Opened {
    /// A table that may be changed here.
    ///
    /// # Errors
    /// If there is no thread that writes.
    pub(super) fn to_write(live: Arc<Live>) -> io::Result<Self> {
        let writer = Some(Arc::new(Writer::start(live.changes().clone())?));
        Ok(Self { writer, ..Self::from(live) })
    }

    /// The same table over the base of a fold.
    pub(super) fn folded(live: Live, writer: Arc<Writer>) -> Self {
        Self { writer: Some(writer), ..Self::from(Arc::new(live)) }
    }
}

impl From<Arc<ModelStore>> for Opened {
    fn from(model: Arc<ModelStore>) -> Self {
        Self { model, live: None, writer: None }
    }
}

impl From<Arc<Live>> for Opened {
    fn from(live: Arc<Live>) -> Self {
        Self { model: live.base().clone(), live: Some(live), writer: None }
    }
}

/// Opens the models and the heads of the settings, without an engine.
///
/// # Errors
/// If a folder is not a valid model or head, or a head belongs to none of these models.
pub fn check(config: &Config) -> Result<(), LoadError> {
    for (_, opened) in open_all(config, Access::Read)? {
        heads::open(&opened.model, config)?;
    }
    Ok(())
}

/// Opens the models of the settings and the tables, and checks that each head was made for one of
/// them.
pub(super) fn open_all(
    config: &Config,
    access: Access,
) -> Result<Vec<(ModelSource, Opened)>, LoadError> {
    let mut all = Vec::new();
    for source in config.sources() {
        let opened = open_with_changes(&source, config).map_err(|why| match why {
            LoadError::Model(why @ ModelError::NotAModel { .. }) if is_of(&why, &source) => {
                LoadError::NoModel(why)
            }
            why => why,
        })?;
        all.push((source, opened));
    }
    for (name, folder) in tables::found(config)? {
        if all.iter().any(|(_, opened): &(_, Opened)| opened.model.name() == name) {
            return Err(LoadError::NameTaken { name, folder });
        }
        let opened = open_table(&name, &folder, access)?;
        all.push((ModelSource { name: Some(name), folder: Some(folder) }, opened));
    }
    heads::check_models(config, all.iter().map(|(_, opened)| &*opened.model))?;
    Ok(all)
}

/// Opens a table of the folder of tables.
pub(super) fn open_table(name: &str, folder: &Path, access: Access) -> Result<Opened, LoadError> {
    let started = Instant::now();
    let options = ChangeOptions { access, ..ChangeOptions::default() };
    let live = Arc::new(Live::open_as(folder, Some(name), options)?);
    say_opened(live.base(), Some(&live.now()), started);
    match access {
        Access::Write => Opened::to_write(live).map_err(LoadError::Broken),
        Access::Read => Ok(live.into()),
    }
}

/// Whether it is the folder of the settings itself that is no model's.
fn is_of(why: &ModelError, source: &ModelSource) -> bool {
    matches!(why, ModelError::NotAModel { path, .. } if source.folder.as_ref() == Some(path))
}

/// Opens a model under its name, with its changes if it has any: to read its rows as they are now.
pub(super) fn open_with_changes(
    source: &ModelSource,
    config: &Config,
) -> Result<Opened, LoadError> {
    match (open(source, config), &source.folder) {
        (Err(ModelError::HasChanges { .. }), Some(folder)) => {
            let options = ChangeOptions { access: Access::Read, ..ChangeOptions::default() };
            let started = Instant::now();
            let live = Live::open_as(folder, source.name.as_deref(), options)?;
            say_opened(live.base(), Some(&live.now()), started);
            Ok(Arc::new(live).into())
        }
        (opened, _) => Ok(Arc::new(opened?).into()),
    }
}

/// Opens a model, under its name.
pub(super) fn open(source: &ModelSource, config: &Config) -> Result<ModelStore, ModelError> {
    let started = Instant::now();
    let model = match &source.folder {
        Some(folder) => ModelStore::open(folder)?,
        None => demo::open(&config.cache_dir)?,
    };
    text_encoder(&model)?;
    let model = match &source.name {
        Some(name) => model.named(name),
        None => model,
    };
    say_opened(&model, None, started);
    Ok(model)
}

fn say_opened(model: &ModelStore, now: Option<&AtPosition>, started: Instant) {
    info!(
        model = model.name(),
        version = model.version(),
        position = now.map(AtPosition::position),
        rows = now.map_or(model.rows(), AtPosition::live_rows),
        dim = model.dim(),
        milliseconds = started.elapsed().as_micros() as f64 / 1e3,
        "opened the model"
    );
}

pub(super) fn check_memory(
    opened: &Opened,
    source: &ModelSource,
    config: &Config,
) -> Result<(), LoadError> {
    const MB: u64 = 1_000_000;
    let Some(available) = available_memory() else {
        return Ok(());
    };
    let (needed, reserve) = (needed_memory(opened), config.memory_reserve_mb.saturating_mul(MB));
    if needed.saturating_add(reserve) <= available {
        return Ok(());
    }
    Err(LoadError::NoMemory {
        source_name: source
            .folder
            .as_ref()
            .map_or_else(|| "the built-in model".to_owned(), |folder| folder.display().to_string()),
        needed_mb: needed.div_ceil(MB),
        available_mb: available / MB,
        reserve_mb: config.memory_reserve_mb,
    })
}

/// Bytes of memory that another model needs: its files, which are mapped, the derived table of its
/// engine, with a byte for each component, or two of them with attributes, the indexes of its
/// attributes, the sets of its filters, and the rows that came after the base.
fn needed_memory(Opened { model, live, .. }: &Opened) -> u64 {
    let (rows, dim) = (model.rows() as u64, model.dim() as u64);
    let (header, rounded_dim) = (model.header(), dim.next_multiple_of(64));
    let files = rows * (4 * dim + 16) + header.words_bytes + header.index_bytes;
    let attributes = model.attributes().map_or(0, |all| all.bytes() + all.all_index_bytes());
    let of_filters = FilterSets::most_bytes_for(model) as u64;
    let tables = if model.attributes().is_some() { 2 } else { 1 };
    let tail = live.as_ref().map_or(0, |live| (live.now().count() - model.rows()) as u64);
    let of_tail = tail * (4 * dim + rounded_dim + 128);
    files + attributes + tables * rows * (rounded_dim + 64) + of_filters + of_tail
}
