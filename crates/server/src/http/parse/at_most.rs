//! JSON lists that take bounded memory, however long they are.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

/// A list that keeps at most `MOST` + 1 elements, however long it is. A request with more than
/// `MOST` elements is refused, and the rest of them takes no memory.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::http) struct AtMost<T, const MOST: usize> {
    kept: Vec<T>,
    /// How many elements the list has, including those that are not kept.
    pub(in crate::http) found: usize,
}

impl<T, const MOST: usize> AtMost<T, MOST> {
    /// All elements, if there are at most `MOST`.
    pub(in crate::http) fn all(self) -> Option<Vec<T>> {
        (self.found <= MOST).then_some(self.kept)
    }

    /// The elements that are kept: `MOST` + 1 if there are more than `MOST`.
    pub(in crate::http) fn first(self) -> Vec<T> {
        self.kept
    }
}

impl<T, const MOST: usize> From<Vec<T>> for AtMost<T, MOST> {
    fn from(mut kept: Vec<T>) -> Self {
        let found = kept.len();
        kept.truncate(MOST + 1);
        Self { kept, found }
    }
}

impl<'de, T: Deserialize<'de>, const MOST: usize> Deserialize<'de> for AtMost<T, MOST> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Elements<T, const MOST: usize>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>, const MOST: usize> Visitor<'de> for Elements<T, MOST> {
            type Value = AtMost<T, MOST>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
                let mut kept = Vec::new();
                while kept.len() <= MOST {
                    match list.next_element()? {
                        Some(element) => kept.push(element),
                        None => break,
                    }
                }
                let mut found = kept.len();
                // The rest is parsed as the same type, so that the same faults are found as in a
                // short list.
                while found > MOST && list.next_element::<T>()?.is_some() {
                    found += 1;
                }
                Ok(AtMost { kept, found })
            }
        }
        deserializer.deserialize_seq(Elements(PhantomData))
    }
}

/// A field that may be absent but must not be null.
pub(in crate::http) fn present<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    d: D,
) -> Result<Option<T>, D::Error> {
    T::deserialize(d).map(Some)
}
