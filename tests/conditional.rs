//! Tests that need more than Rust: data, or programs such as Python. What is missing is said, and
//! its tests are reported as ignored, by name. `cargo test -p cli --test conditional docs::`
//! runs one module.

mod arrays_python;
#[cfg(feature = "parquet")]
mod bulk_python;
mod containers;
mod docs;
mod examples;
mod graph_python;
mod prometheus;
mod pytorch;
mod real_data;
mod support;
mod systemd;
mod terminal;
#[cfg(feature = "traces")]
mod traces_balancers;
mod unless_passed;

use std::process::ExitCode;

use libtest_mimic::{Arguments, Trial};

/// The tests of a module, whose names begin with the module's.
type Tests = fn() -> Vec<Trial>;

const MODULES: &[(&str, Tests)] = &[
    ("arrays_python", arrays_python::trials),
    #[cfg(feature = "parquet")]
    ("bulk_python", bulk_python::trials),
    ("containers", containers::trials),
    ("docs", docs::trials),
    ("examples", examples::trials),
    ("graph_python", graph_python::trials),
    ("prometheus", prometheus::trials),
    ("pytorch", pytorch::trials),
    ("real_data", real_data::trials),
    ("systemd", systemd::trials),
    ("terminal", terminal::trials),
    #[cfg(feature = "traces")]
    ("traces_balancers", traces_balancers::trials),
    ("unless_passed", unless_passed::trials),
];

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    // Other modules than the one that the filter names are not asked what they lack.
    let only = arguments.filter.as_deref().and_then(|filter| filter.split_once("::"));
    let mut trials = Vec::new();
    for &(module, tests) in MODULES {
        if only.is_none_or(|(only, _)| module == only) {
            trials.extend(tests());
        }
    }
    let conclusion = libtest_mimic::run(&arguments, trials);
    real_data::end();
    conclusion.exit_code()
}
