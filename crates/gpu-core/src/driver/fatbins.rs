//! The kernels' machine code, embedded; one constant for each file of `kernels/`.
include!(concat!(env!("OUT_DIR"), "/fatbins.rs"));
