//! The CPU engines through their public interface: each module is a file of tests.

mod adversarial;
mod counted_ranks;
mod engines_agree;
mod expansions;
mod full_passes;
mod gradients;
mod row_sets;
mod samples;
mod support;
mod tables;
mod worst_sets;
