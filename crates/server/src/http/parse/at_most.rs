//! Lists of JSON that take bounded memory, however long they are.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

/// A list of which no more than one element more than there may be is kept, however long it is: a request with more is
/// refused, and takes no memory for them.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::http) struct AtMost<T, const MOST: usize> {
    kept: Vec<T>,
    /// How many elements it has.
    pub(in crate::http) found: usize,
}

impl<T, const MOST: usize> AtMost<T, MOST> {
    /// All of its elements, if they are no more than there may be.
    pub(in crate::http) fn all(self) -> Option<Vec<T>> {
        (self.found <= MOST).then_some(self.kept)
    }

    /// Its first elements: one more than there may be, if there are more.
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
                // Still elements of the right kind, so that the same fault is found as in a short list.
                while found > MOST && list.next_element::<T>()?.is_some() {
                    found += 1;
                }
                Ok(AtMost { kept, found })
            }
        }
        deserializer.deserialize_seq(Elements(PhantomData))
    }
}

/// A field that may be absent but, if it is there, is not null.
pub(in crate::http) fn present<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    d: D,
) -> Result<Option<T>, D::Error> {
    T::deserialize(d).map(Some)
}
