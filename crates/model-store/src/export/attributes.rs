//! The attributes of a model as CSV or JSON lines, a line for each row.

use std::io::{self, Write};
use std::path::Path;

use serde::ser::{Serialize, SerializeMap, Serializer};

use crate::attributes::Attributes;
use crate::{ModelError, ModelStore};
use contract::Row;

/// How attributes are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Format {
    /// With a header. A missing value is an empty field, a list an array of JSON.
    Csv,
    /// An object in each line, in which a missing value is null.
    JsonLines,
}

impl Format {
    /// By the end of a file's name.
    fn of(path: &Path) -> Option<Self> {
        let end = path.extension()?.to_str()?.to_ascii_lowercase();
        match &*end {
            "csv" => Some(Self::Csv),
            "jsonl" | "ndjson" => Some(Self::JsonLines),
            _ => None,
        }
    }
}

/// Attributes that are to be written.
pub(super) struct Writer<'a> {
    attributes: &'a Attributes,
    format: Format,
}

impl<'a> Writer<'a> {
    /// Those of a model, in the format that the file's name ends in.
    pub(super) fn new(model: &'a ModelStore, path: &Path) -> Result<Self, ModelError> {
        let unwritable = |reason: String| {
            let model = model.name().to_owned();
            ModelError::Unwritable { model, reason }
        };
        let attributes = model
            .attributes()
            .ok_or_else(|| unwritable("it has no attributes; omit --attributes-out".to_owned()))?;
        let format = Format::of(path).ok_or_else(|| {
            unwritable(format!(
                "attributes are written as CSV or JSON lines; end the name {} in .csv or .jsonl",
                path.display()
            ))
        })?;
        Ok(Self { attributes, format })
    }

    /// Writes all rows.
    pub(super) fn write(&self, out: &mut impl Write) -> io::Result<()> {
        match self.format {
            Format::Csv => self.write_csv(out),
            Format::JsonLines => self.rows().try_for_each(|row| {
                serde_json::to_writer(&mut *out, &Object(self.attributes, row))?;
                out.write_all(b"\n")
            }),
        }
    }

    fn write_csv(&self, out: &mut impl Write) -> io::Result<()> {
        let mut csv = csv::Writer::from_writer(out);
        csv.write_record(self.attributes.columns().iter().map(|column| column.name()))?;
        for row in self.rows() {
            for (_, value) in self.attributes.get(row) {
                csv.write_field(value.map_or_else(String::new, |value| value.to_string()))?;
            }
            csv.write_record(None::<&[u8]>)?;
        }
        csv.flush()
    }

    fn rows(&self) -> impl Iterator<Item = Row> {
        (0..self.attributes.rows() as u32).map(Row)
    }
}

/// The attributes of a row, as an object of JSON.
struct Object<'a>(&'a Attributes, Row);

impl Serialize for Object<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(attributes, row) = self;
        let mut map = serializer.serialize_map(Some(attributes.columns().len()))?;
        for (name, value) in attributes.get(*row) {
            map.serialize_entry(name, &value)?;
        }
        map.end()
    }
}
