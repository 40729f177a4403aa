//! The files of a folder of attributes, before they are written or after they were mapped.

use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::builder::ColumnBuilder;
use super::description::{
    AttributeDescription, ColumnEntry, DESCRIPTION_FILE, Description, FORMAT_WITH_STORED,
    is_own_file,
};
use crate::ModelError;
use crate::error::because;
use crate::format::Checksum;
use crate::mapped::Mapped;

/// The content of a model's folder `attributes`: its description and the files of its columns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttributeFiles {
    /// Names and contents, the description first.
    files: Vec<(String, Vec<u8>)>,
    descriptions: Vec<AttributeDescription>,
}

impl AttributeFiles {
    /// The files of these columns, for rows that have the values at these places: `None` is a row
    /// without values.
    pub fn of_columns(columns: Vec<ColumnBuilder>, sources: &[Option<u32>]) -> Self {
        // One column after the other, so that only one is there twice.
        let mut files = vec![(DESCRIPTION_FILE.to_owned(), Vec::new())];
        let mut all = OneByOne { sources: sources.to_vec(), entries: Vec::new() };
        columns.into_iter().for_each(|column| files.extend(all.add(column)));
        let described = |entry: &ColumnEntry| {
            let ColumnEntry { name, kind, distinct, missing, .. } = entry.clone();
            AttributeDescription { name, kind, distinct, missing }
        };
        let descriptions = all.entries.iter().map(described).collect();
        files[0].1 = all.finish().1;
        Self { files, descriptions }
    }

    /// The files of columns of this many rows, for those who write each before they make the next.
    pub fn one_by_one(rows: usize) -> OneByOne {
        OneByOne { sources: (0..rows as u32).map(Some).collect(), entries: Vec::new() }
    }

    /// Names and contents, the description first.
    pub fn files(&self) -> &[(String, Vec<u8>)] {
        &self.files
    }

    /// Names, types and counts of the columns.
    pub fn descriptions(&self) -> &[AttributeDescription] {
        &self.descriptions
    }

    /// The checksum of the description, which has those of all other files.
    pub fn checksum(&self) -> Checksum {
        Checksum::of(&self.files[0].1)
    }

    /// The files as if they were mapped from a folder.
    pub(super) fn mapped(&self, folder: &Path) -> Result<MappedFiles, ModelError> {
        MappedFiles::new(folder, self.checksum(), |path| {
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            let content = self.files.iter().find(|(file, _)| file == name);
            let content = content.map_or(&[][..], |(_, content)| &content[..]);
            Mapped::copy_of(content).map_err(ModelError::io("keep in memory", path))
        })
    }
}

/// The files of columns, one column after the other, and of their description at last.
pub struct OneByOne {
    sources: Vec<Option<u32>>,
    entries: Vec<ColumnEntry>,
}

impl OneByOne {
    /// Names and contents of the files of the next column.
    pub fn add(&mut self, column: ColumnBuilder) -> Vec<(String, Vec<u8>)> {
        let (entry, files) = column.into_files(self.entries.len(), &self.sources);
        self.entries.push(entry);
        files
    }

    /// Name and content of the description.
    pub fn finish(self) -> (String, Vec<u8>) {
        let Self { sources, entries: columns } = self;
        let description = Description::new(sources.len(), columns);
        let mut json = serde_json::to_vec_pretty(&description).expect("texts and numbers");
        json.push(b'\n');
        (DESCRIPTION_FILE.to_owned(), json)
    }
}

/// The version of a description.
#[derive(Deserialize)]
struct Version {
    format: u32,
}

/// A mapped file with the checksum that it should have.
#[derive(Debug)]
pub(super) struct MappedFile {
    pub(super) path: PathBuf,
    pub(super) content: Mapped,
    pub(super) checksum: Checksum,
}

/// The mapped files of a folder.
#[derive(Debug)]
pub(super) struct MappedFiles {
    pub(super) description: Description,
    /// The description's own file.
    pub(super) path: PathBuf,
    /// The checksum of that file.
    pub(super) checksum: Checksum,
    /// The files of each column.
    pub(super) columns: Vec<Vec<MappedFile>>,
}

impl MappedFiles {
    /// Takes the files of a folder whose description has this checksum. Checks their sizes.
    pub(super) fn new(
        folder: &Path,
        checksum: Checksum,
        open: impl Fn(&Path) -> Result<Mapped, ModelError>,
    ) -> Result<Self, ModelError> {
        let path = folder.join(DESCRIPTION_FILE);
        let content = open(&path)?;
        if Checksum::of(&content) != checksum {
            let reason = "its checksum is not that of the model's header";
            return Err(ModelError::damaged(&path, reason));
        }
        let damaged = |e: serde_json::Error| {
            ModelError::damaged(
                &path,
                because(format!("it is not a description of attributes ({e})"), e),
            )
        };
        // First, because one of a later version may have types that are not known here.
        let Version { format } = serde_json::from_slice(&content).map_err(damaged)?;
        if !(1..=FORMAT_WITH_STORED).contains(&format) {
            let (found, supported) = (format.to_string(), FORMAT_WITH_STORED.to_string());
            return Err(ModelError::Version { path, found, supported });
        }
        let description: Description = serde_json::from_slice(&content).map_err(damaged)?;
        let mut columns = Vec::with_capacity(description.columns.len());
        for column in &description.columns {
            let mut files = Vec::with_capacity(column.files.len());
            for file in &column.files {
                // A description that was forged must not lead out of the folder.
                if !is_own_file(&file.name) || file.name.contains(['/', '\\']) {
                    let reason = format!("it names the file {:?}", file.name);
                    return Err(ModelError::damaged(&path, reason));
                }
                let file_path = folder.join(&file.name);
                let content = open(&file_path)?;
                let (found, expected) = (content.len() as u64, file.bytes);
                if found != expected {
                    return Err(ModelError::Size { path: file_path, found, expected });
                }
                files.push(MappedFile { path: file_path, content, checksum: file.checksum });
            }
            columns.push(files);
        }
        Ok(Self { description, path, checksum, columns })
    }
}
