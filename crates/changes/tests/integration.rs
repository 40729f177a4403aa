//! Tables that change through the public interface: each module is a file of tests.

mod documented;
mod mutated;
#[path = "../../model-store/tests/pages.rs"]
mod pages;
