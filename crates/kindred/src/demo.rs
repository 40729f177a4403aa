//! The built-in model, so that the first command that anyone types has something to serve.

use std::path::{Path, PathBuf};

use contract::Metric;
use etcetera::{BaseStrategy, choose_base_strategy};
use model_store::format::format_version;
use model_store::prepare::{Input, PrepareOptions, prepare_folder, prepare_in_memory};
use model_store::{ModelError, ModelStore};
use tracing::{info, warn};

/// 30,000 words × 100 dimensions; `models/demo/MODEL_CARD.md` says how they were made.
const VECTORS: &[u8] = include_bytes!("../../../models/demo/demo-100d.txt.gz");
const INPUT: Input<'_> = Input::Bytes { name: "demo-100d.txt.gz", bytes: VECTORS };

/// The model's name.
pub const NAME: &str = "demo";

/// Opens the built-in model from the cache, where its first use prepares it. If that is not
/// possible, it is prepared in memory, by the same code.
///
/// # Errors
/// If the system has no memory left.
pub fn open(cache_dir: &Path) -> Result<ModelStore, ModelError> {
    let cache = if cache_dir.as_os_str().is_empty() {
        choose_base_strategy().ok().map(|folders| folders.cache_dir().join("kindred"))
    } else {
        Some(cache_dir.to_owned())
    };
    let cached = cache.map(|cache| cache.join(folder_name())).and_then(|folder| {
        open_cached(&folder)
            .inspect_err(|e| {
                warn!("can't store the built-in model, so it is kept in memory: {e}");
            })
            .ok()
    });
    match cached {
        Some(model) => Ok(model.named(NAME)),
        None => {
            let files = prepare_in_memory(INPUT, &PrepareOptions::default())?;
            ModelStore::from_memory(NAME, &files)
        }
    }
}

/// Another model or format has another name, so a folder with this name has the right content.
fn folder_name() -> PathBuf {
    let content = blake3::hash(VECTORS).to_hex();
    let version = format_version(Metric::Cosine);
    format!("{NAME}-{}-v{version}", &content[..16]).into()
}

fn open_cached(folder: &Path) -> Result<ModelStore, ModelError> {
    match open_and_verify(folder) {
        Ok(model) => return Ok(model),
        Err(ModelError::NotAModel { .. }) => {
            info!("preparing the built-in model in {}", folder.display());
        }
        Err(e) => warn!("preparing the built-in model again: {e}"),
    }
    let options = PrepareOptions { replace: true, ..Default::default() };
    let prepared =
        prepare_folder(INPUT, folder, &options, &mut |_| std::ops::ControlFlow::Continue(()));
    // Another process may have been faster; then its folder is as good.
    open_and_verify(folder).map_err(|e| prepared.err().unwrap_or(e))
}

/// The model is small: checking every byte of it takes milliseconds.
fn open_and_verify(folder: &Path) -> Result<ModelStore, ModelError> {
    let model = ModelStore::open(folder)?;
    model.verify(|_| ())?;
    Ok(model)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use heads::{Cut, Tokeniser, Tokens};

    use super::*;
    use contract::Row;

    fn check(model: &ModelStore) {
        assert_eq!((model.name(), model.rows(), model.dim()), (NAME, 30_000, 100));
        assert_eq!(model.words().word(Row(0)), "the");
    }

    #[test]
    fn the_first_use_prepares_and_the_second_opens() {
        let cache = tempfile::tempdir().unwrap();
        let first = open(cache.path()).unwrap();
        check(&first);
        let folder = cache.path().join(folder_name());
        let second = open(cache.path()).unwrap();
        assert_eq!(first.header(), second.header(), "the same file, down to its time stamp");
        assert!(folder.is_dir());
    }

    #[test]
    fn a_damaged_cache_is_made_again() {
        let cache = tempfile::tempdir().unwrap();
        open(cache.path()).unwrap();
        let words = cache.path().join(folder_name()).join("words.txt");
        let mut text = std::fs::read(&words).unwrap();
        text[0] = b'T';
        std::fs::write(&words, text).unwrap();
        check(&open(cache.path()).unwrap());
        assert!(std::fs::read(&words).unwrap().starts_with(b"the"));
    }

    #[test]
    fn where_nothing_can_be_written_it_stays_in_memory() {
        // A file where the folder should be: not even root can make a folder in it.
        let file = tempfile::NamedTempFile::new().unwrap();
        check(&open(file.path()).unwrap());
    }

    #[test]
    fn the_built_in_head_fits_the_built_in_model_and_no_other() {
        let head = heads::built_in(&open(Path::new("")).unwrap()).expect("a head");
        assert_eq!(head.description().labels, ["negative", "positive"]);
        assert_eq!(head.missing_checksum(), None);
        let other = ModelStore::from_rows("other", 2, [("a", &[1.0, 0.0][..])]).unwrap();
        assert!(heads::built_in(&other).is_none());
    }

    #[test]
    fn the_built_in_model_expands_texts_to_words_near_theirs() {
        let model = Arc::new(open(Path::new("")).unwrap());
        let tokens =
            Tokens { tokeniser: Tokeniser::Unicode, lower_case: true, limit: 512, cut: Cut::End };
        let reach = heads::reach_of(&model, tokens, 20, &heads::STOP_WORDS, 1).unwrap();
        assert!((reach - heads::BUILT_IN_REACH).abs() < 0.005, "{reach}");
        let (name, expander) = heads::own_expander(&model).expect("an expander");
        assert_eq!((name, expander.len()), ("nearby", model.rows()));
        let rows: [(&str, &[f32]); 1] = [("a", &[1.0, 0.0])];
        let other = Arc::new(ModelStore::from_rows_under_dot("other", 2, rows, None).unwrap());
        assert_eq!(heads::own_expander(&other).map(|(name, _)| name), Some("terms"));
    }
}
