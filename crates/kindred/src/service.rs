//! A model with an engine of its own, and the questions that they answer.

mod classify;
mod compare;
mod evaluate;
mod expand;
mod held;
mod settings;

use std::fmt;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use contract::{Engine, EngineDescription, Staging};
use filters::FilterSets;
use model_store::ModelStore;
use scheduler::account::Account;

use crate::answer::{Answer, Ranks};
use crate::answering::{Answering, Timer};
use crate::asking::{Asking, Times};
use crate::description::ModelDescription;
use crate::engines::{self, EngineStartError, HadGpu, Makers, Wanted};
use crate::live::Live;
use crate::placement::Placed;
use crate::question::{Checked, MAX_RANKED, meeting, prepare, prepare_rank};
use crate::queue::{self, DeviceThreads, QueueHandle, QueueStatistics, Until};
use crate::rows::{AtPosition, Rows};
use crate::search::{Search, SearchResult};
use crate::warm_up::WarmUp;
use crate::{Error, Model, Options, Target};
pub use expand::check_terms;
use held::Held;
pub use settings::Settings;

/// Long work that is not answered by then never will be: the engine is given up long before.
const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);

/// A model with an engine on a thread of its own and a scheduler in front: any number of threads
/// and tasks can ask it at the same time, and queries that wait together are answered together.
/// Clones share the engine; it ends with the last of them.
///
/// ```
/// use kindred::{Kindred, Model, Options, Settings};
///
/// let kindred = Kindred::start(Model::demo()?, Settings::default())?;
/// let answer = kindred.analogy("king - man + woman", Options::new().k(3)).wait()?;
/// assert_eq!(answer.neighbors[0].word, "queen");
///
/// let error = kindred.nearest("frogg", Options::new()).wait().unwrap_err();
/// assert!(error.to_string().contains("frog"), "{error}");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// Every question returns an [`Answering`]: await it on any executor, or wait for it as here.
#[derive(Clone)]
pub struct Kindred {
    shared: Arc<Shared>,
    /// Callers share the engine's time fairly.
    account: Arc<Account>,
    /// How long an answer may take, unless a question says otherwise.
    timeout: Duration,
    /// Whether unknown words get suggestions.
    suggests: bool,
    /// The position that all questions are about, if they are about one.
    pinned: Option<Arc<AtPosition>>,
}

/// Vectors that [`Kindred::staging`] has room for together: a pass of a GPU.
pub const STAGED_TOGETHER: usize = 1024;

/// Memory for the vectors of a few passes, `[dim]` each; none if they would take very much. Until
/// it is used, it takes none.
fn staging(dim: usize) -> Option<Arc<Staging>> {
    const BLOCKS: usize = 4;
    const MOST_COMPONENTS: usize = 1 << 21;
    let components = STAGED_TOGETHER * dim;
    (components <= MOST_COMPONENTS).then(|| Arc::new(Staging::new(BLOCKS, components)))
}

/// Cores from which on a caller may watch for its answer, beside the thread of the engine.
const CORES_TO_WATCH: usize = 4;

struct Shared {
    model: Model,
    /// The table, if its rows change; the model is its base.
    live: Option<Arc<Live>>,
    /// Sets of rows that filters have made.
    sets: FilterSets,
    queue: QueueHandle,
    // Dropped after the queue, which ends them.
    _threads: OwnThreads,
    engine: EngineDescription,
    /// For vectors on their way to a GPU.
    staging: Option<Arc<Staging>>,
    /// Which GPUs have which rows, if several were given.
    placed: Option<Placed>,
    // Dropped last: deadlines are watched until the engine has ended.
    timer: Timer,
}

/// The threads of the engine. Dropping them waits until they have ended, so that the device is
/// released in order. The lock is only there so that threads may share this.
struct OwnThreads(Mutex<Option<DeviceThreads>>);

impl Drop for OwnThreads {
    fn drop(&mut self) {
        /// An engine that hangs is not waited for.
        const STOP_TIMEOUT: Duration = Duration::from_secs(5);
        if let Ok(Some(threads)) = self.0.get_mut().map(Option::take) {
            threads.join(STOP_TIMEOUT);
        }
    }
}

impl Kindred {
    /// Starts the engine for a model. Before this returns, the engine has answered queries whose
    /// answers are known.
    ///
    /// # Errors
    /// If the device that was asked for is not there, or its engine gives wrong answers.
    pub fn start(model: Model, settings: Settings) -> Result<Self, EngineStartError> {
        Self::start_for(model, None, settings)
    }

    /// Starts the engine for a table whose rows change. A question is about the rows that are there
    /// when it is asked, and its answer tells their position.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    pub fn start_live(live: Arc<Live>, settings: Settings) -> Result<Self, EngineStartError> {
        Self::start_for(Model::from(live.base().clone()), Some(live), settings)
    }

    fn start_for(
        model: Model,
        live: Option<Arc<Live>>,
        settings: Settings,
    ) -> Result<Self, EngineStartError> {
        let Settings { device, placement, threads, keep_tables, heads, .. } = settings.clone();
        let had_gpu = HadGpu::default();
        let staging = staging(model.store().dim());
        let own = staging.clone();
        let room = live.as_ref().map_or(0, |live| live.room());
        let wanted =
            Wanted { device, placement, threads, keep_tables, heads, had_gpu, staging, room };
        let makers = engines::makers(model.store(), &wanted, None)?;
        let makers = match &live {
            Some(live) => live.makers(makers, threads),
            None => makers,
        };
        let Makers { each, placed } = makers;
        let makers = each.into_iter().map(|mut make| move || make(WarmUp::for_nobody()));
        let makers = makers.collect();
        Self::with_makers(model, live, &settings, (own, placed), makers)
    }

    /// Like [`start`](Self::start), with your own engine. `make` runs on the engine's thread, and
    /// again whenever the engine fails.
    ///
    /// ```
    /// use cpu_core::ReferenceEngine;
    /// use kindred::{Kindred, Model, Options, Settings};
    ///
    /// let model = Model::from_rows("tiny", &[("a", [1.0, 0.0]), ("b", [1.0, 1.0])])?;
    /// let kindred = Kindred::with_engine(model, Settings::default(), |model| {
    ///     Ok(Box::new(ReferenceEngine::new(model.clone())))
    /// })?;
    /// let answer = kindred.nearest("a", Options::new()).wait()?;
    /// assert_eq!(answer.words().collect::<Vec<_>>(), ["b"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// If `make` fails or panics, or the system has no threads left.
    pub fn with_engine(
        model: Model,
        settings: Settings,
        mut make: impl FnMut(&Arc<ModelStore>) -> Result<Box<dyn Engine>, EngineStartError>
        + Send
        + 'static,
    ) -> Result<Self, EngineStartError> {
        let store = model.store().clone();
        Self::with_makers(model, None, &settings, (None, None), vec![move || make(&store)])
    }

    fn with_makers<F>(
        model: Model,
        live: Option<Arc<Live>>,
        settings: &Settings,
        (staging, placed): (Option<Arc<Staging>>, Option<Placed>),
        makers: Vec<F>,
    ) -> Result<Self, EngineStartError>
    where
        F: FnMut() -> Result<Box<dyn Engine>, EngineStartError> + Send + 'static,
    {
        let mut timer = Timer::start().map_err(EngineStartError::Thread)?;
        let &Settings { limits, max_batch_queries, timeout, .. } = settings;
        let (queue, threads) =
            queue::start(limits, max_batch_queries, &timer.handle, Until::All, None, makers)?;
        let engine = threads.description().clone();
        // A GPU leaves the cores to others.
        let cores = thread::available_parallelism().map_or(1, NonZeroUsize::get);
        let is_gpu = engine.name == "cuda";
        if is_gpu && cores >= CORES_TO_WATCH {
            timer.let_one_watch();
        }
        let staging = staging.filter(|_| is_gpu);
        let _threads = OwnThreads(Mutex::new(Some(threads)));
        let sets = FilterSets::for_model(model.store());
        let shared = Shared { model, live, sets, queue, _threads, engine, staging, placed, timer };
        let shared = Arc::new(shared);
        Ok(Self { shared, account: Account::new(), timeout, suggests: true, pinned: None })
    }

    /// Another caller of the same engine: the scheduler shares the engine's time fairly between
    /// callers.
    #[must_use]
    pub fn another_caller(&self) -> Self {
        Self { account: Account::new(), ..self.clone() }
    }

    /// The same caller, for work that may take hours: an answer may take a day unless a question
    /// says otherwise, and unknown words get no suggestions, which take longer than searches.
    #[must_use]
    pub fn for_long_work(&self) -> Self {
        Self { timeout: LONGEST, suggests: false, ..self.clone() }
    }

    /// The table, if its rows change.
    pub fn live(&self) -> Option<&Arc<Live>> {
        self.shared.live.as_ref()
    }

    /// The same caller, whose questions are all about the rows that are there now; with a model that
    /// does not change, the same as before.
    #[must_use]
    pub fn pinned(&self) -> Self {
        let pinned = self.pinned.clone();
        let pinned = pinned.or_else(|| self.shared.live.as_ref().map(|live| live.now()));
        Self { pinned, ..self.clone() }
    }

    /// The position that a question is about that is asked now, if rows change.
    pub fn at(&self) -> Option<Arc<AtPosition>> {
        match self.held() {
            Held::At(position) => Some(position),
            Held::Model(_) => None,
        }
    }

    /// The rows that a question is about that is asked now.
    fn held(&self) -> Held<'_> {
        match (&self.pinned, &self.shared.live) {
            (Some(pinned), _) => Held::At(pinned.clone()),
            (None, Some(live)) => Held::At(live.now()),
            (None, None) => Held::Model(self.store()),
        }
    }

    /// The model; of a table whose rows change, its base.
    pub fn model(&self) -> &Model {
        &self.shared.model
    }

    /// The sets of rows that filters of the model have made.
    pub fn sets(&self) -> &FilterSets {
        &self.shared.sets
    }

    /// How many rows meet a filter.
    ///
    /// ```
    /// use kindred::{Kindred, Model, Settings};
    ///
    /// let kindred = Kindred::start(Model::demo()?, Settings::default())?;
    /// assert_eq!(kindred.count("key IN [frog, toad, frogg]")?, 2);
    ///
    /// let error = kindred.count("price < 80").unwrap_err();
    /// assert!(error.to_string().contains("column 1: the model has no attribute `price`"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::InvalidFilter`].
    pub fn count(&self, filter: &str) -> Result<usize, Error> {
        Ok(meeting(self.held().rows(), self.sets(), filter)?.len())
    }

    /// The engine's name and what it runs on.
    pub fn engine(&self) -> &EngineDescription {
        &self.shared.engine
    }

    /// The model and the engine that answers for it, as the HTTP API describes them.
    pub fn description(&self) -> ModelDescription<'_> {
        let about = ModelDescription::new(self.store(), self.engine(), self.shared.placed.as_ref());
        about.at(self.at().as_deref())
    }

    /// What queue and engine have done so far.
    pub fn statistics(&self) -> QueueStatistics {
        self.shared.queue.statistics()
    }

    /// The nearest neighbours of a word by its exact bytes, of a vector `[dim]`, or of any other
    /// [`Target`].
    ///
    /// ```
    /// use kindred::{Kindred, Model, Options, Settings, Target};
    ///
    /// let kindred = Kindred::start(Model::demo()?, Settings::default())?;
    /// let of_text = kindred.nearest(Target::text("The quick brown fox!"), Options::new()).wait()?;
    /// assert!(of_text.used.is_some_and(|words| words.contains(&"quick".into())));
    ///
    /// let vector = kindred.model().vector(100).unwrap();
    /// let of_vector = kindred.nearest(vector, Options::new().k(1)).wait()?;
    /// assert_eq!(of_vector.neighbors[0].row, 100);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// See [`Error`].
    pub fn nearest(
        &self,
        target: impl Into<Target>,
        options: Options,
    ) -> Answering<'_, Result<Answer<'_>, Error>> {
        self.ask(Ok(target.into()), options)
    }

    /// The words nearest to an expression, in the grammar of [`expression`](crate::expression) and
    /// by any [`Method`](crate::Method).
    ///
    /// ```
    /// use kindred::{Kindred, Method, Model, Options, Settings};
    ///
    /// let kindred = Kindred::start(Model::demo()?, Settings::default())?;
    /// let options = Options::new().method(Method::ThreeCosMul).explain(true).k(1);
    /// let answer = kindred.analogy("king - man + woman", options).wait()?;
    /// assert_eq!(answer.neighbors[0].terms.as_ref().map(Vec::len), Some(3));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// See [`Error`].
    pub fn analogy(
        &self,
        expression: &str,
        options: Options,
    ) -> Answering<'_, Result<Answer<'_>, Error>> {
        self.ask(Target::expression(expression), options)
    }

    fn ask(
        &self,
        target: Result<Target, Error>,
        options: Options,
    ) -> Answering<'_, Result<Answer<'_>, Error>> {
        let asking = self.asking(options.timeout_ms);
        let all = target.map(|target| self.search(asking, vec![(target, options)]));
        self.answering(async {
            let mut answers = all?.await?;
            answers.pop().unwrap_or(Err(Error::Internal))
        })
    }

    /// Many questions together, each with options of its own: one pass answers those that fit into
    /// it. Returns an answer or an error for each, in order. The earliest of their deadlines holds
    /// for all.
    ///
    /// ```
    /// use kindred::{Kindred, Model, Options, Settings};
    ///
    /// let kindred = Kindred::start(Model::demo()?, Settings::default())?;
    /// let asked = ["frog", "frogg"].map(|word| (word.into(), Options::new().k(2)));
    /// let answers = kindred.ask_all(asked).wait()?;
    /// assert!(answers[0].is_ok() && answers[1].is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::NotAnswered`] for all of them.
    pub fn ask_all(
        &self,
        asked: impl IntoIterator<Item = (Target, Options)>,
    ) -> Answering<'_, Result<Vec<Result<Answer<'_>, Error>>, Error>> {
        let asked: Vec<(Target, Options)> = asked.into_iter().collect();
        let timeout = asked.iter().filter_map(|(_, options)| options.timeout_ms).min();
        self.answering(self.search(self.asking(timeout), asked))
    }

    /// Prepares the questions immediately, and asks them when the future is polled.
    fn search<'a>(
        &'a self,
        asking: Asking<'a>,
        asked: Vec<(Target, Options)>,
    ) -> impl Future<Output = Result<Vec<Result<Answer<'a>, Error>>, Error>> + Send {
        let held = self.held();
        let mut prepared = Vec::with_capacity(asked.len());
        let faults = asked.into_iter().map(|(target, options)| {
            let model = held.rows();
            let query = Checked::new(model, self.sets(), options, None)
                .and_then(|options| prepare(model, target, &options))
                .map_err(|error| match self.suggests {
                    true => error.with_suggestions(model),
                    false => error,
                });
            query.map(|query| prepared.push(query))
        });
        let faults: Vec<Result<(), Error>> = faults.collect();
        async move {
            let mut search = Search::new(prepared);
            while let Some(to_pick) = search.round(asking).await? {
                search.take(to_pick.pick(held.rows(), || Ok::<_, Error>(()))?);
            }
            let (found, times) = search.done();
            let mut found = found.into_iter();
            let answer = |found: SearchResult| held.answer(found, times);
            let each = faults.into_iter().map(|fault| {
                // `found` is in the order of the questions that became queries.
                fault.and_then(|()| found.next().map(answer).ok_or(Error::Internal))
            });
            Ok(each.collect())
        }
    }

    /// The ranks of some words among the neighbours of a target, by one pass over all rows.
    ///
    /// ```
    /// use kindred::{Kindred, Model, Options, Settings};
    ///
    /// let kindred = Kindred::start(Model::demo()?, Settings::default())?;
    /// let ranks = kindred.rank(["toad", "car"], "frog", Options::new()).wait()?;
    /// assert!(ranks.ranked[0].rank < ranks.ranked[1].rank);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// See [`Error`]; [`Error::InvalidValue`] unless there are 1 to [`MAX_RANKED`] words.
    pub fn rank<W: Into<String>>(
        &self,
        words: impl IntoIterator<Item = W>,
        target: impl Into<Target>,
        options: Options,
    ) -> Answering<'_, Result<Ranks<'_>, Error>> {
        let (asking, held) = (self.asking(options.timeout_ms), self.held());
        let words: Vec<String> = words.into_iter().map(Into::into).collect();
        let prepared = if (1..=MAX_RANKED).contains(&words.len()) {
            let model = held.rows();
            Checked::new(model, self.sets(), options, None)
                .and_then(|options| prepare_rank(model, words, target.into(), &options))
                .map_err(|error| error.with_suggestions(model))
        } else {
            Err(Error::invalid("words", "a list of 1 to 1000 words"))
        };
        self.answering(async move {
            let (query, notes) = prepared?;
            let answer = asking.full_pass(vec![query]).await?;
            let found = answer.responses.first().ok_or(Error::Internal)?;
            let times = Times { queue: answer.queued, engine: answer.device };
            Ok(held.ranks(&found.ranks, notes, times))
        })
    }

    fn store(&self) -> &ModelStore {
        self.shared.model.store()
    }

    /// What checked queries are asked with: from now on they have this time, or the default.
    pub fn asking(&self, timeout_ms: Option<u64>) -> Asking<'_> {
        let timeout = timeout_ms.map_or(self.timeout, Duration::from_millis);
        // A time beyond the end of the clock counts as the default.
        let deadline = Instant::now().checked_add(timeout);
        let deadline = deadline.unwrap_or_else(|| Instant::now() + self.timeout);
        Asking::new(&self.shared.queue, &self.account, deadline, None)
    }

    /// What this future gives, as a pending answer.
    pub fn answering<'a, T>(
        &self,
        future: impl Future<Output = T> + Send + 'a,
    ) -> Answering<'a, T> {
        Answering::new(&self.shared.timer, future)
    }

    /// Where vectors are put from which a GPU fetches them by itself, if the engine has one.
    pub fn staging(&self) -> Option<&Staging> {
        self.shared.staging.as_deref()
    }
}

impl fmt::Debug for Kindred {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} on {}", self.shared.model, self.engine().name)
    }
}
