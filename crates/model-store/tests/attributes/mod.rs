//! Attributes of rows: from files into model folders, in memory, and out again.

mod bad_files;
mod damage;
mod folder;
mod joined;
mod support;
mod tables;
