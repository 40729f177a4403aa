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

pub(crate) use naive::base_files;
