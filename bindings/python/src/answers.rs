//! Answers as Python's objects. The named tuples are in `kindred/_types.py`.

use kindred::question::{Part, WordSimilarity};
use kindred::{Answer, Classified, ImpliedTerms, Neighbor, Placed, Term};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyList, PyTuple};

/// A class of `kindred/_types.py`, looked up once.
struct Class {
    name: &'static str,
    class: PyOnceLock<Py<PyAny>>,
}

impl Class {
    const fn new(name: &'static str) -> Self {
        Self { name, class: PyOnceLock::new() }
    }

    fn get<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let class = self.class.get_or_try_init(py, || {
            PyResult::Ok(PyModule::import(py, "kindred._types")?.getattr(self.name)?.unbind())
        })?;
        Ok(class.bind(py).clone())
    }
}

/// Makes named tuples of a class without calling Python's code, of which theirs is.
fn named<'py>(
    class: &Class,
    py: Python<'py>,
) -> PyResult<impl Fn(Bound<'py, PyTuple>) -> Object<'py>> {
    static NEW: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let new = NEW.get_or_try_init(py, || {
        PyResult::Ok(py.get_type::<PyTuple>().getattr("__new__")?.unbind())
    })?;
    let (new, class) = (new.bind(py).clone(), class.get(py)?);
    Ok(move |fields| new.call1((&class, fields)))
}

static NEIGHBOR: Class = Class::new("Neighbor");
static EXPLAINED: Class = Class::new("Explained");
static CONTRIBUTION: Class = Class::new("Contribution");
static RANKED: Class = Class::new("Ranked");
static CLASSIFIED: Class = Class::new("Classified");
static LABEL: Class = Class::new("Label");
static TERMS: Class = Class::new("Terms");
static TERM: Class = Class::new("Term");

type Object<'py> = PyResult<Bound<'py, PyAny>>;

/// `list[Neighbor]`.
pub(crate) fn neighbors<'py>(py: Python<'py>, answer: &Answer<'_>) -> PyResult<Bound<'py, PyList>> {
    let named = named(&NEIGHBOR, py)?;
    let neighbor = |one: &Neighbor<'_>| named((&*one.word, one.score, one.row).into_pyobject(py)?);
    list(py, answer.neighbors.iter().map(neighbor))
}

/// `list[Explained]` and `list[Ranked]`: the neighbours, and the question's own words.
pub(crate) fn explained<'py>(py: Python<'py>, answer: &Answer<'_>) -> Object<'py> {
    let class = EXPLAINED.get(py)?;
    let explained = |one: &Neighbor<'_>| {
        let terms = one.terms.iter().flatten().map(|term| contribution(py, term));
        class.call1((&*one.word, one.score, one.row, list(py, terms)?))
    };
    let neighbors = list(py, answer.neighbors.iter().map(explained))?;
    let inputs = placed(py, answer.inputs.as_deref().unwrap_or_default())?;
    Ok(PyTuple::new(py, [neighbors, inputs])?.into_any())
}

fn contribution<'py>(py: Python<'py>, term: &Term<'_>) -> Object<'py> {
    let (WordSimilarity::Cosine(similarity) | WordSimilarity::Dot(similarity)) = term.similarity;
    let (kind, part) = match term.part {
        Part::Contribution(part) => ("contribution", part),
        Part::Factor(part) => ("factor", part),
    };
    CONTRIBUTION.get(py)?.call1((&*term.word, term.weight, similarity, part, kind))
}

/// `list[Ranked]`.
pub(crate) fn placed<'py>(py: Python<'py>, placed: &[Placed<'_>]) -> PyResult<Bound<'py, PyList>> {
    let class = RANKED.get(py)?;
    let ranked = |one: &Placed<'_>| class.call1((&*one.word, one.score, one.row, one.rank));
    list(py, placed.iter().map(ranked))
}

/// `Classified`.
pub(crate) fn classified<'py>(py: Python<'py>, answer: &Classified) -> Object<'py> {
    let class = LABEL.get(py)?;
    let labels =
        answer.labels.iter().map(|one| class.call1((&one.name, one.probability, one.score)));
    CLASSIFIED.get(py)?.call1((list(py, labels)?, &answer.unknown, answer.is_cut))
}

/// `Terms`.
pub(crate) fn terms<'py>(py: Python<'py>, answer: &ImpliedTerms) -> Object<'py> {
    let class = TERM.get(py)?;
    let term = |one: &kindred::ImpliedTerm| {
        class.call1((&one.word, one.weight, one.row, one.token.position, &one.token.text))
    };
    let terms = list(py, answer.terms.iter().map(term))?;
    TERMS.get(py)?.call1((terms, &answer.unknown, answer.is_cut))
}

fn list<'py>(
    py: Python<'py>,
    objects: impl Iterator<Item = Object<'py>>,
) -> PyResult<Bound<'py, PyList>> {
    PyList::new(py, objects.collect::<PyResult<Vec<_>>>()?)
}
