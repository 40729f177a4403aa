//! An expander's terms in the device memory of another library, such as PyTorch's parameters, for
//! training there.

pub use gpu_core::GpuError;
pub use gpu_core::resident::BorrowedTable;
pub use gpu_core::search::{BorrowedTerms, SumsOfRows};
