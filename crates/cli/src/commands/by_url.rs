//! Many questions to a running service, in few requests: `bulk`, `classify` and `expand` with
//! `--url`.
//!
//! A request that is too large for the service is cut in halves, and one that the service has no
//! room for comes again later.

use std::ops::ControlFlow;
use std::path::Path;
use std::time::{Duration, Instant};

use jobs::JobError;
use jobs::bulk::{Answerer, BulkQuestion, Fault, GoOn, JsonAnswer, RowAnswer, RowAnswers};
use kindred::ModelDescription;
use kindred::heads::{HeadKind, WantedTerms};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::CommandError;
use crate::arguments::ServiceArguments;
use crate::console::Remote;

/// The time that a service may be busy, or its engine restart, before the work ends.
const BUSY: Duration = Duration::from_secs(120);
/// The maximum number of retries after the engine failed: the request may be the cause, and others
/// use that engine, too.
const TRIES: usize = 5;
/// A request of at most this many questions is not cut when the service is busy.
const FEWEST: usize = 64;
/// The interval at which a thread that waits checks whether to go on.
const ASK_EVERY: Duration = Duration::from_millis(100);

/// A service, and the question that it answers.
pub(super) struct ByUrl {
    remote: Remote,
    question: BulkQuestion,
    /// The fields that all requests have.
    common: Value,
    /// The name of the model, and the version of its content.
    model: (String, String),
    engine: String,
    /// The head that is asked, and what the service says about it.
    head: Option<(String, Value)>,
}

/// An answer to `/heads`: the field that is used.
#[derive(Deserialize)]
struct Heads {
    heads: Vec<Value>,
}

/// An answer to many questions.
#[derive(Deserialize)]
struct Answered {
    model: String,
    version: String,
    results: Vec<JsonAnswer>,
}

/// The error of a question, also as the service wrote it.
pub(super) struct Problem {
    pub(super) fault: Fault,
    pub(super) json: JsonAnswer,
}

impl Problem {
    /// `None` if it is no problem document.
    fn new(json: JsonAnswer) -> Option<Self> {
        let (code, detail) = (json.field::<String>("code")?, json.field("detail")?);
        Some(Self { fault: Fault { code: code.into(), detail }, json })
    }
}

/// An answer or an error for each question, in order.
pub(super) type Answers = Vec<Result<JsonAnswer, Problem>>;

/// The outcome of a request.
enum Outcome {
    Answered(Answers),
    /// It is too large: its questions are asked in two halves. A single question has this error.
    TooMuch(Problem),
    /// The service is busy, or its engine restarts.
    Later(Duration, CommandError),
    /// The engine failed.
    Failed(Duration, CommandError),
}

impl ByUrl {
    /// Asks the service for its model and its head. `head` is the kind of head that is needed, and
    /// its name; `question` gets the number of its labels.
    ///
    /// # Errors
    /// If there is no such service.
    pub(super) fn new(
        service: &ServiceArguments,
        head: Option<(HeadKind, Option<&Path>)>,
        question: impl FnOnce(usize) -> BulkQuestion,
    ) -> Result<Self, CommandError> {
        let url = service.url.as_deref().unwrap_or_default();
        let remote = Remote::new(url, service.api_key.as_deref())?;
        let about: ModelDescription<'_> = get(&remote, "/model")?;
        let head = match head {
            None => None,
            Some((kind, name)) => {
                let name = name.map(Path::to_string_lossy);
                Some(head_of(&remote, kind, name.as_deref())?)
            }
        };
        let labels = head.as_ref().and_then(|(_, facts)| Some(facts["labels"].as_array()?.len()));
        let question = question(labels.unwrap_or(1));
        let mut common = common(&question);
        if let Some((name, _)) = &head {
            common["head"] = json!(name);
        }
        let model = (about.name.into_owned(), about.version.into_owned());
        Ok(Self { remote, question, common, model, engine: about.engine.name.into_owned(), head })
    }

    /// The same, with another field in all requests.
    pub(super) fn with(mut self, field: &str, value: Value) -> Self {
        self.common[field] = value;
        self
    }

    pub(super) fn question(&self) -> &BulkQuestion {
        &self.question
    }

    /// The name of the head.
    pub(super) fn head(&self) -> Option<&str> {
        self.head.as_ref().map(|(name, _)| &**name)
    }

    /// The most tokens of a text that the head reads, if it has such a limit.
    pub(super) fn limit(&self) -> Option<u64> {
        self.head.as_ref().and_then(|(_, facts)| facts["tokens"]["limit"].as_u64())
    }

    /// The name of the engine.
    pub(super) fn engine(&self) -> &str {
        &self.engine
    }

    /// An answer or an error for each text, in order. `None` if the caller does not go on.
    pub(super) fn ask(
        &self,
        texts: &[&str],
        go_on: GoOn<'_>,
    ) -> Result<Option<Answers>, CommandError> {
        let mut all = Answers::with_capacity(texts.len());
        let (mut busy_since, mut failures) = (None, 0);
        // The first is the last.
        let mut to_ask = vec![texts];
        while let Some(some) = to_ask.pop() {
            if go_on().is_break() {
                return Ok(None);
            }
            let halves = some.split_at(some.len() / 2);
            match self.request(some)? {
                Outcome::Answered(answers) => {
                    all.extend(answers);
                    (busy_since, failures) = (None, 0);
                }
                Outcome::TooMuch(problem) if some.len() == 1 => all.push(Err(problem)),
                Outcome::TooMuch(_) => to_ask.extend([halves.1, halves.0]),
                Outcome::Later(delay, busy) => {
                    let since = *busy_since.get_or_insert_with(Instant::now);
                    if since.elapsed() > BUSY {
                        return Err(busy);
                    }
                    if pause(delay, go_on).is_break() {
                        return Ok(None);
                    }
                    match some.len() > FEWEST {
                        true => to_ask.extend([halves.1, halves.0]),
                        false => to_ask.push(some),
                    }
                }
                Outcome::Failed(delay, error) => {
                    failures += 1;
                    if failures > TRIES {
                        return Err(error);
                    }
                    if pause(delay, go_on).is_break() {
                        return Ok(None);
                    }
                    to_ask.push(some);
                }
            }
        }
        Ok(Some(all))
    }

    fn request(&self, texts: &[&str]) -> Result<Outcome, CommandError> {
        let (path, list, item) = route(&self.question);
        let mut body = self.common.clone();
        body[list] = match item {
            None => json!(texts),
            Some(field) => texts.iter().map(|text| json!({ field: text })).collect(),
        };
        let received = self.remote.send(path, Some(&body), None)?;
        if received.status != 200
            && let Some(problem) =
                serde_json::from_slice(&received.body).ok().and_then(Problem::new)
        {
            let delay = received.retry_after.unwrap_or(Duration::from_secs(1));
            let refused = |problem: Problem| CommandError::Refused(problem.fault.detail);
            match &*problem.fault.code {
                // One question has time enough once the service has: that is no error of its own,
                // which bulk work would keep.
                "deadline_passed" if texts.len() == 1 => {
                    return Ok(Outcome::Later(delay, refused(problem)));
                }
                "too_many_results" | "body_too_large" | "deadline_passed" => {
                    return Ok(Outcome::TooMuch(problem));
                }
                "queue_full" | "over_limit" | "engine_restarting" => {
                    return Ok(Outcome::Later(delay, refused(problem)));
                }
                "engine_failed" => return Ok(Outcome::Failed(delay, refused(problem))),
                _ => {}
            }
        }
        let Answered { model, version, results } =
            self.remote.read(received.status, &received.body)?;
        if (&model, &version) != (&self.model.0, &self.model.1) {
            return Err(CommandError::Refused(format!(
                "the service has another model now: {model} ({version}) instead of {} ({}); remove what is \
                 unfinished, and begin anew",
                self.model.0, self.model.1
            )));
        }
        if results.len() != texts.len() {
            let found = format!("{} answers to {} questions", results.len(), texts.len());
            return Err(self.remote.strange(found));
        }
        let answers = results.into_iter().map(|one| self.check(one)).collect::<Result<_, _>>()?;
        Ok(Outcome::Answered(answers))
    }

    /// An answer, or the error that stands in its place.
    fn check(&self, answer: JsonAnswer) -> Result<Result<JsonAnswer, Problem>, CommandError> {
        if let Some(problem) = answer.field("error").and_then(Problem::new) {
            return Ok(Err(problem));
        }
        let field = self.question.field();
        match answer.has(field) {
            true => Ok(Ok(answer)),
            false => Err(self.remote.strange(format!("an answer has no {field}"))),
        }
    }
}

impl Answerer for ByUrl {
    fn model(&self) -> (&str, &str) {
        (&self.model.0, &self.model.1)
    }

    /// Errors of a service have suggestions, and those of an engine in this process do not. So work
    /// goes on only where it was begun: here, or at a service.
    fn about(&self) -> Value {
        let mut about = json!({"service": true});
        if let Some((name, facts)) = &self.head {
            let facts = blake3::hash(facts.to_string().as_bytes()).to_hex();
            about["head"] = json!(format!("{name} {}", &facts[..16]));
        }
        if let BulkQuestion::Classify(..) = self.question {
            // Class scores have the same bits on one kind of engine.
            about["engine"] = json!(self.engine);
        }
        about
    }

    fn answers(&self, texts: &[&str], go_on: GoOn<'_>) -> Result<RowAnswers<'_>, JobError> {
        let answers = self.ask(texts, go_on).map_err(|error| match error {
            CommandError::Refused(reason) => JobError::Refused(reason),
            error => JobError::Answerer(error.to_string()),
        })?;
        let one = |answer: Result<JsonAnswer, Problem>| {
            answer.map(RowAnswer::Json).map_err(|problem| problem.fault)
        };
        Ok(answers.map(|answers| answers.into_iter().map(one).collect()))
    }
}

fn get<T: DeserializeOwned>(remote: &Remote, path: &str) -> Result<T, CommandError> {
    let received = remote.send(path, None, None)?;
    remote.read(received.status, &received.body)
}

/// The head of this kind and name, or the only one of this kind: its name, and what the service
/// says about it.
fn head_of(
    remote: &Remote,
    kind: HeadKind,
    name: Option<&str>,
) -> Result<(String, Value), CommandError> {
    let Heads { heads } = get(remote, "/heads")?;
    let names = |heads: &[&Value]| {
        let names: Vec<&str> = heads.iter().filter_map(|head| head["name"].as_str()).collect();
        if names.is_empty() { "none".to_owned() } else { names.join(", ") }
    };
    let fits: Vec<&Value> = heads.iter().filter(|head| head["kind"] == json!(kind)).collect();
    let named = |head: &&&Value| name.is_none_or(|name| head["name"] == name);
    let refused = match (&fits.iter().filter(named).collect::<Vec<_>>()[..], name) {
        ([head], _) => {
            let name = head["name"].as_str().unwrap_or_default().to_owned();
            return Ok((name, (**head).clone()));
        }
        (_, None) if fits.is_empty() => {
            format!("the service has no {}; serve one with `kindred serve --head DIR`", kind.name())
        }
        (_, None) => format!("there are several heads; name one with --head: {}", names(&fits)),
        (_, Some(name)) => match heads.iter().find(|head| head["name"] == name) {
            Some(other) => format!(
                "the head `{name}` is of the kind {}, but {} is needed; choose from: {}",
                other["kind"].as_str().unwrap_or_default(),
                kind.with_article(),
                names(&fits)
            ),
            None => format!(
                "the service has no head `{name}` (with --url, --head is a name, no folder); heads: {}",
                names(&heads.iter().collect::<Vec<_>>())
            ),
        },
    };
    Err(CommandError::Refused(refused))
}

/// The route that answers a question, the field with the questions, and the field of each.
fn route(question: &BulkQuestion) -> (&'static str, &'static str, Option<&'static str>) {
    match question {
        BulkQuestion::Nearest(_) => ("/nearest", "queries", Some("word")),
        BulkQuestion::NearestOfTexts(_) => ("/nearest", "queries", Some("text")),
        BulkQuestion::Analogy(_) => ("/analogy", "queries", Some("expression")),
        BulkQuestion::Classify(..) => ("/classify", "texts", None),
        BulkQuestion::Expand(..) => ("/expand", "texts", None),
    }
}

/// The options of a question, as the fields of a request.
fn common(question: &BulkQuestion) -> Value {
    match question {
        BulkQuestion::Nearest(options)
        | BulkQuestion::NearestOfTexts(options)
        | BulkQuestion::Analogy(options) => options.to_json(),
        BulkQuestion::Classify(wanted, _) => {
            let mut body = json!({"scores": true});
            if let Some(top) = wanted.top {
                body["top"] = json!(top);
            }
            if let Some(threshold) = wanted.threshold {
                body["threshold"] = json!(threshold);
            }
            body
        }
        BulkQuestion::Expand(wanted, form) => {
            let WantedTerms { top, min_weight, max_ratio, filter } = wanted;
            let mut body = json!({
                "top": top, "min_weight": min_weight, "max_ratio": max_ratio,
                "format": form.name(),
            });
            if let Some(filter) = filter {
                body["filter"] = json!(filter);
            }
            body
        }
    }
}

/// Waits, unless the caller does not go on.
fn pause(delay: Duration, go_on: GoOn<'_>) -> ControlFlow<()> {
    let until = Instant::now() + delay;
    while Instant::now() < until {
        go_on()?;
        std::thread::sleep(ASK_EVERY.min(delay));
    }
    ControlFlow::Continue(())
}

#[cfg(test)]
mod tests;
