//! `kindred verify`: every checksum of a model folder.

use model_store::ModelStore;

use super::CommandError;
use crate::cli::VerifyArguments;

/// Checks every checksum of a model folder and says what it is.
///
/// # Errors
/// Names the file that is not what it should be; or if the result can't be written.
pub fn verify(arguments: &VerifyArguments) -> Result<(), CommandError> {
    let model = ModelStore::open(&arguments.model)?;
    // Steps are for who watches; if nothing can be written, the last line says so.
    model.verify(|step| drop(say!("checking {step}")))?;
    let (header, from) = (model.header(), &model.header().provenance);
    say!(
        "{}: {} rows × {} dimensions, prepared from {} by {} at {}; all checksums match",
        arguments.model.display(),
        header.rows,
        header.dim,
        from.source,
        from.prepared_by,
        from.prepared_at
    )
}
