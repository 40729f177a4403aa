//! Files of biases, and folders to prepare models with them.

use std::path::PathBuf;

use contract::Metric;
use model_store::prepare::PrepareOptions;

/// An array as NumPy saves it, of numbers of the type `descr`.
pub(crate) fn npy(descr: &str, shape: &str, numbers: &[u8]) -> Vec<u8> {
    let mut text = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}");
    text += &" ".repeat(63 - (10 + text.len()) % 64);
    text.push('\n');
    let head = [b"\x93NUMPY\x01\x00", &(text.len() as u16).to_le_bytes()[..]].concat();
    [&head, text.as_bytes(), numbers].concat()
}

/// The options for vectors with these biases.
pub(crate) fn with_biases(biases: PathBuf) -> PrepareOptions {
    PrepareOptions { metric: Metric::Dot, biases: Some(biases), ..Default::default() }
}
