//! Vectors files, model folders and words through the public interface: each module is a file of
//! tests.

mod attributes;
mod damage;
mod documented;
mod formats;
mod metric;
mod pages;
mod prepare;
mod text_weights;
mod words;
