//! Models under the dot product, with and without biases; models under the cosine stay as they are.

mod bad_biases;
mod export;
mod folder;
mod prepare;
mod stays;
pub(crate) mod support;
mod synth;
