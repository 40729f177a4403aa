//! Arrays of NumPy: in without a copy, out as new arrays, and a model's table as a view.

use jobs::arrays::Arrays;
use kindred::Error;
use numpy::ndarray::ArrayView2;
use numpy::{PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray2, PyUntypedArrayMethods};
use pyo3::prelude::*;

use model_store::SharedComponents;

use crate::errors;

/// The components of an array that stays as it is, and the array itself.
struct Held {
    components: *const f32,
    len: usize,
    /// Keeps the memory.
    _array: Py<PyArray2<f32>>,
}

// SAFETY: the memory belongs to an array that `_array` keeps alive and that nobody writes to:
// `share` requires it.
#[allow(unsafe_code)]
unsafe impl Send for Held {}
// SAFETY: as above; it is only read.
#[allow(unsafe_code)]
unsafe impl Sync for Held {}

impl AsRef<[f32]> for Held {
    #[allow(unsafe_code)]
    fn as_ref(&self) -> &[f32] {
        // SAFETY: pointer and length are those of a C-contiguous array, which `_array` keeps alive.
        // Nobody writes to it.
        unsafe { std::slice::from_raw_parts(self.components, self.len) }
    }
}

/// The components of an array `[rows, dim]`, without a copy.
///
/// # Safety
/// Nobody may write to the array's memory from now on: `kindred._arrays.frozen` gives a private
/// copy, unless the array and all its bases are read-only.
#[allow(unsafe_code)]
pub(crate) unsafe fn share(
    array: &Bound<'_, PyArray2<f32>>,
) -> PyResult<(SharedComponents, usize)> {
    let held = {
        let read = array.try_readonly()?;
        let all = read.as_slice()?;
        Held { components: all.as_ptr(), len: all.len(), _array: array.clone().unbind() }
    };
    Ok((SharedComponents::new(held), array.shape()[1]))
}

/// Components of vectors `[n, dim]` in C order.
pub(crate) fn components<'a>(
    array: &'a PyReadonlyArray2<'_, f32>,
    dim: usize,
) -> PyResult<&'a [f32]> {
    match array.shape()[1] {
        found if found == dim => Ok(array.as_slice()?),
        found => Err(errors::of_question(Error::DimensionMismatch { found, expected: dim })),
    }
}

type TwoArrays<'py> = (Bound<'py, PyArray2<i64>>, Bound<'py, PyArray2<f64>>);

/// Rows int64 `[n, k]` and scores float64 `[n, k]`.
pub(crate) fn arrays(
    py: Python<'_>,
    Arrays { k, indices, scores }: Arrays,
) -> PyResult<TwoArrays<'_>> {
    let shape = [indices.len() / k, k];
    let indices = PyArray1::from_vec(py, indices).reshape(shape)?;
    Ok((indices, PyArray1::from_vec(py, scores).reshape(shape)?))
}

/// A view of a table `[rows, dim]` that `owner` keeps.
///
/// # Safety
/// The components must live as long as `owner`. The caller makes the view read-only before anybody
/// sees it.
#[allow(unsafe_code)]
pub(crate) unsafe fn view<'py>(
    components: &[f32],
    dim: usize,
    owner: Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyArray2<f32>>> {
    let view = ArrayView2::from_shape((components.len() / dim, dim), components);
    let view = view.map_err(|error| errors::engine(error.to_string()))?;
    // SAFETY: the caller's promise.
    Ok(unsafe { PyArray2::borrow_from_array(&view, owner) })
}
