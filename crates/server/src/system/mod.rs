//! Figures and limits that each system has in its own way: of this process, of the machine's
//! memory, and the number of open files. Figures that a system does not report are `None`.
//!
//! | | Linux | macOS and other Unix | Windows |
//! |---|---|---|---|
//! | process | `/proc/self` | CPU time and files | none |
//! | available memory | `/proc/meminfo`, control groups | not checked | not checked |
//! | limit of open files | raised | raised | has none |

mod files;
mod memory;
mod process;

pub use files::raise_file_limit;
pub(crate) use memory::available_memory;
pub(crate) use process::{Figures, figures};

/// The number in the first line of this file that begins with `name`. `None` if there is no such
/// file, line or number.
#[cfg(target_os = "linux")]
fn number_in(file: &str, name: &str) -> Option<u64> {
    let text = std::fs::read_to_string(file).ok()?;
    let rest = text.lines().find_map(|line| line.strip_prefix(name))?;
    rest.split_whitespace().next()?.parse().ok()
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_by_the_beginnings_of_their_lines() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "max\nMemTotal:   12 kB\nMemFree: x\n").unwrap();
        let number = |name: &str| number_in(file.path().to_str().unwrap(), name);
        assert_eq!(number("MemTotal:"), Some(12));
        assert_eq!([number("MemFree:"), number("Mem "), number("")], [None; 3]);
        assert_eq!(number_in("/no/such/file", ""), None);
    }
}
