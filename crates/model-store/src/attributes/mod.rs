//! Attributes: columns beside the rows, which say what the rows are.
//!
//! A model folder may have a folder `attributes`, in formats that other tools open:
//!
//! - `attributes.json`: names, types, counts, and the checksums of all other files;
//! - for each column its values as a NumPy file; of texts, codes into a dictionary of one JSON
//!   string per line, sorted; of stored texts, blocks of such lines, compressed;
//! - if values are missing, a NumPy file with a bit for each row.
//!
//! Row `n` of a column is row `n` of the vectors. [`ColumnBuilder`] fills a column, [`Attributes`]
//! opens all of them, and [`Column::values`] are typed slices, mapped and not parsed. How the
//! files are laid out is in docs/formats.md.

mod array;
mod attribute_type;
mod bins;
mod builder;
mod classes;
mod column;
mod date_time;
mod description;
mod dictionary;
mod error;
mod files;
mod names;
mod postings;
mod stored;
mod summary;
mod value;

use std::path::Path;
use std::sync::OnceLock;

use contract::Row;
use rayon::prelude::*;

pub use attribute_type::AttributeType;
pub use bins::{Bins, Ordered};
pub use builder::ColumnBuilder;
pub use classes::{BINS, Class, Classes};
pub use column::{Column, Indexed, Values};
pub use date_time::{format_date_time, is_date_time, parse_date_time};
pub use description::AttributeDescription;
pub(crate) use description::{check_names, is_own_file};
pub use dictionary::Dictionary;
pub use error::{AttributeError, MAX_ATTRIBUTES};
pub use files::{AttributeFiles, OneByOne};
pub use names::{KEY, KEYWORDS, MAX_NAME_BYTES, check_name};
pub use postings::Postings;
pub use stored::Stored;
pub use summary::{AttributeSummary, ColumnSummary, Frequent, FrequentText};
pub use value::Value;

use crate::ModelError;
use crate::format::Checksum;
use crate::mapped::Mapped;
use description::Part;
use files::{MappedFile, MappedFiles};

/// The attributes of a model's rows.
#[derive(Debug)]
pub struct Attributes {
    rows: usize,
    columns: Vec<Column>,
    files: MappedFiles,
    summaries: OnceLock<Vec<AttributeSummary>>,
}

impl Attributes {
    /// Attributes of these columns in memory, for tests and computed tables.
    ///
    /// # Errors
    /// If there are no columns, names are wrong or repeated, or columns have different lengths.
    pub fn from_columns(columns: Vec<ColumnBuilder>) -> Result<Self, AttributeError> {
        check_names(columns.iter().map(ColumnBuilder::name))?;
        let rows = columns[0].len();
        if let Some(other) = columns.iter().find(|column| column.len() != rows) {
            let (name, found) = (other.name().to_owned(), other.len());
            return Err(AttributeError::Rows { name, found, rows });
        }
        let sources: Vec<Option<u32>> = (0..rows as u32).map(Some).collect();
        let files = AttributeFiles::of_columns(columns, &sources);
        Ok(Self::from_memory(&files, Path::new("attributes"), rows)?)
    }

    /// Attributes of files in memory. Messages name them as if they were in this folder.
    pub(crate) fn from_memory(
        files: &AttributeFiles,
        folder: &Path,
        rows: usize,
    ) -> Result<Self, ModelError> {
        Self::from_files(files.mapped(folder)?, rows)
    }

    /// Maps the folder of a model's attributes, whose description has this checksum. Checks the
    /// description, all sizes, and that codes lead somewhere;
    /// [`verify_while`](Self::verify_while) checks the rest.
    pub(crate) fn open(
        folder: &Path,
        sum: Checksum,
        rows: usize,
        open: &dyn Fn(&Path) -> Result<Mapped, ModelError>,
    ) -> Result<Self, ModelError> {
        let files = MappedFiles::new(folder, sum, |path| {
            let file = open(path)?;
            file.will_need();
            Ok(file)
        })?;
        Self::from_files(files, rows)
    }

    fn from_files(files: MappedFiles, rows: usize) -> Result<Self, ModelError> {
        let MappedFiles { description, path, columns: of_columns, .. } = &files;
        description.check(rows).map_err(|reason| ModelError::damaged(path, reason))?;
        let mut columns = Vec::with_capacity(of_columns.len());
        for (entry, of_column) in description.columns.iter().zip(of_columns) {
            let parts = Part::of(entry.kind, entry.missing > 0);
            let file = |part| &of_column[place(&parts, part)];
            let column = Column::new(entry, rows, |part| file(part).content.clone());
            let damaged =
                |(part, reason): (Part, String)| ModelError::damaged(&file(part).path, reason);
            columns.push(column.map_err(damaged)?);
        }
        Ok(Self { rows, columns, files, summaries: OnceLock::new() })
    }

    /// Number of rows, those of the vectors.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// All columns, in the order of their file.
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// The column of this name.
    pub fn column(&self, name: &str) -> Option<&Column> {
        self.columns.iter().find(|column| column.name() == name)
    }

    /// The attributes of a row, in the order of the columns; `None` where a value is missing.
    ///
    /// # Panics
    /// If there is no such row.
    pub fn get(&self, row: Row) -> impl ExactSizeIterator<Item = (&str, Option<Value<'_>>)> {
        self.columns.iter().map(move |column| (column.name(), column.get(row)))
    }

    /// Names, types and counts, in the order of the columns.
    pub fn descriptions(&self) -> impl ExactSizeIterator<Item = &AttributeDescription> {
        self.columns.iter().map(Column::description)
    }

    /// Descriptions with frequent texts, in the order of the columns. The first call reads all
    /// texts, on all cores: a few milliseconds for each column of two million.
    pub fn summaries(&self) -> &[AttributeSummary] {
        self.summaries.get_or_init(|| self.columns.par_iter().map(AttributeSummary::of).collect())
    }

    /// Makes the index of each column that has none yet, on all cores: some 10 ms of one core for a
    /// column of two million values. Otherwise the first test of a column makes its index.
    pub fn make_indexes(&self) {
        self.columns.par_iter().for_each(|column| {
            column.indexed();
        });
    }

    /// Bytes of memory that the indexes of all columns take, once they are made.
    pub fn all_index_bytes(&self) -> u64 {
        self.columns.iter().map(|column| column.whole_index_bytes() as u64).sum()
    }

    /// Bytes of memory that the indexes of columns take, those that are made.
    pub fn index_bytes(&self) -> usize {
        self.columns.iter().map(Column::index_bytes).sum()
    }

    /// The size of all files, which is the memory that they take once they were read.
    pub fn bytes(&self) -> u64 {
        self.all_files().map(|file| file.content.len() as u64).sum()
    }

    /// The checksum of the description, which has those of all other files.
    pub(crate) fn checksum(&self) -> Checksum {
        self.files.checksum
    }

    /// The files in the folder, with its description.
    pub(crate) fn paths(&self) -> impl Iterator<Item = &Path> {
        self.all_files().map(|file| &*file.path).chain([&*self.files.path])
    }

    fn all_files(&self) -> impl Iterator<Item = &MappedFile> {
        self.files.columns.iter().flatten()
    }

    /// Reads everything: verifies every checksum, that values are possible and that dictionaries
    /// are sorted. Stops soon after `goes_on` has said no.
    ///
    /// # Errors
    /// If a file can't be read or is damaged, or it was stopped.
    pub fn verify_while(&self, goes_on: &dyn Fn() -> bool) -> Result<(), ModelError> {
        for MappedFile { path, content, checksum } in self.all_files() {
            let found = Checksum::of_while(content, goes_on).ok_or(ModelError::Cancelled)?;
            if found != *checksum {
                let reason = format!("its checksum is {found}, not {checksum}");
                return Err(ModelError::damaged(path, reason));
            }
        }
        for (column, files) in self.columns.iter().zip(&self.files.columns) {
            let parts = Part::of(column.kind(), column.missing() > 0);
            let path = |part| &files[place(&parts, part)].path;
            let is_whole = column.verify(goes_on);
            let is_whole =
                is_whole.map_err(|(part, reason)| ModelError::damaged(path(part), reason))?;
            if !is_whole {
                return Err(ModelError::Cancelled);
            }
        }
        Ok(())
    }
}

/// The place of a column's file among its files.
fn place(parts: &[Part], part: Part) -> usize {
    parts.iter().position(|&one| one == part).expect("a column asks for files of its type")
}
