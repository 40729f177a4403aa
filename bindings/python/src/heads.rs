//! Heads: classifiers and expanders over a model's rows.

use std::sync::Arc;

use pyo3::prelude::*;

/// A classifier.
#[pyclass(frozen, module = "kindred._kindred")]
pub(crate) struct Head(pub(crate) kindred::heads::TextClassifier);

#[pymethods]
impl Head {
    /// The labels, in the head's order.
    #[getter]
    fn labels(&self) -> Vec<String> {
        self.0.labels().to_vec()
    }
}

/// An expander.
#[pyclass(frozen, module = "kindred._kindred")]
pub(crate) struct Expander(pub(crate) Arc<kindred::heads::Expander>);
