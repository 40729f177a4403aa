//! Parquet's decoders, whose assertions damage can break.

use std::fmt::Display;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Reads from a file in Parquet. Damage is an error of the file, and no end of the process.
///
/// # Errors
/// The reason, in words.
pub fn guarded<T, E: Display>(read: impl FnOnce() -> Result<T, E>) -> Result<T, String> {
    match catch_unwind(AssertUnwindSafe(read)) {
        Ok(found) => found.map_err(|error| error.to_string()),
        Err(_) => Err("Parquet error: it is damaged".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::guarded;

    #[test]
    fn a_panic_is_an_error_of_the_file() {
        assert_eq!(guarded(|| Ok::<_, String>(7)), Ok(7));
        assert_eq!(guarded(|| Err::<(), _>("no magic")), Err("no magic".to_owned()));
        let damaged = guarded(|| -> Result<(), String> { panic!("a decoder's assertion") });
        assert_eq!(damaged, Err("Parquet error: it is damaged".to_owned()));
    }
}
