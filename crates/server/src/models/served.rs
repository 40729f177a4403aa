//! A served model.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use arc_swap::ArcSwap;
use kindred::ModelStore;
use kindred::attributes::Attributes;
use kindred::background::start_in_background;
use kindred::contract::EngineDescription;

use super::Writer;
use super::heads::ServedHead;
use super::opened::Opened;
use super::pins::Pins;
use super::readiness::Readiness;
use super::sources::Report;
use crate::observe::{EngineFigures, SourceFigures};
use kindred::filters::FilterSets;
use kindred::heads::Tokenised;
use kindred::live::Live;
use kindred::placement::Placed;
use kindred::queue::{DeviceThreads, QueueHandle, Replicas};

/// A served model: its table and words, the queue in front of its engine, and parts of its answers
/// that are prepared.
pub struct ServedModel {
    // Dropped in this order, so that the engine's thread holds the table last and frees its memory,
    // instead of a thread that others wait for.
    /// Table and words; the base of a table whose rows change.
    pub model: Arc<ModelStore>,
    /// The table, if its rows change.
    pub live: Option<Arc<Live>>,
    /// Commits changes of the table, if it may be changed here.
    pub(crate) writer: Option<Arc<Writer>>,
    /// The sets of rows that filters have made.
    pub(crate) sets: FilterSets,
    pub(crate) queue: QueueHandle,
    /// The engine that searches it.
    pub engine: EngineDescription,
    /// Its heads. A reload may replace them while the model stays.
    pub(crate) heads: ArcSwap<Vec<ServedHead>>,
    /// The beginning of each answer: an open object with the model's name and version.
    pub(crate) beginning: Vec<u8>,
    /// A hash of name and version, as an entity tag, because every answer contains both. Weak,
    /// because an answer may be compressed.
    pub(crate) etag: String,
    pub(crate) readiness: Readiness,
    /// The threads of its engines, which may be replaced one by one.
    pub(super) replicas: Replicas,
    /// Which GPUs they use, if several were given.
    pub(crate) placed: Option<Placed>,
    pub(crate) text_counts: TextCounts,
    /// Positions of the table that are read page by page.
    pub(crate) pins: Pins,
}

/// Texts for heads: those of which something was left out, and those that were expanded.
#[derive(Debug, Default)]
pub(crate) struct TextCounts {
    cut: AtomicU64,
    with_unknown_words: AtomicU64,
    expanded: AtomicU64,
}

impl TextCounts {
    /// Counts those of some texts.
    pub(crate) fn add<'a>(&self, texts: impl Iterator<Item = &'a Tokenised>) {
        let (mut cut, mut with_unknown_words) = (0, 0);
        for text in texts {
            cut += u64::from(text.is_cut);
            with_unknown_words += u64::from(!text.unknown.is_empty());
        }
        // Most requests have none, and then threads share no line of memory.
        for (counter, count) in [(&self.cut, cut), (&self.with_unknown_words, with_unknown_words)] {
            if count > 0 {
                counter.fetch_add(count, Ordering::Relaxed);
            }
        }
    }

    /// Counts texts with unknown words, which were found as they were read.
    pub(crate) fn add_with_unknown_words(&self, texts: usize) {
        self.with_unknown_words.fetch_add(texts as u64, Ordering::Relaxed);
    }

    /// Counts texts that were expanded.
    pub(crate) fn add_expanded(&self, texts: usize) {
        self.expanded.fetch_add(texts as u64, Ordering::Relaxed);
    }

    fn counted(&self) -> [(&'static str, u64); 3] {
        [
            ("cut_texts", &self.cut),
            ("texts_with_unknown_words", &self.with_unknown_words),
            ("expanded", &self.expanded),
        ]
        .map(|(name, counter)| (name, counter.load(Ordering::Relaxed)))
    }
}

/// A weak entity tag for this content.
pub(crate) fn weak_tag(content: &[u8]) -> String {
    format!("W/\"{}\"", &blake3::hash(content).to_hex()[..16])
}

impl fmt::Debug for ServedModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.name(), self.model.version())
    }
}

impl ServedModel {
    /// A model with its heads, and the queue in front of its engines, which `engines` runs.
    /// `readiness_timeout` bounds a readiness check.
    pub(super) fn new(
        Opened { model, live, writer }: Opened,
        heads: Vec<ServedHead>,
        queue: QueueHandle,
        engines: &DeviceThreads,
        placed: Option<Placed>,
        readiness_timeout: Duration,
    ) -> Self {
        let name = serde_json::to_string(model.name()).expect("a text becomes JSON");
        let beginning = format!("{{\"model\":{name},\"version\":\"{}\",", model.version());
        let beginning = beginning.into_bytes();
        // Reads all texts, which no thread with connections should do.
        model.attributes().map(Attributes::summaries);
        if model.attributes().is_some() {
            let model = model.clone();
            let make = move || _ = model.attributes().map(Attributes::make_indexes);
            // Without a thread, the first filters make them.
            let _ = start_in_background(make);
        }
        Self {
            heads: ArcSwap::from_pointee(heads),
            etag: weak_tag(&beginning),
            sets: FilterSets::for_model(&model),
            readiness: Readiness::new(&model, readiness_timeout),
            engine: engines.description().clone(),
            replicas: engines.replicas().clone(),
            text_counts: TextCounts::default(),
            pins: Pins::default(),
            placed,
            beginning,
            model,
            live,
            writer,
            queue,
        }
    }

    /// Number of rows that are there now.
    pub fn rows(&self) -> usize {
        self.live.as_ref().map_or_else(|| self.model.rows(), |live| live.now().live_rows())
    }

    /// The systems that the table follows, with the last report of each, if there was one since the
    /// start.
    pub(crate) fn sources(&self) -> Vec<(String, Option<Report>)> {
        let Some((live, writer)) = self.live.as_ref().zip(self.writer.as_ref()) else {
            return Vec::new();
        };
        let now = live.now();
        let names = now.sources().iter().map(|(name, _)| name);
        names.map(|name| (name.to_owned(), writer.reports.of(name))).collect()
    }

    /// Whether it is the same model, at the same position if its rows change.
    pub(super) fn is_of(&self, opened: &Opened) -> bool {
        let position =
            |live: &Option<Arc<Live>>| live.as_ref().map_or(0, |live| live.now().position());
        self.model.version() == opened.model.version()
            && position(&self.live) == position(&opened.live)
    }

    /// The name that it is served under.
    pub fn name(&self) -> &str {
        self.model.name()
    }

    fn source_figures(&self) -> Vec<SourceFigures> {
        let figures = |(name, report): (String, Option<Report>)| {
            let report = report?;
            let Report { behind, retained, .. } = report;
            Some(SourceFigures { name, behind, behind_by: report.behind_now(), retained })
        };
        self.sources().into_iter().filter_map(figures).collect()
    }

    /// The counts of its queue and engine.
    pub(crate) fn figures(&self) -> EngineFigures {
        let table = self.model.table();
        let bytes = size_of_val(table.components()) + size_of_val(table.norms());
        let has_heads = !self.heads.load().is_empty();
        EngineFigures {
            model: self.name().to_owned(),
            rows: self.rows(),
            dim: self.model.dim(),
            bytes: bytes as u64,
            damaged_files: self.readiness.damaged_files(),
            sources: self.source_figures(),
            filters: self.sets.counts(),
            queue: self.queue.statistics(),
            texts: if has_heads { self.text_counts.counted().to_vec() } else { Vec::new() },
        }
    }
}
