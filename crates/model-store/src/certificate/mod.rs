//! What the engines' certificates have in common (docs/certificate.md): how a vector is rotated before it
//! is rounded, and the constants of the bounds.

mod rotation;

include!("constants.rs");

pub use rotation::Rotation;
