//! Why columns are no attributes.

use crate::ModelError;

/// Maximum number of attributes of a model.
pub const MAX_ATTRIBUTES: usize = 1000;

/// Why columns are no attributes.
#[derive(Debug, thiserror::Error)]
pub enum AttributeError {
    /// There is none, or there are more than [`MAX_ATTRIBUTES`].
    #[error("{found} attributes; a model with attributes has 1 to {MAX_ATTRIBUTES}")]
    Number {
        /// How many there are.
        found: usize,
    },
    /// A name can't be one.
    #[error("{0}")]
    Name(String),
    /// Two columns have the same name.
    #[error("two attributes have the name `{name}`; rename one")]
    Repeated {
        /// The name.
        name: String,
    },
    /// A column does not have one value for each row.
    #[error(
        "the attribute `{name}` has {found} values for {rows} rows; give one for each row; \
         some may be missing"
    )]
    Rows {
        /// The attribute.
        name: String,
        /// How many values it has.
        found: usize,
        /// Number of rows.
        rows: usize,
    },
    /// There is not enough memory.
    #[error(transparent)]
    Model(#[from] ModelError),
}
