//! Tokens for single bytes, such as `<0x0A>`, where a character has none.

/// The ids of those that a vocabulary has.
#[derive(Debug)]
pub(super) struct ByteTokens {
    ids: Vec<Option<u32>>,
}

impl ByteTokens {
    /// By what a token's id is.
    pub(super) fn new(id: impl Fn(&str) -> Option<u32>) -> Self {
        Self { ids: (0..=255u8).map(|byte| id(&format!("<0x{byte:02X}>"))).collect() }
    }

    /// Appends the ids of a text's bytes, if all of them have one. Whether they have is returned.
    pub(super) fn encode(&self, text: &str, ids: &mut Vec<u32>) -> bool {
        let before = ids.len();
        for byte in text.bytes() {
            let Some(id) = self.ids[usize::from(byte)] else {
                ids.truncate(before);
                return false;
            };
            ids.push(id);
        }
        true
    }
}
