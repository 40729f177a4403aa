//! A table without rows, to which they are put one after the other.

use std::path::Path;

use super::schema::Schema;
use crate::ModelError;
use crate::attributes::{AttributeFiles, ColumnBuilder, check_names};
use crate::format::{Provenance, TableId};
use crate::prepare::{MAX_DIM, ModelFolder, ModelWriter};
use crate::whole::Replace;

/// Makes a model folder of this shape without rows, complete or not at all. Every such table has a
/// version of its own, even if another has the same shape.
///
/// ```
/// use contract::Metric;
/// use model_store::ModelStore;
/// use model_store::attributes::AttributeType;
/// use model_store::changes::{BatchBuilder, Changes, ChangeOptions, Durability, Schema, Upsert};
///
/// # let scratch = tempfile::tempdir()?;
/// # let folder = scratch.path().join("products");
/// let columns = vec![("price".to_owned(), AttributeType::Number)];
/// let schema = Schema { dim: 3, metric: Metric::Cosine, columns };
/// model_store::changes::create(&folder, &schema)?;
/// assert_eq!(ModelStore::open(&folder)?.rows(), 0);
///
/// let changes = Changes::open(&folder, ChangeOptions::default())?;
/// assert_eq!(*changes.schema(), schema);
/// let mut batch = BatchBuilder::new(changes.schema());
/// let vector = &[0.5, 1.0, 0.25];
/// batch.upsert(Upsert { key: "4711", vector, bias: None, attributes: &[] });
/// changes.commit(batch.finish()?.expect("it has a row"), Durability::Synced, None)?;
/// assert_eq!(changes.snapshot().live_rows(), 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// If there is something at `folder`, no table has such a shape, or it can't be written.
pub fn create(folder: &Path, schema: &Schema) -> Result<(), ModelError> {
    let refused = |reason: String| ModelError::BadInput {
        path: folder.to_owned(),
        reason: format!("there can be no such table: {reason}").into(),
    };
    let Schema { dim, metric, columns } = schema;
    if !(1..=MAX_DIM).contains(dim) {
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
    let mut writer = ModelWriter::new(new.create_vectors()?, *dim, *metric)
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
