//! Git LFS: where its files were not fetched, a repository has small texts in their place.

/// How such a text begins.
const POINTER: &[u8] = b"version https://git-lfs.github.com/spec/v1";

/// The bytes that tell a pointer from any other file.
pub(crate) const POINTER_BYTES: usize = POINTER.len();

/// The name of such a text, and the cure.
pub(crate) const NAME: &str = "a Git LFS pointer, not the file itself";
pub(crate) const CURE: &str = "fetch the file with `git lfs pull`";

/// Whether a file with this beginning may be a pointer.
pub(crate) fn may_begin(start: &[u8]) -> bool {
    POINTER.starts_with(start) || start.starts_with(POINTER)
}

/// Whether a file that begins like this is a pointer.
pub(crate) fn is_pointer(start: &[u8]) -> bool {
    start.starts_with(POINTER)
}

/// What is wrong with a file that begins like this, if it is a pointer.
pub(crate) fn reason(start: &[u8]) -> Option<String> {
    is_pointer(start).then(|| format!("it is {NAME}; {CURE}"))
}
