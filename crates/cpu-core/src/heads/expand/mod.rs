//! Expanders on the CPU (the head of SPLADE): texts become weights of terms.

pub mod gradients;
