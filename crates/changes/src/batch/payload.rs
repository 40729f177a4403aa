//! The bytes of a batch in a record, read in place.
//!
//! `n` upserts of `d` components, then `m` deletes; all numbers are little-endian:
//!
//! ```text
//!  0  u32  n
//!  4  u32  m
//!  8  u64  bytes of all keys
//! 16  u64  bytes of all attributes
//! 24  u32  bytes of the idempotency key, 0 without one
//! 28  u32  bytes of the positions of sources, 0 without any
//! 32  u64  when it was committed, in milliseconds since 1970; 0 without an idempotency key
//! 40  f32 [n, d]    vectors
//!     f32 [n]       biases, under the dot product only
//!     u32 [n + m]   where each key ends: first those of the upserts, then those of the deletes
//!     u32 [n]       where the attributes of each row end, if rows have any
//!     keys, attributes, idempotency key, positions of sources, and zeros up to a multiple of 8
//! ```

use bytemuck::try_cast_slice;

use super::key;
use crate::fields::{Aligned, Fields};
use crate::record::HEADER_BYTES;
use crate::schema::Schema;
use crate::sources::Sources;
use crate::values::{self, Values};

/// Bytes before the vectors.
pub(crate) const PREFIX_BYTES: usize = 40;

/// An idempotency key, and when its batch was committed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Request<'a> {
    pub(crate) key: &'a str,
    /// In milliseconds since 1970.
    pub(crate) at: u64,
}

/// A batch in the bytes of its record.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Payload<'a> {
    bytes: &'a [u8],
    upserts: usize,
    dim: usize,
    vectors: &'a [f32],
    biases: &'a [f32],
    key_ends: &'a [u32],
    attribute_ends: &'a [u32],
    keys: &'a str,
    attributes: &'a [u8],
    request: Option<Request<'a>>,
    sources: &'a str,
}

impl<'a> Payload<'a> {
    /// Reads a batch of rows of this schema, from bytes that begin at a multiple of four.
    ///
    /// # Errors
    /// Says why the bytes are no batch.
    pub(crate) fn read(schema: &Schema, bytes: &'a [u8]) -> Result<Self, &'static str> {
        let payload = Self::again(schema, bytes)?;
        if !payload.vectors.iter().chain(payload.biases).all(|number| number.is_finite()) {
            return Err("a number is not finite");
        }
        let is_good =
            |index| payload.checked_key(index).is_some_and(|key| key::fault(key).is_none());
        if !(0..payload.key_ends.len()).all(is_good) {
            return Err("a key is none");
        }
        if !payload.sources.is_empty() && payload.sources.parse::<Sources>().is_err() {
            return Err("the positions of its sources are none");
        }
        Ok(payload)
    }

    /// Reads a batch that was read before: its keys and numbers are good.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub(crate) fn again(schema: &Schema, bytes: &'a [u8]) -> Result<Self, &'static str> {
        let short = "it ends too early";
        let mut fields = Fields(bytes);
        let head = |fields: &mut Fields<'_>| {
            let (upserts, deletes) = (fields.u32()?, fields.u32()?);
            let (keys, attributes) = (fields.u64()?, fields.u64()?);
            let (request, sources, at) = (fields.u32()?, fields.u32()?, fields.u64()?);
            let sizes = [usize::try_from(keys).ok()?, usize::try_from(attributes).ok()?];
            let texts = [request as usize, sources as usize];
            Some((upserts as usize, deletes as usize, sizes, texts, at))
        };
        let (upserts, deletes, [keys, attributes], [request, sources], at) =
            head(&mut fields).ok_or(short)?;
        if upserts + deletes + sources == 0 {
            return Err("it is no batch");
        }
        let bias_bytes = if schema.has_biases() { size_of::<f32>() } else { 0 };
        let end_bytes = if schema.columns.is_empty() { 0 } else { size_of::<u32>() };
        let vectors = upserts.checked_mul(schema.dim * size_of::<f32>()).ok_or(short)?;
        let mut take = |length| fields.bytes(length).ok_or(short);
        let vectors = floats(take(vectors)?)?;
        let biases = floats(take(upserts * bias_bytes)?)?;
        let key_ends = ends(take((upserts + deletes) * size_of::<u32>())?, keys)?;
        let attribute_ends = ends(take(upserts * end_bytes)?, attributes)?;
        let text = |bytes| std::str::from_utf8(bytes).map_err(|_| "a key is not UTF-8");
        let keys = text(take(keys)?)?;
        let attributes = take(attributes)?;
        let request = match text(take(request)?)? {
            "" => None,
            key => Some(Request { key, at }),
        };
        let sources = text(take(sources)?)?;
        let padding = fields.0;
        if padding.len() >= size_of::<u64>() || padding.iter().any(|&byte| byte != 0) {
            return Err("something follows its end");
        }
        Ok(Self {
            bytes,
            upserts,
            dim: schema.dim,
            vectors,
            biases,
            key_ends,
            attribute_ends,
            keys,
            attributes,
            request,
            sources,
        })
    }

    /// Number of upserts.
    pub(crate) fn upserts(&self) -> usize {
        self.upserts
    }

    /// The vectors of the upserts, `[upserts, dim]`.
    pub(crate) fn vectors(&self) -> &'a [f32] {
        self.vectors
    }

    /// The biases of the upserts, or none at all.
    pub(crate) fn biases(&self) -> &'a [f32] {
        self.biases
    }

    /// The keys of the upserts, in order.
    pub(crate) fn upserted(&self) -> impl ExactSizeIterator<Item = &'a str> {
        let payload = *self;
        (0..self.upserts).map(move |index| payload.key(index))
    }

    /// The keys of the deletes, in order.
    pub(crate) fn deleted(&self) -> impl ExactSizeIterator<Item = &'a str> {
        let payload = *self;
        (self.upserts..self.key_ends.len()).map(move |index| payload.key(index))
    }

    /// The idempotency key, if it has one.
    pub(crate) fn request(&self) -> Option<Request<'a>> {
        self.request
    }

    /// The positions of sources that the table has reached by this batch.
    pub(crate) fn sources(&self) -> Sources {
        match self.sources {
            "" => Sources::default(),
            text => text.parse().expect("checked when it was read"),
        }
    }

    /// The norms of the upserts' vectors, by the contract.
    pub(crate) fn norms(&self) -> impl ExactSizeIterator<Item = f64> {
        self.vectors.chunks_exact(self.dim).map(contract::score::norm)
    }

    /// The attributes of each upsert.
    ///
    /// # Errors
    /// If they are not of the schema's types.
    pub(crate) fn values(&self, schema: &Schema) -> Result<Vec<Values>, &'static str> {
        if schema.columns.is_empty() {
            return Ok(vec![Values::default(); self.upserts]);
        }
        let read = |index: usize| {
            let start = index.checked_sub(1).map_or(0, |before| self.attribute_ends[before]);
            let range = start as usize..self.attribute_ends[index] as usize;
            values::read(&schema.columns, &self.attributes[range])
        };
        let all: Option<Vec<Values>> = (0..self.upserts).map(read).collect();
        all.ok_or("attributes are not of the table's types")
    }

    /// A hash of the changes, without the idempotency key.
    pub(crate) fn content(&self) -> [u8; 16] {
        let mut hasher = blake3::Hasher::new();
        hasher.update(&self.bytes[..24]);
        hasher.update(bytemuck::cast_slice(self.vectors));
        hasher.update(bytemuck::cast_slice(self.biases));
        hasher.update(bytemuck::cast_slice(self.key_ends));
        hasher.update(bytemuck::cast_slice(self.attribute_ends));
        hasher.update(self.keys.as_bytes());
        hasher.update(self.attributes);
        hasher.update(self.sources.as_bytes());
        *hasher.finalize().as_bytes().first_chunk().expect("a hash has 32 bytes")
    }

    fn key(&self, index: usize) -> &'a str {
        self.checked_key(index).expect("checked when it was read")
    }

    fn checked_key(&self, index: usize) -> Option<&'a str> {
        let start = index.checked_sub(1).map_or(0, |before| self.key_ends[before]);
        self.keys.get(start as usize..self.key_ends[index] as usize)
    }
}

/// Adds the positions of sources to a record that was not padded, behind its idempotency key.
pub(crate) fn add_sources(record: &mut Aligned, sources: &Sources) {
    let text = sources.to_string();
    let length = u32::try_from(text.len()).expect("at most 1,000 names of 200 bytes");
    record.extend(text.as_bytes());
    let head = &mut record.bytes_mut()[HEADER_BYTES..][..PREFIX_BYTES];
    head[28..32].copy_from_slice(&length.to_le_bytes());
}

fn floats(bytes: &[u8]) -> Result<&[f32], &'static str> {
    try_cast_slice(bytes).map_err(|_| "its numbers are not aligned")
}

/// Adds an idempotency key to a record that was not padded, and when it is committed.
pub(crate) fn add_request(record: &mut Aligned, key: &str, at: u64) {
    let length = u32::try_from(key.len()).expect("an idempotency key is short");
    record.extend(key.as_bytes());
    let head = &mut record.bytes_mut()[HEADER_BYTES..][..PREFIX_BYTES];
    head[24..28].copy_from_slice(&length.to_le_bytes());
    head[32..40].copy_from_slice(&at.to_le_bytes());
}

/// Where things end of which there are so many bytes.
fn ends(bytes: &[u8], length: usize) -> Result<&[u32], &'static str> {
    let ends: &[u32] = try_cast_slice(bytes).map_err(|_| "its numbers are not aligned")?;
    let last = ends.last().map_or(0, |&end| end as usize);
    match ends.is_sorted() && last == length {
        true => Ok(ends),
        false => Err("its keys or attributes do not end where it says"),
    }
}
