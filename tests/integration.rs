//! The program from outside: each module is a file of tests.
//! `cargo test -p cli --test integration http::` runs one.
//!
//! Tests that measure time or memory are in `measured.rs`, tests that may be skipped in
//! `conditional.rs`.

mod access_log;
mod api_docs;
mod arrays;
mod attributes;
mod bulk;
mod by_url;
mod claims;
mod classify;
mod cli;
mod console;
#[cfg(unix)]
mod ctrl_c;
mod defaults;
mod document_vectors;
mod downloads;
mod edge;
mod embed;
mod eval;
mod expand;
mod explorer;
mod files;
mod filters;
mod fold_case;
mod graph;
mod heads_by_get;
mod health;
mod http;
mod kept;
#[cfg(unix)]
mod kubernetes;
mod links;
mod malformed;
mod methods;
mod metric;
mod metric_files;
mod metrics;
mod models;
mod one_model;
mod openapi;
mod pages;
mod replicas;
mod requests;
mod restarts;
mod rows;
mod rows_changed;
mod settings;
mod sources;
mod static_models;
mod stop_words;
mod structure;
mod subwords;
mod supervision;
mod support;
mod tables;
mod text_weights;
mod tls;
#[cfg(feature = "traces")]
mod traces;
mod verified;
mod version;
mod words;
