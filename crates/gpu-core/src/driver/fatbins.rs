//! The kernels' machine code, embedded by the build script.
include!(concat!(env!("OUT_DIR"), "/fatbins.rs"));
