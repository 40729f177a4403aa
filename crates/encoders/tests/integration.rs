//! Encoders through the public interface: each module is a file of tests.

mod fasttext;
mod fasttext_classifier;
mod prepare;
mod seeds;
mod static_folder;
mod static_model;
mod support;
mod tokenisers;
