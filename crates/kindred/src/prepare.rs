//! From files to model folders: [`prepare_folder`] reads vectors and fastText's models.

pub use encoders::prepare_folder;
pub use model_store::prepare::*;
