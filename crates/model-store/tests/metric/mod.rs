//! Models under the dot product, with and without biases; models under the cosine stay as they are.

mod folder;
mod stays;
