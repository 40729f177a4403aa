//! Attributes of rows: from files into model folders, in memory, and out again.

mod bad_files;
mod damage;
mod folder;
mod joined;
mod many_rows;
mod odd_input;
mod support;
mod synth;
mod tables;
