//! The results of retrieval runs, in the form in which they are written as JSON.

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::collection::Counts;
use super::compare::Difference;
use super::expansion::{Expansion, Setting};
use super::index::Bm25;
use super::measures::Measures;
use super::run::{Expanded, Experiment, Run};

/// A difference with a smaller `p` is taken for more than chance.
pub const SIGNIFICANT: f64 = 0.05;

/// All results.
#[derive(Debug, Serialize)]
pub struct Retrieval {
    /// The collection.
    pub collection: Counts,
    /// Whether terms were stemmed.
    pub stemming: bool,
    /// The number of stop words that were left out.
    pub stop_words: usize,
    /// The model that gave neighbours, if any did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The version of its content.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The number of folds.
    pub folds: usize,
    /// How often the queries were put into folds.
    pub repetitions: usize,
    /// The seed of folds and permutations.
    pub seed: u64,
    /// The number of permutations behind each `p`.
    pub permutations: u32,
    /// The runs: BM25 first.
    pub runs: Vec<RunResult>,
}

/// The result of a run.
#[derive(Debug, Serialize)]
pub struct RunResult {
    /// Its name.
    pub name: String,
    /// What it does.
    pub description: String,
    /// Means over all queries that are measured.
    #[serde(flatten)]
    pub measures: Measures,
    /// How it differs from BM25; none for BM25 itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub against_bm25: Option<Against>,
    /// The parameters that were chosen, most often chosen first.
    pub chosen: Vec<Chosen>,
}

/// Parameters of a run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Chosen {
    /// How many folds chose them, in all repetitions.
    pub times: usize,
    /// Their names and values.
    pub parameters: Map<String, Value>,
}

impl Chosen {
    fn counted(each: impl Iterator<Item = Setting>) -> Vec<Self> {
        let mut counted = Vec::<Self>::new();
        for setting in each {
            let named = setting.into_iter().map(|(name, value)| (name.to_owned(), number(value)));
            let parameters: Map<String, Value> = named.collect();
            match counted.iter_mut().find(|own| own.parameters == parameters) {
                Some(own) => own.times += 1,
                None => counted.push(Self { times: 1, parameters }),
            }
        }
        counted.sort_by_key(|own| std::cmp::Reverse(own.times));
        counted
    }
}

/// How a run differs from BM25, by each measure.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Against {
    /// By average precision.
    pub map: Difference,
    /// By nDCG@10.
    pub ndcg_at_10: Difference,
    /// By recall@100.
    pub recall_at_100: Difference,
}

/// Whether a run is better than BM25.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Its MAP is higher, and probably not by chance.
    Helps,
    /// Its MAP is lower, and probably not by chance.
    Hurts,
    /// The difference may be chance.
    MayBeChance,
}

impl Against {
    /// Compares a run with BM25, query by query.
    pub fn new(run: &[Measures], bm25: &[Measures], permutations: u32, seed: u64) -> Self {
        let by = |of: fn(&Measures) -> f64| {
            let differences: Vec<f64> =
                run.iter().zip(bm25).map(|(run, bm25)| of(run) - of(bm25)).collect();
            Difference::new(&differences, permutations, seed)
        };
        Self {
            map: by(|one| one.map),
            ndcg_at_10: by(|one| one.ndcg_at_10),
            recall_at_100: by(|one| one.recall_at_100),
        }
    }

    /// By MAP.
    pub fn verdict(&self) -> Verdict {
        match self.map {
            Difference { p, .. } if p >= SIGNIFICANT => Verdict::MayBeChance,
            Difference { mean, .. } if mean > 0.0 => Verdict::Helps,
            _ => Verdict::Hurts,
        }
    }
}

impl RunResult {
    /// The result of BM25.
    pub fn bm25(run: &Run<Bm25>) -> Self {
        let chosen = run.chosen.iter().map(|&Bm25 { k1, b }| vec![("k1", k1), ("b", b)]);
        Self {
            name: "BM25".into(),
            description: "the query's own terms".into(),
            measures: Measures::mean(&run.measures),
            against_bm25: None,
            chosen: Chosen::counted(chosen),
        }
    }

    /// The result of BM25 with an expansion.
    pub fn expanded(
        experiment: &Experiment,
        expansion: &dyn Expansion,
        run: &Run<Expanded>,
        bm25: &Run<Bm25>,
        permutations: u32,
    ) -> Self {
        let chosen = run.chosen.iter().map(|Expanded { setting, weight }| {
            setting.iter().copied().chain([("weight", *weight)]).collect()
        });
        let seed = experiment.tuning().seed;
        let against = Against::new(&run.measures, &bm25.measures, permutations, seed);
        Self {
            name: expansion.name().to_owned(),
            description: expansion.description(),
            measures: Measures::mean(&run.measures),
            against_bm25: Some(against),
            chosen: Chosen::counted(chosen),
        }
    }
}

/// Whole numbers are written as such.
fn number(value: f64) -> Value {
    match value.fract() == 0.0 && value.abs() < 1e15 {
        true => json!(value as i64),
        false => json!(value),
    }
}

impl Retrieval {
    /// What the figures say, in a sentence or two.
    pub fn conclusion(&self) -> String {
        let named = |verdict| -> Vec<String> {
            let is_so =
                |run: &&RunResult| run.against_bm25.is_some_and(|own| own.verdict() == verdict);
            let named = |run: &RunResult| {
                let by = run.against_bm25.map_or(0.0, |own| own.map.mean);
                format!("{} ({by:+.4})", run.name)
            };
            self.runs.iter().filter(is_so).map(named).collect()
        };
        let mut said = Vec::new();
        for (verdict, what) in [
            (Verdict::Helps, "MAP is higher than BM25's, and hardly by chance"),
            (Verdict::Hurts, "MAP is lower than BM25's, and hardly by chance"),
            (Verdict::MayBeChance, "the difference from BM25's MAP may be chance"),
        ] {
            let runs = named(verdict);
            if !runs.is_empty() {
                said.push(format!("{}: {what}.", runs.join(", ")));
            }
        }
        said.join("\n")
    }
}
