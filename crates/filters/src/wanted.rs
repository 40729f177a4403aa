//! The values that a test wants, and the bins that they are in.

use std::ops::Range;

use contract::row_set::WORD_ROWS;
use hashbrown::HashSet;
use model_store::attributes::Class;

/// Up to this many values are compared with a row's one after the other.
const FEW: usize = 8;

/// Integers or numbers that are wanted.
pub(super) enum Wanted<T> {
    /// From one to another, both included. None if they are in the wrong order.
    Range(T, T),
    /// One of these, ascending.
    Few(Vec<T>),
    /// One of these, ascending; the same by their bits.
    Many(Vec<T>, HashSet<u64>),
}

impl<T: Copy + PartialOrd> Wanted<T> {
    /// One of these, in any order. Equal values have the same bits.
    pub(super) fn one_of(mut values: Vec<T>, bits: impl Fn(T) -> u64) -> Self {
        values.sort_by(|a, b| a.partial_cmp(b).expect("values have an order"));
        values.dedup();
        if values.len() <= FEW {
            return Self::Few(values);
        }
        let set = values.iter().map(|&value| bits(value)).collect();
        Self::Many(values, set)
    }

    /// Whether a value is wanted.
    pub(super) fn has(&self, value: T, bits: impl Fn(T) -> u64) -> bool {
        match self {
            Self::Range(from, to) => value >= *from && value <= *to,
            Self::Few(few) => few.contains(&value),
            Self::Many(_, set) => set.contains(&bits(value)),
        }
    }

    /// The class of a bin with values from one to another, both of which it has.
    pub(super) fn class(&self, least: T, most: T) -> Class {
        match self {
            Self::Range(from, to) if least >= *from && most <= *to => Class::All,
            Self::Range(from, to) if most < *from || least > *to || from > to => Class::None,
            Self::Range(..) => Class::Open,
            Self::Few(values) | Self::Many(values, _) => match within(values, least, most) {
                0 => Class::None,
                _ if least == most => Class::All,
                _ => Class::Open,
            },
        }
    }
}

/// How many of ascending values are from one to another, both included.
fn within<T: PartialOrd>(values: &[T], least: T, most: T) -> usize {
    let behind = &values[values.partition_point(|value| *value < least)..];
    behind.partition_point(|value| *value <= most)
}

/// Codes that are wanted.
pub(super) enum Codes {
    /// From one up to another.
    Range(Range<u32>),
    /// One of these, ascending.
    Few(Vec<u32>),
    /// One of these, ascending; a bit for each code.
    Many(Vec<u32>, Vec<u64>),
}

impl Codes {
    /// One of these codes, in any order.
    pub(super) fn one_of(mut codes: Vec<u32>) -> Self {
        codes.sort_unstable();
        codes.dedup();
        if codes.len() <= FEW {
            return Self::Few(codes);
        }
        let most = codes.last().map_or(0, |&code| code as usize);
        let mut bits = vec![0; most / WORD_ROWS + 1];
        for &code in &codes {
            bits[code as usize / WORD_ROWS] |= 1u64 << (code as usize % WORD_ROWS);
        }
        Self::Many(codes, bits)
    }

    #[inline]
    pub(super) fn has(&self, code: u32) -> bool {
        match self {
            Self::Range(range) => range.contains(&code),
            Self::Few(codes) => codes.contains(&code),
            Self::Many(_, bits) => {
                let word = bits.get(code as usize / WORD_ROWS).copied().unwrap_or(0);
                word >> (code as usize % WORD_ROWS) & 1 == 1
            }
        }
    }

    /// The codes, ascending, if there are at most this many.
    pub(super) fn up_to(&self, most: usize) -> Option<Vec<u32>> {
        match self {
            Self::Range(range) => (range.len() <= most).then(|| range.clone().collect()),
            Self::Few(codes) | Self::Many(codes, _) => (codes.len() <= most).then(|| codes.clone()),
        }
    }

    /// The class of a bin with codes from one to another, both of which it has.
    pub(super) fn class(&self, least: u32, most: u32) -> Class {
        let all = (most - least) as usize + 1;
        let wanted = match self {
            Self::Range(range) => {
                (range.end.min(most + 1)).saturating_sub(range.start.max(least)) as usize
            }
            Self::Few(codes) | Self::Many(codes, _) => within(codes, least, most),
        };
        match wanted {
            0 => Class::None,
            wanted if wanted == all => Class::All,
            _ => Class::Open,
        }
    }
}
