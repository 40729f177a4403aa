//! A model in this process, asked through the facade.

use std::sync::Arc;
use std::time::{Duration, Instant};

use kindred::ReferenceEngine;
use kindred::heads::{AnyHead, HeadKind, REASONS, WantedTerms};
use kindred::live::Live;
use kindred::options::DEFAULT_K;
use kindred::question::{Notes, Similarity, odd_one_out, similarity};
use kindred::rows::{AtPosition, Rows};
use kindred::{
    Classified, Error, ImpliedTerms, Kindred, Limits, ModelDescription, ModelStore, Options, Ranks,
    Settings, Side, Target, Unknown,
};

use super::answer::{
    Found, Label, ModelAnswer, OddAnswer, PairScore, RankAnswer, RankedWord, SimilarityAnswer,
    TextAnswer,
};
use super::service::{ListedHead, MAX_OFFERED, Outcome, Reply, Service, Times, no_command};
use crate::arguments::AnswerSource;
use crate::error::CommandError;
use server::assembly::wanted_engine;
use server::config::ServeFlags;
use server::models::{LoadError, OneModel, ServedHead, find_head};

/// Time limit of a question. It is long, because nobody else waits for this engine.
const PATIENCE: Duration = Duration::from_secs(60 * 60);

/// A model with its engine and its heads.
pub(super) struct Local {
    kindred: Kindred,
    heads: Vec<ServedHead>,
}

impl Local {
    /// The model, the heads and the engine that `serve` would use.
    pub(super) fn with_engine(source: &AnswerSource) -> Result<Self, CommandError> {
        let (one, live) = open(source)?;
        let heads = one.heads()?;
        Self::start(one, live, heads)
    }

    /// The same model and engine without heads, for questions that ask none.
    pub(super) fn without_heads(source: &AnswerSource) -> Result<Self, CommandError> {
        let (one, live) = open(source)?;
        Self::start(one, live, Vec::new())
    }

    fn start(
        one: OneModel,
        live: Option<Live>,
        heads: Vec<ServedHead>,
    ) -> Result<Self, CommandError> {
        let settings = settings(&one);
        let kindred = match live {
            Some(live) => Kindred::start_live(live.into(), settings),
            None => Kindred::start(one.model.into(), settings),
        };
        Ok(Self { kindred: kindred.map_err(LoadError::from)?, heads })
    }

    /// The same model for questions that need no search: without heads, and the plain reference as
    /// its engine, which needs no time to start.
    pub(super) fn without_search(source: &AnswerSource) -> Result<Self, CommandError> {
        match open(source)? {
            (one, None) => Self::of_reference(one),
            (one, live) => Self::start(one, live, Vec::new()),
        }
    }

    /// The same model with the plain reference, and without heads. A model whose rows were changed
    /// has none.
    pub(super) fn with_reference(source: &AnswerSource) -> Result<Self, CommandError> {
        Self::of_reference(OneModel::open(&flags(source))?)
    }

    fn of_reference(one: OneModel) -> Result<Self, CommandError> {
        let settings = settings(&one);
        let kindred = Kindred::with_engine(one.model.into(), settings, |model| {
            Ok(Box::new(ReferenceEngine::new(model.clone())))
        });
        Ok(Self { kindred: kindred.map_err(LoadError::from)?, heads: Vec::new() })
    }
}

/// Opens the model, with the settings that `serve` would read from flags, environment and file.
fn open(source: &AnswerSource) -> Result<(OneModel, Option<Live>), LoadError> {
    OneModel::open_with_changes(&flags(source))
}

fn flags(source: &AnswerSource) -> ServeFlags {
    ServeFlags {
        model: source.model.iter().cloned().collect(),
        head: source.head.clone(),
        device: source.device.clone(),
        threads: source.threads,
        keep_tables: source.keep_tables,
        cache_dir: source.cache_dir.clone(),
        ..ServeFlags::default()
    }
}

/// The settings of the engine. Those of the network are left out.
fn settings(OneModel { config, model }: &OneModel) -> Settings {
    let wanted = wanted_engine(config);
    Settings {
        device: wanted.device,
        placement: config.placement_of(model.name()),
        threads: wanted.threads,
        keep_tables: wanted.keep_tables,
        heads: wanted.heads,
        timeout: PATIENCE,
        limits: Limits {
            hang_timeout: PATIENCE,
            hang_timeout_beside_others: PATIENCE,
            linger: Duration::ZERO,
            ..Settings::default().limits
        },
        ..Settings::default()
    }
}

/// The rows at a position, or those of a model that does not change.
fn rows<'a>(model: &'a ModelStore, at: Option<&'a Arc<AtPosition>>) -> &'a dyn Rows {
    match at {
        Some(at) => &**at,
        None => model,
    }
}

/// The times of a question that was asked then, to whole microseconds.
fn times(kindred::Times { queue, engine }: kindred::Times, asked: Instant) -> Option<Times> {
    let [queue, engine, total] =
        [queue, engine, asked.elapsed()].map(|time| (time.as_secs_f64() * 1e6).round() / 1e3);
    Some(Times { queue, engine, total, round_trip: None })
}

/// The answer to a single text about this model.
fn only<T>(model: &ModelStore, answers: Result<Vec<Result<T, Error>>, Error>) -> Result<T, Error> {
    let answer = answers?.pop().unwrap_or(Err(Error::Internal));
    answer.map_err(|error| error.with_suggestions(model))
}

impl Service for Local {
    fn ask(&self, target: &Target, options: &Options) -> Outcome<Reply<ModelAnswer<'_>>> {
        let asked = Instant::now();
        let found = self.kindred.nearest(target.clone(), options.clone()).wait()?;
        let (model, times) = (self.kindred.model(), times(found.times, asked));
        let (model, version) = (model.name().into(), model.version().into());
        let position = found.position;
        Ok(Reply { answer: ModelAnswer { model, version, position, found }, times })
    }

    fn similarity(
        &self,
        sides: [Side; 2],
        unknown: Option<Unknown>,
    ) -> Outcome<Reply<SimilarityAnswer<'_>>> {
        let (model, at) = (self.kindred.model().store(), self.kindred.at());
        let rows = rows(model, at.as_ref());
        let found = similarity(rows, sides, unknown);
        let found = found.map_err(|error| error.with_suggestions(rows))?;
        let Similarity { score, skipped, subwords } = found;
        let results = vec![PairScore { score, skipped, subwords }];
        let (model, version) = (model.name().into(), model.version().into());
        Ok(Reply { answer: SimilarityAnswer { model, version, results }, times: None })
    }

    fn odd_one_out(
        &self,
        words: Vec<String>,
        unknown: Option<Unknown>,
    ) -> Outcome<Reply<OddAnswer<'_>>> {
        let (model, at) = (self.kindred.model().store(), self.kindred.at());
        let rows = rows(model, at.as_ref());
        let found = odd_one_out(rows, words, unknown);
        let found = found.map_err(|error| error.with_suggestions(rows))?;
        let ranked = found.ranked.iter().map(|hit| RankedWord {
            word: found.word(rows, hit.row).to_owned().into(),
            score: hit.score,
            row: (!found.is_added(hit.row)).then(|| rows.number(hit.row)),
        });
        let ranked: Vec<RankedWord<'_>> = ranked.collect();
        let odd_one_out = ranked.last().ok_or(Error::Internal)?.word.clone();
        let Notes { skipped, subwords, .. } = found.notes;
        let (model, version) = (model.name().into(), model.version().into());
        let answer = OddAnswer { model, version, odd_one_out, ranked, skipped, subwords };
        Ok(Reply { answer, times: None })
    }

    fn rank(
        &self,
        words: Vec<String>,
        target: &Target,
        options: &Options,
    ) -> Outcome<Reply<RankAnswer<'_>>> {
        let asked = Instant::now();
        let found = self.kindred.rank(words, target.clone(), options.clone()).wait()?;
        let (model, times) = (self.kindred.model(), times(found.times, asked));
        let (model, version) = (model.name().into(), model.version().into());
        let Ranks { ranked, used, skipped, subwords, tokens, position, .. } = found;
        let answer =
            RankAnswer { model, version, position, ranked, used, skipped, subwords, tokens };
        Ok(Reply { answer, times })
    }

    fn ask_head<'a>(
        &'a self,
        kind: HeadKind,
        head: Option<&str>,
        text: &'a str,
        options: &Options,
    ) -> Outcome<Reply<TextAnswer<'a>>> {
        let (asked, model) = (Instant::now(), self.kindred.model().store());
        let ServedHead { name, head, .. } =
            find_head(&self.heads, model.name(), head, kind).map_err(CommandError::Refused)?;
        let (found, unknown, cut, explanation, of_engine) = match head {
            AnyHead::Classifier(head) => {
                let found = only(model, self.kindred.classify(head, [text]).wait())?;
                let explanation = match options.explain {
                    Some(true) => found.explanation(model, head, text, REASONS),
                    _ => None,
                };
                let Classified { labels, unknown, is_cut, times } = found;
                let labels = labels.into_iter();
                let labels =
                    labels.map(|one| Label { label: one.name, probability: one.probability });
                (Found::Labels(labels.collect()), unknown, is_cut, explanation, times)
            }
            AnyHead::Expander(expander) => {
                let top = options.k.unwrap_or(DEFAULT_K) as usize;
                let filter = options.filter.clone();
                let wanted = WantedTerms { top, filter, ..WantedTerms::default() };
                let found = only(model, self.kindred.expand(expander, [text], wanted).wait())?;
                let ImpliedTerms { terms, unknown, is_cut, times } = found;
                (Found::Terms(terms), unknown, is_cut, None, times)
            }
            _ => return Err(no_command(kind)),
        };
        let (model, version) = (model.name().into(), model.version().into());
        let head = name.into();
        let answer = TextAnswer { model, version, head, found, unknown, cut, explanation };
        Ok(Reply { answer, times: times(of_engine, asked) })
    }

    fn facts(&self) -> Outcome<ModelDescription<'_>> {
        Ok(self.kindred.description())
    }

    fn heads(&self) -> Outcome<Vec<ListedHead>> {
        let listed =
            |one: &ServedHead| ListedHead { name: one.name.clone(), kind: one.head.kind() };
        Ok(self.heads.iter().map(listed).collect())
    }

    fn words_with_prefix(&self, prefix: &str) -> Outcome<Vec<String>> {
        let (model, at) = (self.kindred.model(), self.kindred.at());
        let words = model.words_with_prefix(prefix, MAX_OFFERED).into_iter();
        let rows = rows(model.store(), at.as_ref());
        Ok(words.filter(|word| rows.row_of(word).is_some()).map(str::to_owned).collect())
    }

    fn has_word(&self, word: &str) -> Outcome<bool> {
        let at = self.kindred.at();
        Ok(rows(self.kindred.model().store(), at.as_ref()).row_of(word).is_some())
    }

    fn name(&self) -> String {
        "the local model".to_owned()
    }
}
