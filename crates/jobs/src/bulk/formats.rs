//! The formats of bulk work, and which one the name of a file asks for.

use std::path::{Path, PathBuf};

use crate::error::JobError;

/// A format of bulk work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BulkFormat {
    /// Each line is a text. Only to read.
    Lines,
    /// Columns with names in the first line; quotes as in RFC 4180.
    Csv,
    /// Columns with tabs between them, and with names in the first line; quotes are plain
    /// characters. Only to read.
    Tsv,
    /// A JSON object in each line.
    JsonLines,
    /// Apache Parquet, in a file. Only in builds with the feature `parquet`.
    Parquet,
}

/// Where rows come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BulkInput<'a> {
    /// A file, plain or compressed.
    File(&'a Path),
    /// Standard input. Work on it can't be resumed.
    Stdin,
}

/// Where answers go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BulkOutput<'a> {
    /// A file. It appears complete or not at all.
    File(&'a Path),
    /// Standard output. Work for it can't be resumed.
    Stdout,
}

contract::names! { BulkFormat {
    Lines: "lines",
    Csv: "csv",
    Tsv: "tsv",
    JsonLines: "jsonl",
    Parquet: "parquet",
} }

impl BulkFormat {
    /// The formats that are written.
    pub const WRITTEN: [Self; 3] = [Self::Csv, Self::JsonLines, Self::Parquet];

    fn of_extension(extension: &str) -> Option<Self> {
        match extension {
            "csv" => Some(Self::Csv),
            "tsv" => Some(Self::Tsv),
            "jsonl" | "ndjson" => Some(Self::JsonLines),
            "txt" => Some(Self::Lines),
            "parquet" => Some(Self::Parquet),
            _ => None,
        }
    }

    /// Refuses Parquet where it can't be.
    fn checked(self, name: String, is_file: bool, is_packed: bool) -> Result<Self, JobError> {
        match (self, is_file, is_packed) {
            (Self::Parquet, ..) if cfg!(not(feature = "parquet")) => {
                Err(JobError::no_parquet(&name, "another format"))
            }
            // Its end says where everything is.
            (Self::Parquet, false, _) => {
                Err(JobError::Refused(format!("{name}: Parquet needs a file; give its name")))
            }
            (Self::Parquet, _, true) => Err(JobError::Refused(format!(
                "{name}: Parquet is compressed within; leave out the compression of the file"
            ))),
            (format, ..) => Ok(format),
        }
    }
}

impl BulkInput<'_> {
    /// Its name in messages.
    pub(super) fn name(&self) -> String {
        match self {
            Self::File(path) => path.display().to_string(),
            Self::Stdin => "standard input".to_owned(),
        }
    }

    /// The format that is given, or else the one that the name asks for. Other names, such as
    /// `train.json`, are refused: read as lines, they would give answers that nobody wants.
    pub(super) fn format(&self, given: Option<BulkFormat>) -> Result<BulkFormat, JobError> {
        let Self::File(path) = self else {
            return given.unwrap_or(BulkFormat::Lines).checked(self.name(), false, false);
        };
        let name = unpacked(path, &["gz", "bz2", "zst", "xz", "zip"]);
        let named = || match extension(&name) {
            None => Ok(BulkFormat::Lines),
            Some(extension) => BulkFormat::of_extension(&extension).ok_or_else(|| {
                JobError::Refused(format!(
                    "{}: the name does not say the format; give it: csv, tsv, jsonl, lines or \
                     parquet (with `kindred bulk`, --from FORMAT)",
                    path.display()
                ))
            }),
        };
        given.map_or_else(named, Ok)?.checked(self.name(), true, name != *path)
    }
}

impl BulkOutput<'_> {
    /// Its name in messages.
    pub(super) fn name(&self) -> String {
        match self {
            Self::File(path) => path.display().to_string(),
            Self::Stdout => "standard output".to_owned(),
        }
    }

    /// The format, and whether it is compressed with gzip.
    pub(super) fn format(&self, given: Option<BulkFormat>) -> Result<(BulkFormat, bool), JobError> {
        let (found, is_packed) = match self {
            Self::Stdout => (given.or(Some(BulkFormat::JsonLines)), false),
            Self::File(path) => {
                let name = unpacked(path, &["gz"]);
                let named = || BulkFormat::of_extension(&extension(&name)?);
                (given.or_else(named), name != *path)
            }
        };
        match found.filter(|format| BulkFormat::WRITTEN.contains(format)) {
            None => Err(JobError::Refused(format!(
                "{}: the name must end in .jsonl, .csv, .jsonl.gz, .csv.gz or .parquet, or the \
                 format be given: jsonl, csv or parquet (with `kindred bulk`, --to FORMAT)",
                self.name()
            ))),
            Some(format) => {
                let is_file = matches!(self, Self::File(_));
                Ok((format.checked(self.name(), is_file, is_packed)?, is_packed))
            }
        }
    }
}

/// In lower case.
fn extension(path: &Path) -> Option<String> {
    Some(path.extension()?.to_str()?.to_ascii_lowercase())
}

/// The name without what says that the file is compressed, if it ends in one of these.
fn unpacked(path: &Path, ends: &[&str]) -> PathBuf {
    match extension(path) {
        Some(extension) if ends.contains(&&*extension) => path.with_extension(""),
        _ => path.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_say_which_format_and_options_say_it_better() {
        let read = |name: &str| BulkInput::File(Path::new(name)).format(None).ok();
        for (name, expected) in [
            ("a.csv", Some(BulkFormat::Csv)),
            ("a.b/texts.CSV.gz", Some(BulkFormat::Csv)),
            ("a.jsonl", Some(BulkFormat::JsonLines)),
            ("a.ndjson.zst", Some(BulkFormat::JsonLines)),
            ("a.txt.xz", Some(BulkFormat::Lines)),
            ("a.csv.bz2", Some(BulkFormat::Csv)),
            ("texts", Some(BulkFormat::Lines)),
            ("a.tsv", Some(BulkFormat::Tsv)),
            ("texts.TSV.zst", Some(BulkFormat::Tsv)),
            ("a.json", None),
        ] {
            assert_eq!(read(name), expected, "{name}");
        }
        let given = BulkInput::File(Path::new("a.json")).format(Some(BulkFormat::Csv));
        assert_eq!(given.unwrap(), BulkFormat::Csv);
        assert_eq!(BulkInput::Stdin.format(None).unwrap(), BulkFormat::Lines);

        let written = |name: &str| BulkOutput::File(Path::new(name)).format(None).ok();
        assert_eq!(written("a.csv"), Some((BulkFormat::Csv, false)));
        assert_eq!(written("a.jsonl.gz"), Some((BulkFormat::JsonLines, true)));
        assert_eq!(["a.txt", "a.tsv", "a", "a.gz"].map(written), [None; 4]);
        assert_eq!(BulkOutput::Stdout.format(None).unwrap(), (BulkFormat::JsonLines, false));
    }

    #[test]
    fn parquet_is_for_files_and_where_it_can_not_be_the_cure_is_said() {
        let parquet = Some(BulkFormat::Parquet);
        let file = |name: &'static str| {
            (BulkInput::File(Path::new(name)), BulkOutput::File(Path::new(name)))
        };
        for ((input, output), given, part) in [
            (file("a.parquet"), None, None),
            (file("a"), parquet, None),
            (file("a.parquet.gz"), None, Some("is compressed within")),
            (file("a.gz"), parquet, Some("is compressed within")),
            ((BulkInput::Stdin, BulkOutput::Stdout), parquet, Some("needs a file")),
        ] {
            let part = if cfg!(feature = "parquet") { part } else { Some("--features parquet") };
            let read = input.format(given);
            let written = output.format(given).map(|(format, _)| format);
            for found in [read, written] {
                match (found, part) {
                    (Ok(found), None) => assert_eq!(found, BulkFormat::Parquet),
                    (Err(error), Some(part)) => {
                        assert!(error.to_string().contains(part), "{error}");
                    }
                    (found, part) => panic!("{found:?}, expected {part:?}"),
                }
            }
        }
    }
}
