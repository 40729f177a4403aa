//! Vectors files, model folders and words through the public interface: each module is a file of
//! tests.

mod attributes;
mod changes;
mod damage;
mod documented;
mod formats;
mod metric;
mod prepare;
mod text_weights;
mod words;
