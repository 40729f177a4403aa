//! The extension module `kindred._kindred`: the facade for Python. Documentation, types and
//! defaults are in the Python files of the package; this module converts arguments, releases the
//! interpreter's lock, asks, and converts answers.

mod answers;
mod arguments;
mod arrays;
mod errors;
mod heads;
mod model;
mod options;
mod prepare;
mod process;
mod table;
#[cfg(feature = "cuda")]
mod terms;
mod training;
mod waiting;

use pyo3::prelude::*;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[pymodule(gil_used = true)]
fn _kindred(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<model::Model>()?;
    module.add_class::<table::Table>()?;
    module.add_class::<table::Selection>()?;
    module.add_class::<heads::Head>()?;
    module.add_class::<heads::Expander>()?;
    #[cfg(feature = "cuda")]
    module.add_class::<terms::BorrowedTerms>()?;
    module.add_function(wrap_pyfunction!(prepare::prepare, module)?)?;
    module.add_function(wrap_pyfunction!(prepare::content, module)?)?;
    module.add_function(wrap_pyfunction!(training::token_rows, module)?)?;
    module.add_function(wrap_pyfunction!(training::write_expander, module)?)?;
    module.add("OPTIONS", options::declarations(module.py())?)?;
    module.add("OPTIONS_OF", options::of_questions(module.py())?)?;
    module.add("DEFAULT_K", kindred::options::DEFAULT_K)?;
    module.add("has_cuda", cfg!(feature = "cuda"))?;
    module.add("has_parquet", cfg!(feature = "parquet"))?;
    module.add("version", env!("CARGO_PKG_VERSION"))
}
