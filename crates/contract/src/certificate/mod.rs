//! The common parts of the engines' certificates (docs/certificate.md): the rotation of vectors
//! before rounding, and the constants of the bounds. gpu-core's build script passes these constants
//! to nvcc.

mod lift;
mod rotation;

pub use lift::{Factor, Lift, Unit};
pub use rotation::Rotation;

/// The maximum number of components for which the bounds are proved (docs/certificate.md).
pub const MAX_DIM: usize = 4096;

/// Covers every float32 rounding of the bounds and the contract's own float64 roundings
/// (docs/certificate.md, theorem 2).
pub const SLACK: f32 = 2e-6;

/// The constants of the hash that gives the rotation its signs.
pub const ROTATION_HASH: [u32; 5] =
    [0x9e37_79b1, 0x85eb_ca77, 0x2545_f491, 0x2c1b_3c6d, 0x297a_2d39];
