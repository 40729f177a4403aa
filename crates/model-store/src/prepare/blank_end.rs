//! Blank lines and zero bytes at the end of a file.

/// The end of a file that is left out.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct BlankEnd {
    /// Lines without a character, but for white space.
    pub(super) lines: u64,
    /// Zero bytes, with which some programs fill up a file.
    pub(super) zeros: u64,
}

impl BlankEnd {
    /// A sentence about the end, if there is one.
    pub(super) fn warning(self) -> Option<String> {
        let Self { lines, zeros } = self;
        match (lines, zeros) {
            (0, 0) => None,
            (_, 0) => Some(format!("the empty lines at its end ({lines}) were left out")),
            _ => Some(format!("the zero bytes at its end ({zeros}) were left out")),
        }
    }
}
