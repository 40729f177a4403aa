//! `kindred eval --retrieval`: whether expanding queries helps, on a collection of one's own.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use contract::{Engine, EngineError, Hit, Metric, Query};
use indicatif::HumanCount;
use kindred::evaluation::EvaluationError;
use kindred::evaluation::source::Source;
use kindred::heads::{Expander, HeadError};
use kindred::retrieval::analyse::Analyser;
use kindred::retrieval::collection::{Collection, Counts};
use kindred::retrieval::compare::Difference;
use kindred::retrieval::expander::OfExpander;
use kindred::retrieval::expansion::Expansion;
use kindred::retrieval::feedback::Rm3;
use kindred::retrieval::judgements::judgements;
use kindred::retrieval::neighbours::{OfCentroid, OfWords};
use kindred::retrieval::results::{Against, Chosen, Retrieval, RunResult};
use kindred::retrieval::run::{Experiment, Tuning};
use kindred::retrieval::texts::{QueryIds, documents, queries};
use model_store::ModelStore;
use serde_json::json;

use super::eval::{engine, width};
use super::progress::bar;
use super::{CommandError, heading, model_of, print, read_text, threads};
use crate::cli::{EvalArguments, RetrievalArguments, RetrievalRun};

/// Queries to the model in one pass.
const TOGETHER: usize = 1024;

/// Choices of parameters that the table shows of each run.
const SHOWN_CHOICES: usize = 3;

/// Measures retrieval with and without expansions, and prints how much they help.
///
/// # Errors
/// If a file, the model or the engine can't be used. Nothing is printed then.
pub(super) fn eval_retrieval(arguments: &EvalArguments) -> Result<(), CommandError> {
    let flags = &arguments.retrieval;
    let analyser = analyser(flags)?;
    let mut collection = collection(flags)?;
    let &RetrievalArguments { folds, repetitions, seed, k1, b, permutations, .. } = flags;
    let pool = threads(arguments.threads)?;
    let tuning = Tuning { folds, repetitions, seed, k1, b };
    let experiment = pool.install(|| Experiment::new(&mut collection, analyser, tuning))?;
    let has_neighbours = flags.runs.iter().any(|run| run.needs_model());
    let needs_model = has_neighbours || !flags.expanders.is_empty();
    let model = needs_model.then(|| model_of(arguments.model.as_deref(), None)).transpose()?;
    let model = model.map(|one| one.model);
    let expansions: Vec<Box<dyn Expansion>> = match &model {
        Some(model) => {
            if has_neighbours {
                check_metric(model)?;
            }
            let expanders = flags.expanders.iter().map(|folder| open_expander(folder, model));
            let expanders: Vec<_> = expanders.collect::<Result<_, HeadError>>()?;
            let mut engine = engine(model, arguments)?;
            let mut found = expansions(flags, &experiment, Some((model, &mut *engine)))?;
            let words = experiment.words();
            for (name, expander) in expanders {
                let run = OfExpander::new(name, model, &expander, &words, &mut *engine);
                found.push(Box::new(run.map_err(EvaluationError::from)?));
            }
            found
        }
        None => expansions(flags, &experiment, None)?,
    };

    let queries = collection.queries.len() as u64;
    let bar = bar(queries, "queries");
    let bm25 = pool.install(|| experiment.bm25(|| bar.inc(1)));
    bar.inc_length(queries * (Experiment::rounds(&bm25) * expansions.len()) as u64);
    let mut runs = vec![RunResult::bm25(&bm25)];
    for expansion in &expansions {
        let run = pool.install(|| experiment.expanded(&bm25, &**expansion, || bar.inc(1)));
        runs.push(RunResult::expanded(&experiment, &**expansion, &run, &bm25, permutations));
    }
    bar.finish_and_clear();
    let report = Retrieval {
        collection: collection.counts,
        stemming: !flags.no_stemming,
        stop_words: experiment.analyser().stop_words(),
        model: model.as_ref().map(|model| model.name().to_owned()),
        version: model.as_ref().map(|model| model.version().to_owned()),
        folds,
        repetitions,
        seed,
        permutations,
        runs,
    };
    let mut text = match arguments.json {
        true => serde_json::to_string_pretty(&json!({"retrieval": report}))
            .expect("numbers and names are JSON"),
        false => table(&report),
    };
    text.push('\n');
    print(text.as_bytes())
}

fn analyser(flags: &RetrievalArguments) -> Result<Analyser, CommandError> {
    let stemming = !flags.no_stemming;
    Ok(match &flags.stop_words[..] {
        "english" => Analyser::new(Analyser::english_stop_words(), stemming),
        "none" => Analyser::new("", stemming),
        file => {
            let text = read_text(Path::new(file), "`english`, `none` or a file of stop words")?;
            Analyser::new(&text, stemming)
        }
    })
}

fn collection(flags: &RetrievalArguments) -> Result<Collection, CommandError> {
    let source = |path: &Option<PathBuf>| Source::read(path.as_deref().expect("clap requires it"));
    let judged = source(&flags.qrels)?;
    let found = judgements(&judged)?;
    let queries = queries(&source(&flags.queries)?, flags.query_ids.unwrap_or(QueryIds::File))?;
    let documents = documents(&source(&flags.documents)?)?;
    Ok(Collection::new(documents, queries, (&judged, found), flags.query_ids)?)
}

/// An expander with its folder's name.
fn open_expander(
    folder: &Path,
    model: &Arc<ModelStore>,
) -> Result<(String, Arc<Expander>), HeadError> {
    let expander = Expander::open(folder, model)?;
    let whole = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    let name = whole.file_name().map_or_else(|| "expander".into(), |name| name.to_string_lossy());
    Ok((name.into_owned(), Arc::new(expander)))
}

/// Neighbours are weighted by their cosines; dot products have no limits.
fn check_metric(model: &ModelStore) -> Result<(), CommandError> {
    if model.metric() == Metric::Cosine {
        return Ok(());
    }
    let name = model.name();
    Err(CommandError::Usage(format!(
        "the metric of the model {name} is dot, and expansions by neighbours need cosines; choose another model, or --runs rm3"
    )))
}

/// The expansions that are asked for, in the order of the flags, each once. There is a model if one of them needs it.
fn expansions(
    flags: &RetrievalArguments,
    experiment: &Experiment,
    model: Option<(&ModelStore, &mut dyn Engine)>,
) -> Result<Vec<Box<dyn Expansion>>, EvaluationError> {
    let (mut found, mut done) = (Vec::<Box<dyn Expansion>>::new(), Vec::new());
    let mut model = model;
    let words = experiment.words();
    for &run in &flags.runs {
        if done.contains(&run) {
            continue;
        }
        done.push(run);
        match (run, &mut model) {
            (RetrievalRun::Rm3, _) => found.push(Box::new(Rm3)),
            (RetrievalRun::Neighbours, Some((model, engine))) => {
                found.push(Box::new(OfWords::new(model, &words, |asked| search(*engine, &asked))?));
            }
            (RetrievalRun::Centroid, Some((model, engine))) => {
                found.push(Box::new(OfCentroid::new(model, &words, |asked| {
                    search(*engine, &asked)
                })?));
            }
            (RetrievalRun::Bm25 | RetrievalRun::Neighbours | RetrievalRun::Centroid, _) => {}
        }
    }
    Ok(found)
}

fn search(engine: &mut dyn Engine, queries: &[Query]) -> Result<Vec<Vec<Hit>>, EngineError> {
    let mut found = Vec::with_capacity(queries.len());
    for batch in queries.chunks(TOGETHER) {
        found.extend(engine.search(&batch.iter().collect())?);
    }
    Ok(found)
}

/// The report as a table, for people.
fn table(report: &Retrieval) -> String {
    let Retrieval { collection, stemming, stop_words, permutations, runs, .. } = report;
    let Retrieval { folds, repetitions, .. } = report;
    let mut lines = counts(collection);
    let stemming = if *stemming { "Porter stems" } else { "words as they are" };
    let permutations = HumanCount(u64::from(*permutations));
    lines.push(format!(
        "{stemming}, {stop_words} stop words; {repetitions} × {folds}-fold cross-validation; p by {permutations} permutations"
    ));
    if let (Some(model), Some(version)) = (&report.model, &report.version) {
        lines.push(format!("model {}", heading(None, model, version)));
    }
    lines.push(String::new());
    let wide = width(runs.iter().map(|run| &run.name)).max("run".len());
    let measure = |name: &str| format!("  {name:>10} {:>8} {:>7}", "±", "p");
    lines.push(format!(
        "{:wide$}{}{}{}",
        "run",
        measure("MAP"),
        measure("nDCG@10"),
        measure("recall@100")
    ));
    for RunResult { name, measures, against_bm25, .. } in runs {
        let by = |value: f64, of: fn(&Against) -> Difference| {
            let (by, p) = match against_bm25 {
                Some(against) => {
                    let Difference { mean, p } = of(against);
                    // No `-0.0000`.
                    let mean = if mean.abs() < 0.00005 { 0.0 } else { mean };
                    (format!("{mean:+.4}"), p_value(p))
                }
                None => (String::new(), String::new()),
            };
            format!("  {value:>10.4} {by:>8} {p:>7}")
        };
        let line = [
            by(measures.map, |one| one.map),
            by(measures.ndcg_at_10, |one| one.ndcg_at_10),
            by(measures.recall_at_100, |one| one.recall_at_100),
        ];
        lines.push(format!("{name:wide$}{}", line.concat()).trim_end().to_owned());
    }
    lines.push(String::new());
    for RunResult { name, description, chosen, .. } in runs {
        lines.push(format!("{name}: {description}; {}", choices(chosen)));
    }
    let conclusion = report.conclusion();
    if !conclusion.is_empty() {
        lines.extend([String::new(), conclusion]);
    }
    lines.join("\n")
}

/// Of more than chance a few digits are enough, and `0` would be wrong.
fn p_value(p: f64) -> String {
    match p {
        p if p < 0.0001 => "<0.0001".to_owned(),
        p if p < 0.01 => format!("{p:.4}"),
        p => format!("{p:.3}"),
    }
}

fn counts(counts: &Counts) -> Vec<String> {
    let &Counts {
        documents,
        empty_documents,
        queries,
        judged_queries,
        without_relevant,
        unknown_queries,
        relevant,
        unknown_documents,
    } = counts;
    let count = |number: usize| HumanCount(number as u64);
    let mut lines = vec![format!(
        "{} documents ({} empty); {} queries, {} judged, {} without a relevant document; {} relevant documents",
        count(documents),
        count(empty_documents),
        count(queries),
        count(judged_queries),
        count(without_relevant),
        count(relevant),
    )];
    if unknown_queries > 0 {
        let unknown = count(unknown_queries);
        lines.push(format!("left out: {unknown} judged queries that are not among the queries"));
    }
    if unknown_documents > 0 {
        let unknown = count(unknown_documents);
        lines.push(format!(
            "counted as not found: {unknown} relevant documents that are not among the documents"
        ));
    }
    lines
}

/// The parameters that were chosen most often, and how often.
fn choices(chosen: &[Chosen]) -> String {
    let named = chosen.iter().take(SHOWN_CHOICES).map(|Chosen { times, parameters }| {
        let fields = parameters.iter().map(|(name, value)| format!("{name} {value}"));
        format!("{} ({times}×)", fields.collect::<Vec<_>>().join(", "))
    });
    let more = (chosen.len() > SHOWN_CHOICES).then(|| "…".to_owned());
    named.chain(more).collect::<Vec<_>>().join("; ")
}
