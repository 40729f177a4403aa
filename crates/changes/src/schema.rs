//! The shape of a table's rows, by which changes are checked, written and read.

use contract::Metric;

use model_store::ModelStore;
use model_store::attributes::{AttributeType, Attributes};

/// The shape of a table's rows: changes have the same.
#[derive(Debug, Clone, PartialEq)]
pub struct Schema {
    /// Components of a vector.
    pub dim: usize,
    /// How a vector and a row become a score. Rows have a bias under [`Metric::Dot`].
    pub metric: Metric,
    /// Names and types of the attributes, in the order of the columns.
    pub columns: Vec<(String, AttributeType)>,
}

impl Schema {
    /// The schema of a model's rows.
    pub fn of(model: &ModelStore) -> Self {
        let columns = model.attributes().map_or(&[][..], Attributes::columns);
        Self {
            dim: model.dim(),
            metric: model.metric(),
            columns: columns.iter().map(|one| (one.name().to_owned(), one.kind())).collect(),
        }
    }

    /// Whether rows have a bias.
    pub(crate) fn has_biases(&self) -> bool {
        self.metric == Metric::Dot
    }

    /// A hash by which a log knows whether it was written for this schema.
    pub(crate) fn fingerprint(&self) -> u64 {
        let Self { dim, metric, columns } = self;
        let columns: Vec<String> =
            columns.iter().map(|(name, kind)| format!("{name} {kind}")).collect();
        let text = format!("{dim}\n{}\n{}", metric.name(), columns.join("\n"));
        let hash = blake3::hash(text.as_bytes());
        let first = hash.as_bytes().first_chunk().expect("a hash has 32 bytes");
        u64::from_le_bytes(*first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_of_a_schema_is_in_its_fingerprint() {
        let column = |name: &str, kind| vec![(name.to_owned(), kind)];
        let schemas = [
            (2, Metric::Cosine, vec![]),
            (3, Metric::Cosine, vec![]),
            (2, Metric::Dot, vec![]),
            (2, Metric::Cosine, column("a", AttributeType::Text)),
            (2, Metric::Cosine, column("a", AttributeType::List)),
            (2, Metric::Cosine, column("b", AttributeType::Text)),
        ]
        .map(|(dim, metric, columns)| Schema { dim, metric, columns }.fingerprint());
        for (index, one) in schemas.iter().enumerate() {
            assert!(!schemas[..index].contains(one), "{index}");
        }
    }
}
