//! Tables without rows, to which rows are put later.

use std::path::Path;

use contract::Metric;

use super::MAX_DIM;
use super::folder::ModelFolder;
use super::writer::ModelWriter;
use crate::ModelError;
use crate::attributes::{AttributeFiles, AttributeType, ColumnBuilder, check_names};
use crate::format::{Provenance, TableId};
use crate::whole::Replace;

/// Writes a model folder without rows, complete or not at all: rows of it have `dim` components and
/// these attributes. Every such table has a version of its own, even if another has the same shape.
///
/// # Errors
/// If there is something at `folder`, no table has such a shape, or it can't be written.
pub fn prepare_empty(
    folder: &Path,
    dim: usize,
    metric: Metric,
    columns: &[(String, AttributeType)],
) -> Result<(), ModelError> {
    let refused = |reason: String| ModelError::BadInput {
        path: folder.to_owned(),
        reason: format!("there can be no such table: {reason}").into(),
    };
    if !(1..=MAX_DIM).contains(&dim) {
        return Err(refused(format!("a row has 1 to {MAX_DIM} components, not {dim}")));
    }
    if !columns.is_empty() {
        let names = columns.iter().map(|(name, _)| name.as_str());
        check_names(names).map_err(|error| refused(error.to_string()))?;
    }
    let attributes = (!columns.is_empty()).then(|| {
        let columns = columns.iter().map(|(name, kind)| ColumnBuilder::new(name, *kind));
        AttributeFiles::of_columns(columns.collect(), &[])
    });
    let can_not_write = |error| ModelError::io("write", folder)(error);
    let new = ModelFolder::beside(folder, Replace::Nothing)?;
    let mut writer = ModelWriter::new(new.create_vectors()?, dim, metric)
        .map_err(can_not_write)?
        .with_table_id(TableId::random());
    if let Some(attributes) = &attributes {
        writer = writer.with_attributes(attributes.checksum());
    }
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    let provenance = Provenance::of_memory(&name);
    let (vectors, words, index) = writer.finish(provenance).map_err(can_not_write)?;
    new.complete(vectors, &words, &index, attributes.as_ref())
}
