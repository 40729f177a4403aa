//! Kindred as a library, against plain computations of the same answers.

mod before;
mod changes;
#[allow(unreachable_pub, reason = "the fuzz targets are programs of their own")]
#[path = "../../../../fuzz/src/checks.rs"]
mod checks;
mod facade;
#[path = "../../../encoders/tests/support.rs"]
#[allow(dead_code)]
mod fasttext;
#[path = "../../../filters/src/tests/naive.rs"]
#[allow(dead_code)]
mod naive;
mod pages;
mod random;
mod seeds;
mod subwords;
mod text_weights;
