//! Changes against a naive table, on a disk that stops, fails and forgets, and on a real one.

mod copies;
mod crashes;
mod damage;
mod empty;
mod faults;
mod folder;
mod folds;
mod groups;
mod histories;
mod naive;
mod on_disk;

/// The number of a test's random histories: TEST_HISTORIES, or `usual`; one under Miri.
fn histories(usual: u64) -> u64 {
    if cfg!(miri) {
        return 1;
    }
    std::env::var("TEST_HISTORIES").map_or(usual, |number| number.parse().expect("a number"))
}
