//! The matrices of a fastText file, where they lie in it: plain numbers, or numbers of centroids.
//!
//! A quantised row has a byte for each group of `group` components: the number of the centroid that
//! takes their place. The last group may be shorter. If norms are quantised by themselves, a row is
//! its centroids times the centroid of its norm.

use std::ops::Range;

use super::cursor::Cursor;
use crate::EncoderError;

/// Centroids of each group.
const CENTROIDS: usize = 256;

/// A matrix of either kind.
#[derive(Debug)]
pub(super) enum Matrix {
    Dense(Dense),
    Quantised(Quantised),
}

impl Matrix {
    /// Reads the sizes of a matrix of `[rows, dim]`, and skips its numbers.
    pub(super) fn read(
        cursor: &mut Cursor<'_>,
        name: &str,
        rows: u64,
        dim: usize,
        is_quantised: bool,
    ) -> Result<Self, EncoderError> {
        Ok(match is_quantised {
            false => Self::Dense(Dense::read(cursor, name, rows, dim)?),
            true => Self::Quantised(Quantised::read(cursor, name, rows, dim)?),
        })
    }

    /// Adds a row to a sum, in float32.
    pub(super) fn add(&self, file: &[u8], row: u32, sum: &mut [f32]) {
        match self {
            Self::Dense(dense) => dense.add(file, row, sum),
            Self::Quantised(quantised) => quantised.add(file, row, sum),
        }
    }

    /// The product of a row with a vector, in float32.
    pub(super) fn dot(&self, file: &[u8], row: u32, vector: &[f32]) -> f32 {
        match self {
            Self::Dense(dense) => dot(dense.bytes(file, row..row + 1), vector),
            Self::Quantised(quantised) => {
                let mut stored = vec![0.0; vector.len()];
                quantised.add(file, row, &mut stored);
                stored.iter().zip(vector).map(|(a, b)| a * b).sum()
            }
        }
    }
}

/// Rows of float32, one after the other.
#[derive(Debug, Clone, Copy)]
pub(super) struct Dense {
    at: usize,
    dim: usize,
}

impl Dense {
    /// Reads the sizes of a matrix, and skips its numbers.
    pub(super) fn read(
        cursor: &mut Cursor<'_>,
        name: &str,
        rows: u64,
        dim: usize,
    ) -> Result<Self, EncoderError> {
        check_sizes(cursor, name, rows, dim)?;
        let at = cursor.at();
        // Both are below 2^32, and four times their product may still be too large.
        let bytes = rows.checked_mul(dim as u64).and_then(|numbers| numbers.checked_mul(4));
        let Some(bytes) = bytes else {
            return Err(cursor.damaged(at, format!("{name}: no file has {rows} × {dim} numbers")));
        };
        cursor.take(bytes, name)?;
        Ok(Self { at, dim })
    }

    /// The bytes of some rows.
    pub(super) fn bytes<'a>(&self, file: &'a [u8], rows: Range<u32>) -> &'a [u8] {
        let row = self.dim * size_of::<f32>();
        &file[self.at + rows.start as usize * row..self.at + rows.end as usize * row]
    }

    pub(super) fn add(&self, file: &[u8], row: u32, sum: &mut [f32]) {
        add_floats(self.bytes(file, row..row + 1), 1.0, sum);
    }
}

/// Rows of the numbers of centroids.
#[derive(Debug)]
pub(super) struct Quantised {
    codes: usize,
    centroids: Centroids,
    /// Where the numbers of the norms' centroids are, and these centroids.
    norms: Option<(usize, usize)>,
}

/// The centroids of groups of components.
#[derive(Debug)]
struct Centroids {
    at: usize,
    dim: usize,
    group: usize,
}

impl Quantised {
    fn read(
        cursor: &mut Cursor<'_>,
        name: &str,
        rows: u64,
        dim: usize,
    ) -> Result<Self, EncoderError> {
        let has_norms = cursor.bool("whether norms are quantised")?;
        check_sizes(cursor, name, rows, dim)?;
        let at = cursor.at();
        let length = cursor.count("the length of the rows' codes")?;
        let codes = cursor.at();
        cursor.take(u64::from(length), "the rows' codes")?;
        let centroids = Centroids::read(cursor, dim)?;
        let wanted = rows * centroids.groups() as u64;
        if u64::from(length) != wanted {
            let reason = format!("{name}: {length} bytes of codes instead of {wanted}");
            return Err(cursor.damaged(at, reason));
        }
        let norms = match has_norms {
            false => None,
            true => {
                let codes = cursor.at();
                cursor.take(rows, "the norms' codes")?;
                Some((codes, Centroids::read(cursor, 1)?.at))
            }
        };
        Ok(Self { codes, centroids, norms })
    }

    fn add(&self, file: &[u8], row: u32, sum: &mut [f32]) {
        let Self { codes, centroids: Centroids { at, dim, group }, norms } = self;
        let norm = norms.map_or(1.0, |(codes, centroids)| {
            let code = usize::from(file[codes + row as usize]);
            let at = centroids + code * size_of::<f32>();
            f32::from_le_bytes(file[at..at + 4].try_into().expect("four bytes"))
        });
        let groups = self.centroids.groups();
        let codes = &file[codes + row as usize * groups..][..groups];
        for (index, (&code, sum)) in codes.iter().zip(sum.chunks_mut(*group)).enumerate() {
            // The centroids of the last group lie closer if it is shorter.
            let first = index * CENTROIDS * group + usize::from(code) * sum.len();
            debug_assert!(first + sum.len() <= dim * CENTROIDS, "within the centroids");
            let start = at + first * size_of::<f32>();
            add_floats(&file[start..start + size_of_val(sum)], norm, sum);
        }
    }
}

impl Centroids {
    fn read(cursor: &mut Cursor<'_>, dim: usize) -> Result<Self, EncoderError> {
        let at = cursor.at();
        let [found, groups, group, last] = ["components", "groups", "a group", "the last group"]
            .map(|name| cursor.count(name))
            .map(|number| number.map(|number| number as usize));
        let (found, groups, group, last) = (found?, groups?, group?, last?);
        let fits = group > 0 && groups == dim.div_ceil(group) && last == (dim - 1) % group + 1;
        if found != dim || !fits {
            let reason = format!(
                "centroids of {found} components in {groups} groups of {group}, the last of {last}, \
                 do not fit rows of {dim} components"
            );
            return Err(cursor.damaged(at, reason));
        }
        let start = cursor.at();
        cursor.take((dim * CENTROIDS * size_of::<f32>()) as u64, "the centroids")?;
        Ok(Self { at: start, dim, group })
    }

    fn groups(&self) -> usize {
        self.dim.div_ceil(self.group)
    }
}

/// Checks the sizes that a matrix says it has.
fn check_sizes(
    cursor: &mut Cursor<'_>,
    name: &str,
    rows: u64,
    dim: usize,
) -> Result<(), EncoderError> {
    let at = cursor.at();
    let found = cursor.i64("the number of rows")?;
    let components = cursor.i64("the number of components")?;
    if u64::try_from(found) == Ok(rows) && u64::try_from(components) == Ok(dim as u64) {
        return Ok(());
    }
    let reason = format!("{name}: {found} × {components} numbers instead of {rows} × {dim}");
    Err(cursor.damaged(at, reason))
}

/// Adds little-endian float32, each multiplied in float32.
fn add_floats(stored: &[u8], times: f32, sum: &mut [f32]) {
    for (component, stored) in sum.iter_mut().zip(stored.as_chunks().0) {
        *component += times * f32::from_le_bytes(*stored);
    }
}

/// The product of little-endian float32 with a vector, in eight sums.
fn dot(stored: &[u8], vector: &[f32]) -> f32 {
    const SUMS: usize = 8;
    let mut sums = [0f32; SUMS];
    let stored = stored.as_chunks().0;
    for (stored, vector) in stored.chunks(SUMS).zip(vector.chunks(SUMS)) {
        for ((sum, stored), component) in sums.iter_mut().zip(stored).zip(vector) {
            *sum += f32::from_le_bytes(*stored) * component;
        }
    }
    sums.iter().sum()
}
