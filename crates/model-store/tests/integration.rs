//! Vectors files, model folders and words through the public interface: each module is a file of tests.

mod damage;
mod formats;
mod prepare;
mod words;
