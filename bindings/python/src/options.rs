//! Options of questions, from keyword arguments, and their declarations for the Python side. They
//! are declared in the facade, and read here by their names.

use kindred::options::{DECLARATIONS, Values};
use kindred::{Method, Options, Unknown, WithAttributes, with_options};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyString};

use crate::errors;

/// A type that an option can have.
trait FromPython: Sized {
    /// `None` if the value has another type.
    fn from_python(value: &Bound<'_, PyAny>) -> Option<Self>;
}

impl FromPython for u64 {
    fn from_python(value: &Bound<'_, PyAny>) -> Option<Self> {
        // True is no number here.
        if value.is_instance_of::<PyBool>() { None } else { value.extract().ok() }
    }
}

impl FromPython for f64 {
    fn from_python(value: &Bound<'_, PyAny>) -> Option<Self> {
        if value.is_instance_of::<PyBool>() { None } else { value.extract().ok() }
    }
}

impl FromPython for bool {
    fn from_python(value: &Bound<'_, PyAny>) -> Option<Self> {
        value.extract().ok()
    }
}

impl FromPython for String {
    fn from_python(value: &Bound<'_, PyAny>) -> Option<Self> {
        value.extract().ok()
    }
}

impl FromPython for Vec<String> {
    fn from_python(value: &Bound<'_, PyAny>) -> Option<Self> {
        // A word alone is no list of its letters.
        if value.is_instance_of::<PyString>() {
            return None;
        }
        value.try_iter().ok()?.map(|word| word.ok()?.extract().ok()).collect()
    }
}

impl FromPython for WithAttributes {
    fn from_python(value: &Bound<'_, PyAny>) -> Option<Self> {
        match bool::from_python(value) {
            Some(all) => Some(Self::All(all)),
            None => Vec::from_python(value).map(Self::Named),
        }
    }
}

impl FromPython for Method {
    fn from_python(value: &Bound<'_, PyAny>) -> Option<Self> {
        value.extract::<String>().ok()?.parse().ok()
    }
}

impl FromPython for Unknown {
    fn from_python(value: &Bound<'_, PyAny>) -> Option<Self> {
        value.extract::<String>().ok()?.parse().ok()
    }
}

macro_rules! read {
    (options { $($name:ident: $type:ty { values: $values:expr, must_be: $must_be:literal, $($about:tt)* })+ }) => {
        /// Sets an option by its name.
        fn set(options: &mut Options, name: &str, value: &Bound<'_, PyAny>) -> PyResult<()> {
            match name {
                $(stringify!($name) => {
                    let read = <$type as FromPython>::from_python(value);
                    options.$name = Some(read.ok_or_else(|| errors::invalid(name, $must_be))?);
                    Ok(())
                })+
                _ => {
                    let names: Vec<_> = DECLARATIONS.iter().map(|one| one.name).collect();
                    let message = format!("there is no option `{name}`; the options are {}", names.join(", "));
                    Err(PyTypeError::new_err(message))
                }
            }
        }
    };
}

with_options! { read! {} }

/// The declarations, by the names of the options: the kind of values, their bounds if they have
/// any, and what a value must be.
pub(crate) fn declarations(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let all = PyDict::new(py);
    for declared in DECLARATIONS {
        let (name, must_be) = (declared.name, declared.must_be);
        match declared.values {
            Values::Whole { from, to } => all.set_item(name, ("whole", (from, to), must_be))?,
            Values::Number => all.set_item(name, ("number", py.None(), must_be))?,
            Values::Switch => all.set_item(name, ("switch", py.None(), must_be))?,
            Values::Words { most } => all.set_item(name, ("words", most, must_be))?,
            Values::Names { most } => all.set_item(name, ("names", most, must_be))?,
            Values::Text => all.set_item(name, ("text", py.None(), must_be))?,
            Values::Name { of } => all.set_item(name, ("name", of.to_vec(), must_be))?,
        }
    }
    Ok(all)
}

macro_rules! names {
    (options { $($name:ident: $type:ty { $($about:tt)* })+ }) => { vec![$(stringify!($name)),+] };
}

/// The names of the options that each kind of question takes.
pub(crate) fn of_questions(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let all = PyDict::new(py);
    all.set_item("nearest", with_options! { nearest: names! {} })?;
    all.set_item("analogy", with_options! { analogy: names! {} })?;
    all.set_item("rank", with_options! { rank: names! {} })?;
    Ok(all)
}

/// Reads keyword arguments. `None` is the same as no argument.
pub(crate) fn options(given: Option<&Bound<'_, PyDict>>) -> PyResult<Options> {
    let mut options = Options::new();
    for (name, value) in given.into_iter().flat_map(|given| given.iter()) {
        if !value.is_none() {
            set(&mut options, &name.extract::<String>()?, &value)?;
        }
    }
    Ok(options)
}
