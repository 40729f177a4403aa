//! Test sets as text with a name, from files or from anywhere else.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use model_store::prepare::not_plain_reason;

use super::EvaluationError;

/// A text and its names in results and errors.
#[derive(Debug, Clone)]
pub struct Source {
    /// For errors: the path, as given.
    pub file: String,
    /// For results: the file's name, without what comes before and after it.
    pub name: String,
    /// Its content.
    pub text: String,
}

/// Extensions of the files that are read from a folder.
const ENDS: [&str; 3] = ["txt", "csv", "tsv"];

impl Source {
    /// Reads a file.
    ///
    /// # Errors
    /// If it can't be read, is no text, or is not UTF-8, with the line.
    pub fn read(path: &Path) -> Result<Self, EvaluationError> {
        let file = path.display().to_string();
        let bytes = fs::read(path)
            .map_err(|source| EvaluationError::Read { path: path.to_owned(), source })?;
        if let Some(what) = not_plain_reason(&bytes) {
            return Err(EvaluationError::Empty { file, what });
        }
        let text = String::from_utf8(bytes).map_err(|e| {
            let before = &e.as_bytes()[..e.utf8_error().valid_up_to()];
            let line = before.iter().filter(|&&byte| byte == b'\n').count() as u64 + 1;
            let what =
                "it is not UTF-8; convert the file, for example with iconv -f latin1 -t utf8"
                    .to_owned();
            EvaluationError::Line { file: file.clone(), line, what }
        })?;
        Ok(Self { file, name: name(path), text })
    }

    /// Reads a file, or all .txt, .csv and .tsv files of a folder and the folders in it, in the
    /// order of their paths.
    ///
    /// # Errors
    /// As [`Source::read`]; and if a folder has no such file.
    pub fn read_all(path: &Path) -> Result<Vec<Self>, EvaluationError> {
        if !path.is_dir() {
            return Ok(vec![Self::read(path)?]);
        }
        let mut files = Vec::new();
        find(path, &mut files)?;
        if files.is_empty() {
            let what =
                "the folder has no .txt, .csv or .tsv file; name a file or folder with a set";
            let (file, what) = (path.display().to_string(), what.to_owned());
            return Err(EvaluationError::Empty { file, what });
        }
        files.sort();
        files.iter().map(|file| Self::read(file)).collect()
    }

    pub(crate) fn error(&self, line: u64, what: impl Into<String>) -> EvaluationError {
        EvaluationError::Line { file: self.file.clone(), line, what: what.into() }
    }

    pub(crate) fn empty(&self, what: impl Into<String>) -> EvaluationError {
        EvaluationError::Empty { file: self.file.clone(), what: what.into() }
    }
}

/// The name of a file or folder in results.
pub fn name(path: &Path) -> String {
    let name = if path.is_dir() { path.file_name() } else { path.file_stem() };
    name.map_or_else(|| path.display().to_string(), |name| name.to_string_lossy().into_owned())
}

fn find(folder: &Path, files: &mut Vec<PathBuf>) -> Result<(), EvaluationError> {
    let failed = |source| EvaluationError::Read { path: folder.to_owned(), source };
    for entry in fs::read_dir(folder).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        // Hidden files are no sets: macOS leaves one beside each file.
        if entry.file_name().to_string_lossy().starts_with('.') {
            continue;
        }
        // A link to a folder is not followed: it may lead back here.
        let is_folder = entry.file_type().map_err(failed)?.is_dir();
        let path = entry.path();
        let is_set = |end: &OsStr| ENDS.iter().any(|known| end.eq_ignore_ascii_case(known));
        if is_folder {
            find(&path, files)?;
        } else if path.is_file() && path.extension().is_some_and(is_set) {
            files.push(path);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_its_text_files_in_the_order_of_their_paths() {
        let folder = tempfile::tempdir().unwrap();
        let put = |name: &str, text: &[u8]| fs::write(folder.path().join(name), text).unwrap();
        fs::create_dir(folder.path().join("b")).unwrap();
        put("c.TSV", b"c");
        put("b/2.txt", b"b2");
        put("a.csv", b"a");
        put("metadata.json", b"{}");
        put("._a.csv", b"\xff");
        #[cfg(unix)]
        std::os::unix::fs::symlink(folder.path(), folder.path().join("again")).unwrap();
        let sources = Source::read_all(folder.path()).unwrap();
        let texts: Vec<&str> = sources.iter().map(|source| source.text.as_str()).collect();
        assert_eq!(texts, ["a", "b2", "c"]);
        assert_eq!(sources[1].name, "2");
        let only = Source::read_all(&folder.path().join("metadata.json")).unwrap();
        assert_eq!(only[0].text, "{}", "a file that is named is read whatever its end");
    }

    #[test]
    fn what_can_not_be_read_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let error = Source::read_all(folder.path()).unwrap_err().to_string();
        assert!(error.contains("no .txt, .csv or .tsv file"), "{error}");
        let file = folder.path().join("latin1.txt");
        fs::write(&file, b"one\ntwo\ncaf\xe9\n").unwrap();
        let error = Source::read(&file).unwrap_err().to_string();
        assert!(error.contains("latin1.txt, line 3: it is not UTF-8"), "{error}");
        let packed = folder.path().join("packed.txt");
        fs::write(&packed, b"\x1f\x8b\x08\0\0\0\0\0\0\x03").unwrap();
        let error = Source::read(&packed).unwrap_err().to_string();
        assert!(error.contains("packed.txt: it is compressed with gzip; unpack it"), "{error}");
        let error = Source::read(&folder.path().join("none")).unwrap_err().to_string();
        assert!(error.contains("can't read") && error.contains("none"), "{error}");
    }
}
