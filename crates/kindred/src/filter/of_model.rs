//! The attributes of a model, as filters see them.

use std::ops::Range;

use contract::Row;
use model_store::ModelStore;
use model_store::attributes::{self, parse_date_time};

use super::columns::{Column, Columns, Dictionary, Values};

impl Columns for ModelStore {
    fn rows(&self) -> usize {
        Self::rows(self)
    }

    fn column(&self, name: &str) -> Option<Column<'_>> {
        let column = self.attributes()?.column(name)?;
        let values = match column.values() {
            attributes::Values::Integers(values) => Values::Integers(values),
            attributes::Values::Numbers(values) => Values::Numbers(values),
            attributes::Values::Booleans(values) => Values::Booleans(values),
            attributes::Values::DateTimes(values) => Values::DateTimes(values),
            attributes::Values::Texts { codes, dictionary } => Values::Texts { codes, dictionary },
            attributes::Values::Lists { starts, codes, dictionary } => {
                Values::Lists { starts, codes, dictionary }
            }
        };
        Some(Column { values, missing: column.missing_bits() })
    }

    fn names(&self) -> Vec<String> {
        let columns = self.attributes().map(attributes::Attributes::columns).unwrap_or_default();
        columns.iter().map(|column| column.name().to_owned()).collect()
    }

    fn row(&self, key: &str) -> Option<Row> {
        self.words().row(key)
    }

    fn date_time(&self, text: &str) -> Option<i64> {
        parse_date_time(text)
    }
}

impl Dictionary for attributes::Dictionary {
    fn code(&self, text: &str) -> Option<u32> {
        Self::code(self, text)
    }

    fn starting_with(&self, prefix: &str) -> Range<u32> {
        Self::starting_with(self, prefix)
    }
}
