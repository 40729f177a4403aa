//! Every format of vectors files, with every compression, valid and invalid; and exports.

mod bad;
mod endings;
mod files;
mod good;
mod kinds;
mod misplaced;
mod numbers;
mod options;
mod round_trip;
mod seeds;
mod separators;
pub(crate) mod support;
