//! Where a model comes from: `DIR`, `NAME=DIR`, or the built-in one.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use kindred::device::Placement;

/// Where a served model comes from: `DIR`, `NAME=DIR`, or the built-in one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelSource {
    /// Its name; if `None`, the name of its folder.
    pub name: Option<String>,
    /// Its folder; `None` means the built-in model.
    pub folder: Option<PathBuf>,
}

impl ModelSource {
    /// The built-in model.
    pub const BUILT_IN: Self = Self { name: None, folder: None };

    /// A folder, under its own name.
    pub fn folder(folder: impl Into<PathBuf>) -> Self {
        Self { name: None, folder: Some(folder.into()) }
    }

    /// The model's name, as far as it is known before the model is loaded.
    pub fn expected_name(&self) -> String {
        let of_folder = |folder: &Path| {
            // A folder given as `.`, or one that ends in `..`, has a name only as an absolute path.
            let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
            folder.file_name().map(|name| name.to_string_lossy().into_owned())
        };
        match (&self.name, &self.folder) {
            (Some(name), _) => name.clone(),
            (None, Some(folder)) => of_folder(folder).unwrap_or_else(|| "model".to_owned()),
            (None, None) => kindred::demo::NAME.to_owned(),
        }
    }
}

impl FromStr for ModelSource {
    type Err = String;

    /// A folder with an equals sign in the first part of its path must be written as `./a=b`.
    fn from_str(text: &str) -> Result<Self, String> {
        let (name, folder) = match text.split_once('=') {
            Some((name, folder)) if !name.contains(['/', '\\']) => (Some(name.trim()), folder),
            _ => (None, text),
        };
        if name == Some("") {
            return Err(format!("`{text}` has no name before the `=`; write NAME=DIR, or DIR"));
        }
        if name.is_some() && folder.is_empty() {
            return Err(format!("`{text}` has no folder after the `=`; write NAME=DIR"));
        }
        let folder = (!folder.is_empty()).then(|| PathBuf::from(folder));
        Ok(Self { name: name.map(str::to_owned), folder })
    }
}

/// As written in the settings.
impl fmt::Display for ModelSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(name) = &self.name {
            write!(f, "{name}=")?;
        }
        match &self.folder {
            Some(folder) => write!(f, "{}", folder.display()),
            None => Ok(()),
        }
    }
}

/// The placement of a model on several GPUs: `PLACEMENT` for all, `NAME=PLACEMENT` for one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelPlacement {
    /// The model's name; `None` for all models that have no entry of their own.
    pub model: Option<String>,
    /// Its placement.
    pub placement: Placement,
}

impl FromStr for ModelPlacement {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (model, placement) = match text.rsplit_once('=') {
            Some((name, placement)) => (Some(name.trim().to_owned()), placement.trim()),
            None => (None, text),
        };
        Ok(Self { model, placement: placement.parse()? })
    }
}

impl fmt::Display for ModelPlacement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(model) = &self.model {
            write!(f, "{model}=")?;
        }
        self.placement.fmt(f)
    }
}

/// Lists of sources or placements in settings: one value, a list of values, or several separated by
/// commas, as in an environment variable.
pub(super) mod listed {
    use std::fmt::Display;
    use std::str::FromStr;

    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(crate) fn serialize<T: Display, S: Serializer>(
        values: &[T],
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(values.iter().map(ToString::to_string))
    }

    pub(crate) fn deserialize<'de, D, T>(deserializer: D) -> Result<Vec<T>, D::Error>
    where
        D: Deserializer<'de>,
        T: FromStr<Err = String>,
    {
        #[derive(Deserialize)]
        #[serde(untagged, expecting = "it must be a text or a list of texts,")]
        enum OneOrMany {
            One(String),
            Many(Vec<String>),
        }
        let texts = match OneOrMany::deserialize(deserializer)? {
            OneOrMany::One(text) if text.is_empty() => Vec::new(),
            OneOrMany::One(text) => text.split(',').map(|one| one.trim().to_owned()).collect(),
            OneOrMany::Many(texts) => texts,
        };
        texts.iter().map(|text| text.parse()).collect::<Result<_, _>>().map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stand_before_folders_and_may_be_left_out() {
        let source = |text: &str| text.parse::<ModelSource>();
        assert_eq!(source("").unwrap(), ModelSource::BUILT_IN);
        assert_eq!(source("models/glove").unwrap(), ModelSource::folder("models/glove"));
        let named = ModelSource { name: Some("en".into()), folder: Some("/m/a=b".into()) };
        assert_eq!(source("en=/m/a=b").unwrap(), named);
        assert_eq!(source("./a=b").unwrap(), ModelSource::folder("./a=b"));
        for (text, name) in [("", "demo"), ("models/glove", "glove"), ("en=/m/glove", "en")] {
            assert_eq!(source(text).unwrap().expected_name(), name);
            assert_eq!(source(text).unwrap().to_string(), text);
        }
        for text in ["=dir", "en="] {
            assert!(source(text).unwrap_err().contains("NAME=DIR"), "{text}");
        }
    }
}
