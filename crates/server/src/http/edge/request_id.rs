//! The id of a request, in its answer and in the log.

use axum::http::{HeaderMap, HeaderName, HeaderValue};

/// The header that carries it, in requests and answers.
pub(in crate::http) const NAME: HeaderName = HeaderName::from_static("x-request-id");

/// Longer ids from callers are not used.
const MAX_BYTES: usize = 128;

/// The id of a request in its answer, in problem documents and in the log: the caller's, or a
/// generated one. tower-http's layer is not used, because it copies every id from a caller into the
/// log, of any length and with any characters.
#[derive(Debug, Clone)]
pub(in crate::http) struct RequestId(HeaderValue);

impl RequestId {
    /// The caller's id, if it has only visible characters and is not too long; otherwise a random
    /// one.
    pub(in crate::http) fn of(headers: &HeaderMap) -> Self {
        let is_usable = |id: &&HeaderValue| {
            let bytes = id.as_bytes();
            (1..=MAX_BYTES).contains(&bytes.len()) && bytes.iter().all(u8::is_ascii_graphic)
        };
        match headers.get(NAME).filter(is_usable) {
            Some(id) => Self(id.clone()),
            None => Self::random(),
        }
    }

    /// 64 random bits in hexadecimal digits: enough to distinguish the requests of many years.
    fn random() -> Self {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let bits = fastrand::u64(..);
        let digits: [u8; 16] =
            std::array::from_fn(|at| DIGITS[(bits >> (60 - 4 * at)) as usize & 15]);
        Self(HeaderValue::from_bytes(&digits).expect("hexadecimal digits"))
    }

    pub(in crate::http) fn as_str(&self) -> &str {
        self.0.to_str().expect("visible ASCII characters")
    }

    pub(in crate::http) fn into_value(self) -> HeaderValue {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id_of(sent: Option<&str>) -> String {
        let sent = sent.map(|id| (NAME, HeaderValue::from_bytes(id.as_bytes()).unwrap()));
        RequestId::of(&sent.into_iter().collect()).as_str().to_owned()
    }

    #[test]
    fn ids_are_taken_over_unless_they_could_do_harm() {
        let longest = "x".repeat(MAX_BYTES);
        for id in ["a", "4bf92f3577b34da6", "{\"a\":1}", &longest] {
            assert_eq!(id_of(Some(id)), id);
        }
        for id in ["", "two words", "tab\there", "käse", &"x".repeat(MAX_BYTES + 1)] {
            let made = id_of(Some(id));
            assert_eq!((made.len(), made == id), (16, false), "{id:?}");
        }
        assert_ne!(id_of(None), id_of(None));
    }
}
