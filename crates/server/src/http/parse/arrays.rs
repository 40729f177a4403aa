//! Bodies that are arrays of vectors, in the format of NumPy files (.npy): checked, and read into
//! float32 vector by vector.

use kindred::npy::Numbers;
use kindred::{Error, Number};

use super::limits::{MAX_QUERIES, MAX_TEXTS, MAX_TOKEN_VECTORS};
use crate::http::ApiError;

/// An array of numbers in a body.
#[derive(Debug)]
pub(in crate::http) struct Array<'a> {
    shape: Vec<u64>,
    number: Number,
    /// The numbers of the shape, and nothing else.
    bytes: &'a [u8],
}

/// The vectors of an array, one after the other.
#[derive(Debug)]
pub(in crate::http) struct Vectors<'a> {
    /// Whether they are the rows of a list; a vector that is the whole array is none.
    pub(in crate::http) is_list: bool,
    pub(in crate::http) count: usize,
    dim: usize,
    number: Number,
    bytes: &'a [u8],
}

/// The vectors of the tokens of some texts. All texts have the same number of tokens.
#[derive(Debug)]
pub(in crate::http) struct TokenArray {
    /// Whether there is a list of texts; an array of a single text has none.
    pub(in crate::http) is_list: bool,
    /// Tokens of each text, at least 1.
    pub(in crate::http) tokens: usize,
    /// For each text, `[tokens, dim]`.
    pub(in crate::http) texts: Vec<Vec<f32>>,
}

impl<'a> Array<'a> {
    /// Reads a body's header, and checks that the numbers that it announces follow.
    pub(in crate::http) fn read(body: &'a [u8]) -> Result<Self, ApiError> {
        let not_npy = |reason| ApiError::NotNpy { reason };
        if !Numbers::begins(body) {
            let reason = match body {
                [] => "it is empty",
                _ => {
                    "it does not begin as such a file does; write it with numpy.save, and send it as it is \
                      (curl: --data-binary)"
                }
            };
            return Err(not_npy(reason.to_owned()));
        }
        let damaged = |reason| match body.contains(&b'\n') {
            true => not_npy(reason),
            // A header ends with a line feed, and curl's -d leaves line feeds out of a file.
            false => not_npy(format!("{reason}; send it as it is (curl: --data-binary, not -d)")),
        };
        let numbers = Numbers::read(body).map_err(damaged)?;
        let bytes = numbers.bytes(body).map_err(damaged)?;
        Ok(Self { shape: numbers.shape, number: numbers.number, bytes })
    }

    /// How many numbers it has.
    pub(in crate::http) fn numbers(&self) -> usize {
        self.bytes.len() / self.number.bytes()
    }

    /// The array as vectors of `dim` components: `[dim]`, or `[n, dim]` for 1 to [`MAX_QUERIES`] of
    /// them.
    pub(in crate::http) fn vectors(&self, dim: usize) -> Result<Vectors<'a>, ApiError> {
        self.vectors_up_to(dim, MAX_QUERIES)
    }

    /// The same, for at most `most` of them.
    pub(in crate::http) fn vectors_up_to(
        &self,
        dim: usize,
        most: usize,
    ) -> Result<Vectors<'a>, ApiError> {
        let (count, found) = match self.shape[..] {
            [found] => (1, found),
            [count, found] => (count, found),
            _ => return Err(self.wrong_shape("[dim] for one vector or [n, dim] for n of them")),
        };
        if found != dim as u64 {
            let found = usize::try_from(found).unwrap_or(usize::MAX);
            return Err(Error::DimensionMismatch { found, expected: dim }.into());
        }
        let count = up_to(count, most, "vectors")?;
        let Self { number, bytes, .. } = *self;
        Ok(Vectors { is_list: self.shape.len() == 2, count, dim, number, bytes })
    }

    /// The array as vectors of tokens: `[tokens, dim]` for one text, or `[texts, tokens, dim]`. The
    /// head says what `dim` must be.
    pub(in crate::http) fn tokens(&self) -> Result<TokenArray, ApiError> {
        let (is_list, count, tokens, dim) = match self.shape[..] {
            [tokens, dim] => (false, 1, tokens, dim),
            [count, tokens, dim] => (true, count, tokens, dim),
            _ => {
                let must_be = "[tokens, dim] for one text or [texts, tokens, dim] for several";
                return Err(self.wrong_shape(must_be));
            }
        };
        let count = up_to(count, MAX_TEXTS, "texts")?;
        let tokens = up_to(tokens, MAX_TOKEN_VECTORS, "tokens for each text")?;
        if dim == 0 {
            return Err(self.wrong_shape("vectors of at least one component"));
        }
        // None of its lengths is 0, so it has at least as many numbers as texts.
        let texts = self.bytes.chunks_exact(self.bytes.len() / count);
        let texts = texts.map(|text| floats(self.number, text)).collect();
        Ok(TokenArray { is_list, tokens, texts })
    }

    fn wrong_shape(&self, must_be: &str) -> ApiError {
        let shape: Vec<String> = self.shape.iter().map(u64::to_string).collect();
        let reason = format!("the array has the shape [{}]; send {must_be}", shape.join(", "));
        ApiError::invalid_request(reason)
    }
}

impl Vectors<'_> {
    /// Each vector, as the nearest float32; numbers out of range are infinite.
    pub(in crate::http) fn each(&self) -> impl Iterator<Item = Vec<f32>> {
        // A model has at least one dimension.
        let bytes = self.bytes.chunks_exact(self.dim * self.number.bytes());
        bytes.map(|vector| floats(self.number, vector))
    }
}

fn floats(number: Number, bytes: &[u8]) -> Vec<f32> {
    let mut floats = Vec::with_capacity(bytes.len() / number.bytes());
    number.read(bytes, &mut floats);
    floats
}

/// A length of the array, if it is from 1 to `most`.
fn up_to(found: u64, most: usize, what: &str) -> Result<usize, ApiError> {
    let length = usize::try_from(found).ok().filter(|length| (1..=most).contains(length));
    length.ok_or_else(|| {
        let reason = format!(
            "the array has {found} {what}; send 1 to {most}, and the rest in other requests"
        );
        ApiError::invalid_request(reason)
    })
}

#[cfg(test)]
mod tests {
    use kindred::npy::head;

    use super::*;

    fn file(shape: &[u64], bytes: usize) -> Vec<u8> {
        [head("'<f2'", shape), vec![0; bytes]].concat()
    }

    #[test]
    fn no_shape_makes_more_vectors_than_there_are_bytes() {
        const HUGE: u64 = u64::MAX / 2;
        for shape in [&[][..], &[0], &[0, HUGE], &[HUGE, 0], &[HUGE, 0, HUGE], &[1, 1, 0], &[0; 5]]
        {
            let empty = shape.contains(&0);
            let body = file(shape, if empty { 0 } else { 2 });
            let array = Array::read(&body).unwrap();
            assert!(array.vectors(2).is_err() && array.tokens().is_err(), "{shape:?}");
        }
        let body = file(&[HUGE, 2, 2], 8);
        assert!(matches!(Array::read(&body), Err(ApiError::NotNpy { .. })));
    }

    #[test]
    fn the_last_length_is_that_of_a_vector() {
        let read = |shape: &[u64], bytes| {
            let body = file(shape, bytes);
            let array = Array::read(&body).unwrap();
            array.vectors(2).map(|vectors| (vectors.is_list, vectors.each().collect::<Vec<_>>()))
        };
        assert_eq!(read(&[2], 4), Ok((false, vec![vec![0.0, 0.0]])));
        assert_eq!(read(&[1, 2], 4), Ok((true, vec![vec![0.0, 0.0]])));
        assert_eq!(read(&[3, 2], 12), Ok((true, vec![vec![0.0, 0.0]; 3])));
        let mismatch = Error::DimensionMismatch { found: 3, expected: 2 }.into();
        assert_eq!(read(&[2, 3], 12), Err(mismatch));
        assert!(read(&[1025, 2], 4100).is_err() && read(&[1024, 2], 4096).is_ok());
        let body = file(&[2, 3, 1], 12);
        let tokens = Array::read(&body).unwrap().tokens().unwrap();
        assert_eq!((tokens.is_list, tokens.tokens, tokens.texts.len()), (true, 3, 2));
    }
}
