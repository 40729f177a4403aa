//! A model with an engine, as `kindred.Model` uses it.

use std::mem::ManuallyDrop;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use contract::{Row, TermExpander};
use jobs::JobError;
use jobs::arrays::ArrayQueries;
use jobs::graph::{self, GraphOptions};
use kindred::evaluation::results::{Case, Report};
use kindred::evaluation::source::Source;
use kindred::evaluation::{analogies, similarities};
use kindred::heads::WantedTerms;
use kindred::live::Live;
use kindred::question::EncodeOptions;
use kindred::{Answer, Error, Kindred, Method, Options, Settings, Target, Times, Unknown};
use model_store::{ArrayRows, ModelStore};
use numpy::{PyArray1, PyArray2, PyArrayMethods as _, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString};

use crate::arguments::{Expression, How, Query, Wanted, Words};
use crate::arrays::{self, arrays};
use crate::heads::{Expander, Head};
use crate::process::Process;
use crate::waiting::{Signals, wait};
use crate::{answers, errors, options::options, prepare::metric};

type Given<'a, 'py> = Option<&'a Bound<'py, PyDict>>;

/// A model with an engine of its own.
#[pyclass(frozen, weakref, module = "kindred._kindred")]
pub(crate) struct Model {
    /// Never dropped in a fork, where its threads are missing.
    kindred: ManuallyDrop<Kindred>,
    process: Process,
}

impl Drop for Model {
    #[allow(unsafe_code)]
    fn drop(&mut self) {
        if self.process == Process::current() {
            // SAFETY: dropped once, here, and not used afterwards.
            unsafe { ManuallyDrop::drop(&mut self.kindred) };
        }
    }
}

impl Model {
    /// Opens a model and starts its engine, without the interpreter's lock.
    fn start(
        py: Python<'_>,
        how: How,
        open: impl FnOnce() -> PyResult<kindred::Model> + Send,
    ) -> PyResult<Self> {
        Self::starting(py, how, |settings| {
            Kindred::start(open()?, settings).map_err(errors::engine)
        })
    }

    /// Starts an engine for a table at every position.
    pub(crate) fn of_table(py: Python<'_>, live: Arc<Live>, how: How) -> PyResult<Self> {
        Self::starting(py, how, |settings| {
            Kindred::start_live(live, settings).map_err(errors::engine)
        })
    }

    fn starting(
        py: Python<'_>,
        how: How,
        start: impl FnOnce(Settings) -> PyResult<Kindred> + Send,
    ) -> PyResult<Self> {
        let (process, settings) = (Process::that_starts_threads()?, how.settings()?);
        let kindred = py.detach(|| start(settings))?;
        Ok(Self { kindred: ManuallyDrop::new(kindred), process })
    }

    pub(crate) fn kindred(&self) -> PyResult<&Kindred> {
        self.process.check()?;
        Ok(&self.kindred)
    }

    fn ask<'py>(
        &self,
        py: Python<'py>,
        target: Result<Target, Error>,
        given: Given<'_, 'py>,
        convert: impl FnOnce(&Answer<'_>) -> PyResult<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (kindred, options) = (self.kindred()?, options(given)?);
        let target = target.map_err(errors::of_question)?;
        wait(py, || kindred.nearest(target.clone(), options.clone()), |answer| convert(&answer))
    }

    /// `list[Neighbor]` for a target.
    fn neighbors<'py>(
        &self,
        py: Python<'py>,
        target: Result<Target, Error>,
        given: Given<'_, 'py>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.ask(py, target, given, |answer| Ok(answers::neighbors(py, answer)?.into_any()))
    }

    /// The same for many targets: a list with an answer for each. The first error is raised.
    fn ask_all<'py>(
        &self,
        py: Python<'py>,
        targets: Vec<Result<Target, Error>>,
        given: Given<'_, 'py>,
    ) -> PyResult<Bound<'py, PyList>> {
        let (kindred, options) = (self.kindred()?, options(given)?);
        let asked = targets.into_iter().map(|target| Ok((target?, options.clone())));
        let asked = asked.collect::<Result<Vec<_>, _>>().map_err(errors::of_question)?;
        wait(
            py,
            || kindred.ask_all(asked.iter().cloned()),
            |all| {
                let each = all
                    .into_iter()
                    .map(|answer| answers::neighbors(py, &answer.map_err(errors::of_question)?));
                PyList::new(py, each.collect::<PyResult<Vec<_>>>()?)
            },
        )
    }

    fn nearest_arrays<'py>(
        &self,
        py: Python<'py>,
        queries: ArrayQueries<'_>,
        given: Given<'_, 'py>,
        progress: Option<&Py<PyAny>>,
    ) -> PyResult<TwoArrays<'py>> {
        let (kindred, options, mut signals) =
            (self.kindred()?, options(given)?, Signals::default());
        let found = py.detach(|| {
            jobs::arrays::nearest(kindred, queries, options, |done| {
                signals.go_on_telling(progress, (done,))
            })
        });
        match found.map_err(errors::of_question)? {
            Some(found) => arrays(py, found),
            None => Err(signals.raised()),
        }
    }
}

type TwoArrays<'py> = (Bound<'py, PyArray2<i64>>, Bound<'py, PyArray2<f64>>);

#[pymethods]
impl Model {
    #[staticmethod]
    fn open(py: Python<'_>, folder: PathBuf, how: How) -> PyResult<Self> {
        Self::start(py, how, || {
            let model = kindred::Model::open(&folder).map_err(errors::opening)?;
            // A row's number is its place in the array of all vectors.
            match model.store().numbers_are_places() {
                true => Ok(model),
                false => Err(errors::is_a_table(&folder)),
            }
        })
    }

    #[staticmethod]
    fn demo(py: Python<'_>, how: How) -> PyResult<Self> {
        Self::start(py, how, || kindred::Model::demo().map_err(errors::model))
    }

    /// A model over an array that nobody changes any more.
    #[staticmethod]
    #[allow(unsafe_code)]
    #[pyo3(signature = (array, words, metric, biases, name, how))]
    fn of_frozen_array(
        py: Python<'_>,
        array: &Bound<'_, PyArray2<f32>>,
        words: Option<Vec<String>>,
        metric: &str,
        biases: Option<Vec<f32>>,
        name: &str,
        how: How,
    ) -> PyResult<Self> {
        let metric = self::metric(metric)?;
        // SAFETY: the only caller is `kindred.from_array`, which gives what `_arrays.frozen`
        // returned.
        let (components, dim) = unsafe { arrays::share(array) }?;
        let rows = ArrayRows { components, dim, words, metric, biases };
        Self::start(py, how, || Ok(ModelStore::of_array(name, rows).map_err(errors::model)?.into()))
    }

    #[getter]
    fn name(&self) -> &str {
        self.kindred.model().name()
    }

    #[getter]
    fn version(&self) -> &str {
        self.kindred.model().version()
    }

    #[getter]
    fn rows(&self) -> usize {
        self.kindred.model().rows()
    }

    #[getter]
    fn dim(&self) -> usize {
        self.kindred.model().dim()
    }

    #[getter]
    fn metric(&self) -> &'static str {
        self.kindred.model().store().metric().name()
    }

    /// Name and description of the engine.
    #[getter]
    fn engine(&self) -> (&'static str, &str) {
        (self.kindred.engine().name, &self.kindred.engine().detail)
    }

    fn row(&self, word: &str) -> Option<u32> {
        self.kindred.model().row(word)
    }

    /// The vectors of texts, `[texts, dim]`. The first fault is raised, with its text's place as
    /// `query`.
    fn encode<'py>(
        &self,
        py: Python<'py>,
        texts: Vec<String>,
        unknown: Option<&str>,
        normalize: Option<bool>,
        truncate: Option<bool>,
    ) -> PyResult<Bound<'py, PyArray2<f32>>> {
        let unknown = unknown.map(str::parse::<Unknown>).transpose();
        let unknown = unknown.map_err(|must_be| errors::invalid("unknown", must_be))?;
        let options = EncodeOptions { unknown, normalize, truncate };
        let (model, count) = (self.kindred.model(), texts.len());
        let all = py.detach(|| model.encode_all(&texts, &options)).map_err(|(place, error)| {
            let error = errors::of_question(error);
            // What can't be set is only missing in the message.
            let _ = error.value(py).setattr("query", place);
            error
        })?;
        PyArray1::from_vec(py, all).reshape([count, model.dim()])
    }

    /// The lengths of the shortest and the longest n-grams, and how many rows they share.
    fn ngram_lengths(&self) -> Option<(i32, i32, u32)> {
        let lengths = self.kindred.model().store().ngrams()?.lengths();
        Some((lengths.minn, lengths.maxn, lengths.buckets))
    }

    /// A view `[buckets, dim]` of the rows of n-grams, to be made read-only before anybody sees it.
    #[allow(unsafe_code)]
    fn ngram_vectors<'py>(slf: &Bound<'py, Self>) -> PyResult<Option<Bound<'py, PyArray2<f32>>>> {
        let Some(ngrams) = slf.get().kindred.model().store().ngrams() else { return Ok(None) };
        // SAFETY: this object keeps the model; Python makes the view read-only.
        unsafe { arrays::view(ngrams.vectors(), ngrams.dim(), slf.clone().into_any()).map(Some) }
    }

    /// The vector of a word that is no row, if the model has vectors of subwords.
    fn subword_vector<'py>(
        &self,
        py: Python<'py>,
        word: &str,
    ) -> Option<Bound<'py, PyArray1<f32>>> {
        self.kindred.model().subword_vector(word).map(|vector| PyArray1::from_vec(py, vector))
    }

    fn word(&self, row: u32) -> Option<&str> {
        self.kindred.model().word(row)
    }

    /// The words of some rows, in order; of all rows by default.
    #[pyo3(signature = (first, end, step))]
    fn words<'py>(
        &self,
        py: Python<'py>,
        first: i64,
        end: i64,
        step: i64,
    ) -> PyResult<Bound<'py, PyList>> {
        let words = self.kindred.model().store().words();
        let list = PyList::empty(py);
        let mut row = first;
        while (step > 0 && row < end) || (step < 0 && row > end) {
            list.append(words.word(Row(row as u32)))?;
            row += step;
        }
        Ok(list)
    }

    /// The rows of some words; −1 for a word that the model does not have.
    fn rows_of<'py>(&self, py: Python<'py>, words: Vec<String>) -> Bound<'py, PyArray1<i64>> {
        let model = self.kindred.model();
        let row = |word: &String| model.row(word).map_or(-1, i64::from);
        PyArray1::from_vec(py, words.iter().map(row).collect())
    }

    /// The words of an array of rows.
    fn words_of<'py>(
        &self,
        py: Python<'py>,
        rows: PyReadonlyArray1<'py, i64>,
    ) -> PyResult<Bound<'py, PyList>> {
        let model = self.kindred.model();
        let word = |&row: &i64| {
            let word = u32::try_from(row).ok().and_then(|row| model.word(row));
            word.ok_or_else(|| errors::invalid("rows", "rows of the model"))
        };
        let words = rows.as_slice()?.iter().map(word).collect::<PyResult<Vec<&str>>>()?;
        PyList::new(py, words)
    }

    fn with_prefix(&self, prefix: &str, limit: usize) -> Vec<&str> {
        self.kindred.model().words_with_prefix(prefix, limit)
    }

    fn suggestions(&self, word: &str) -> Vec<&str> {
        self.kindred.model().suggestions(word)
    }

    /// A view `[rows, dim]` of all vectors, to be made read-only before anybody sees it.
    #[allow(unsafe_code)]
    fn vectors<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyArray2<f32>>> {
        let model = slf.get().kindred.model().store();
        // SAFETY: this object keeps the model; `kindred.Model.vectors` makes the view read-only.
        unsafe { arrays::view(model.table().components(), model.dim(), slf.clone().into_any()) }
    }

    fn nearest_word<'py>(
        &self,
        py: Python<'py>,
        word: String,
        given: Given<'_, 'py>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.neighbors(py, Ok(Target::Word(word)), given)
    }

    /// Where the time of `times` searches for a word went, each in seconds: in the queue, in the
    /// engine, in all. For benchmarks.
    fn timed(&self, py: Python<'_>, word: &str, times: usize) -> PyResult<Vec<(f64, f64, f64)>> {
        let kindred = self.kindred()?;
        let once = |_| {
            let started = Instant::now();
            let answer = kindred.nearest(word, Options::new()).wait()?;
            let all = started.elapsed();
            let Times { queue, engine } = answer.times;
            Ok((queue.as_secs_f64(), engine.as_secs_f64(), all.as_secs_f64()))
        };
        py.detach(|| (0..times).map(once).collect::<Result<_, _>>()).map_err(errors::of_question)
    }

    fn nearest_row<'py>(
        &self,
        py: Python<'py>,
        row: u32,
        given: Given<'_, 'py>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.neighbors(py, Ok(Target::Row(row)), given)
    }

    fn nearest_vector<'py>(
        &self,
        py: Python<'py>,
        vector: PyReadonlyArray1<'py, f32>,
        given: Given<'_, 'py>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.neighbors(py, Ok(vector.as_slice()?.into()), given)
    }

    fn nearest_text<'py>(
        &self,
        py: Python<'py>,
        text: String,
        given: Given<'_, 'py>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.neighbors(py, Ok(Target::Text(text)), given)
    }

    fn nearest_words<'py>(
        &self,
        py: Python<'py>,
        words: Vec<String>,
        given: Given<'_, 'py>,
    ) -> PyResult<Bound<'py, PyList>> {
        self.ask_all(py, words.into_iter().map(|word| Ok(Target::Word(word))).collect(), given)
    }

    #[pyo3(signature = (vectors, given, progress))]
    fn nearest_to_vectors<'py>(
        &self,
        py: Python<'py>,
        vectors: PyReadonlyArray2<'py, f32>,
        given: Given<'_, 'py>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<TwoArrays<'py>> {
        let vectors = ArrayQueries::Vectors(arrays::components(&vectors, self.dim())?);
        self.nearest_arrays(py, vectors, given, progress.as_ref())
    }

    #[pyo3(signature = (rows, given, progress))]
    fn nearest_to_rows<'py>(
        &self,
        py: Python<'py>,
        rows: PyReadonlyArray1<'py, u32>,
        given: Given<'_, 'py>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<TwoArrays<'py>> {
        self.nearest_arrays(py, ArrayQueries::Rows(rows.as_slice()?), given, progress.as_ref())
    }

    fn analogy<'py>(
        &self,
        py: Python<'py>,
        expression: Expression,
        given: Given<'_, 'py>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.neighbors(py, expression.target(), given)
    }

    fn analogies<'py>(
        &self,
        py: Python<'py>,
        expressions: Vec<Expression>,
        given: Given<'_, 'py>,
    ) -> PyResult<Bound<'py, PyList>> {
        self.ask_all(py, expressions.into_iter().map(Expression::target).collect(), given)
    }

    /// Neighbours with contributions, and the ranks of the question's own words.
    fn explain<'py>(
        &self,
        py: Python<'py>,
        query: Expression,
        is_text: bool,
        given: Given<'_, 'py>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let target = match query {
            Expression::Text(text) if is_text => Ok(Target::Text(text)),
            query => query.target(),
        };
        self.ask(py, target, given, |answer| answers::explained(py, answer))
    }

    fn rank<'py>(
        &self,
        py: Python<'py>,
        words: Vec<String>,
        query: Query<'py>,
        given: Given<'_, 'py>,
    ) -> PyResult<Bound<'py, PyList>> {
        let (kindred, options) = (self.kindred()?, options(given)?);
        let target = query.target()?;
        let ask = || kindred.rank(words.iter().cloned(), target.clone(), options.clone());
        wait(py, ask, |ranks| answers::placed(py, &ranks.ranked))
    }

    fn similarity(&self, a: Words, b: Words) -> PyResult<f64> {
        self.kindred()?.similarity(a, b).map_err(errors::of_question)
    }

    /// The score of every row, `[rows]`.
    fn scores<'py>(
        &self,
        py: Python<'py>,
        vector: PyReadonlyArray1<'py, f32>,
    ) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let (model, vector) = (self.kindred()?.model(), vector.as_slice()?);
        let scores = py.detach(|| model.scores(vector)).map_err(errors::of_question)?;
        Ok(PyArray1::from_vec(py, scores))
    }

    /// The similarity of each pair of words.
    fn similarities<'py>(
        &self,
        py: Python<'py>,
        pairs: Vec<(String, String)>,
    ) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let model = self.kindred.model();
        let found = py.detach(|| {
            let similarity = |(a, b): &(String, String)| model.similarity(&**a, &**b);
            pairs.iter().map(similarity).collect::<Result<Vec<f64>, _>>()
        });
        Ok(PyArray1::from_vec(py, found.map_err(errors::of_question)?))
    }

    fn odd_one_out(&self, words: Vec<String>) -> PyResult<Vec<(String, f64)>> {
        self.kindred()?.odd_one_out(words).map_err(errors::of_question)
    }

    fn count(&self, py: Python<'_>, filter: &str) -> PyResult<usize> {
        let kindred = self.kindred()?;
        py.detach(|| kindred.count(filter)).map_err(errors::of_question)
    }

    /// The built-in head, or that of a folder.
    #[pyo3(signature = (folder))]
    fn head(&self, py: Python<'_>, folder: Option<PathBuf>) -> PyResult<Option<Head>> {
        let kindred = self.kindred()?;
        let found = py.detach(|| match folder {
            Some(folder) => kindred.head(folder).map(Some),
            None => Ok(kindred.built_in_head()),
        });
        Ok(found.map_err(errors::model)?.map(Head))
    }

    /// The built-in expander, or that of a folder.
    #[pyo3(signature = (folder))]
    fn expander(&self, py: Python<'_>, folder: Option<PathBuf>) -> PyResult<Option<Expander>> {
        let kindred = self.kindred()?;
        let found = py.detach(|| match folder {
            Some(folder) => kindred.expander(folder).map(Some),
            None => Ok(kindred.built_in_expander()),
        });
        Ok(found.map_err(errors::model)?.map(Expander))
    }

    /// For each text, `Classified`, or `None` for a text without a word that the head knows.
    fn classify<'py>(
        &self,
        py: Python<'py>,
        head: &Head,
        texts: Vec<String>,
    ) -> PyResult<Vec<Option<Bound<'py, PyAny>>>> {
        let kindred = self.kindred()?;
        wait(
            py,
            || kindred.classify(&head.0, &texts),
            |all| each_known(&all, |text| answers::classified(py, text)),
        )
    }

    /// For each text, `Terms`, or `None` for a text without a word that the model has.
    fn expand<'py>(
        &self,
        py: Python<'py>,
        expander: &Expander,
        texts: Vec<String>,
        wanted: Wanted,
    ) -> PyResult<Vec<Option<Bound<'py, PyAny>>>> {
        let (kindred, wanted) = (self.kindred()?, WantedTerms::from(wanted));
        wait(
            py,
            || kindred.expand(&expander.0, &texts, wanted.clone()),
            |all| each_known(&all, |text| answers::terms(py, text)),
        )
    }

    /// The terms of one text, given by the vectors `[tokens, dim]` of its tokens.
    fn expand_vectors<'py>(
        &self,
        py: Python<'py>,
        expander: &Expander,
        vectors: PyReadonlyArray2<'py, f32>,
        wanted: Wanted,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (kindred, wanted) = (self.kindred()?, WantedTerms::from(wanted));
        let vectors = arrays::components(&vectors, TermExpander::token_dim(&*expander.0))?;
        wait(
            py,
            || kindred.expand_vectors(&expander.0, [vectors.to_vec()], wanted.clone()),
            |all| match &all[..] {
                [terms] => answers::terms(py, terms),
                _ => Err(errors::of_question(Error::Internal)),
            },
        )
    }

    /// A report as JSON, in the form of `kindred eval --json`.
    fn evaluate(
        &self,
        py: Python<'_>,
        analogies: Vec<PathBuf>,
        similarities: Vec<PathBuf>,
        methods: Vec<String>,
        case: &str,
    ) -> PyResult<String> {
        let kindred = self.kindred()?;
        let store = kindred.model().store();
        let case: Case = case.parse().map_err(|_| errors::invalid("case", "`lower` or `exact`"))?;
        let methods = methods.iter().map(|name| {
            let must_be = || kindred::options::must_be("method").unwrap_or_default();
            name.parse().map_err(|_| errors::invalid("method", must_be()))
        });
        let mut methods = methods.collect::<PyResult<Vec<Method>>>()?;
        if methods.is_empty() {
            methods = Method::under(store.metric()).to_vec();
        }
        let mut report = Report::new(store, kindred.engine(), case);
        for path in &analogies {
            let mut sections = Vec::new();
            for source in Source::read_all(path).map_err(errors::model)? {
                sections.extend(analogies::parse(&source).map_err(errors::model)?);
            }
            let set = kindred::evaluation::source::name(path);
            let ask = || kindred.evaluate_analogies(&set, &sections, &methods, case, |_| ());
            report.analogies.push(wait(py, ask, Ok)?);
        }
        for path in &similarities {
            let source = Source::read(path).map_err(errors::model)?;
            let pairs = similarities::parse(&source).map_err(errors::model)?;
            report.similarities.push(kindred.evaluate_similarities(&source.name, &pairs, case));
        }
        serde_json::to_string(&report).map_err(errors::engine)
    }

    /// Writes the graph of nearest neighbours to a file.
    #[pyo3(signature = (file, *, k, first_rows, min_score, filter, replace, progress))]
    #[expect(clippy::too_many_arguments, reason = "keyword arguments of Python")]
    fn write_graph<'py>(
        &self,
        py: Python<'py>,
        file: PathBuf,
        k: usize,
        first_rows: Option<usize>,
        min_score: Option<f64>,
        filter: Option<String>,
        replace: bool,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<Bound<'py, PyString>> {
        let kindred = self.kindred()?;
        let options =
            GraphOptions { k, first_rows, min_score, filter, replace, ..GraphOptions::default() };
        let mut signals = Signals::default();
        let made = py.detach(|| {
            graph::make(kindred, &file, &options, |now| {
                signals.go_on_telling(progress.as_ref(), (now.done, now.rows))
            })
        });
        match made {
            Ok(made) => {
                let json = serde_json::to_string(&made).map_err(errors::engine)?;
                Ok(PyString::new(py, &json))
            }
            Err(JobError::Stopped { .. }) => Err(signals.raised()),
            Err(error) => Err(errors::model(error)),
        }
    }

    /// Reads everything and checks every checksum.
    fn verify(&self, py: Python<'_>) -> PyResult<()> {
        let model = self.kindred()?.model();
        py.detach(|| model.verify(|_| ())).map_err(errors::model)
    }
}

/// For each text its answer, or `None` for a text without a known word.
fn each_known<T, R>(
    all: &[Result<T, Error>],
    convert: impl Fn(&T) -> PyResult<R>,
) -> PyResult<Vec<Option<R>>> {
    all.iter().map(|text| text.as_ref().ok().map(&convert).transpose()).collect()
}
