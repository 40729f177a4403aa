//! A table without rows, to which they are put one after the other.

use std::path::Path;

use model_store::ModelError;
use model_store::prepare::prepare_empty;

use super::schema::Schema;

/// Makes a model folder of this shape without rows, complete or not at all. Every such table has a
/// version of its own, even if another has the same shape.
///
/// ```
/// use contract::Metric;
/// use model_store::ModelStore;
/// use model_store::attributes::AttributeType;
/// use changes::{BatchBuilder, Changes, ChangeOptions, Durability, Schema, Upsert};
///
/// # let scratch = tempfile::tempdir()?;
/// # let folder = scratch.path().join("products");
/// let columns = vec![("price".to_owned(), AttributeType::Number)];
/// let schema = Schema { dim: 3, metric: Metric::Cosine, columns };
/// changes::create(&folder, &schema)?;
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
    let Schema { dim, metric, columns } = schema;
    prepare_empty(folder, *dim, *metric, columns)
}
