//! One-dimensional NumPy files, mapped: their numbers are used where they are.

use std::fmt;
use std::marker::PhantomData;

use bytemuck::Pod;

use crate::mapped::Mapped;
use crate::npy;

/// The type of elements as NumPy names it, with its quotes.
pub(super) const INT64: &str = "'<i8'";
pub(super) const UINT64: &str = "'<u8'";
pub(super) const UINT32: &str = "'<u4'";
pub(super) const FLOAT64: &str = "'<f8'";
pub(super) const BOOLEAN: &str = "'|b1'";
pub(super) const MICROSECONDS: &str = "'<M8[us]'";

/// The content of a NumPy file.
pub(super) fn npy_of<T: Pod>(descr: &str, numbers: &[T]) -> Vec<u8> {
    let mut file = npy::head(descr, &[numbers.len() as u64]);
    file.extend_from_slice(bytemuck::cast_slice(numbers));
    file
}

/// The numbers of a mapped NumPy file. Clones share it.
#[derive(Clone)]
pub(super) struct Array<T> {
    file: Mapped,
    start: usize,
    of: PhantomData<T>,
}

impl<T: Pod> Array<T> {
    /// Takes a file that has exactly this many numbers, as [`npy_of`] writes them.
    pub(super) fn new(file: Mapped, descr: &str, length: usize) -> Result<Self, String> {
        let head = npy::head(descr, &[length as u64]);
        let expected = length.checked_mul(size_of::<T>()).and_then(|n| n.checked_add(head.len()));
        if !file.starts_with(&head) || Some(file.len()) != expected {
            return Err(format!("it is not a NumPy file of {length} numbers of the type {descr}"));
        }
        Ok(Self { file, start: head.len(), of: PhantomData })
    }

    /// Takes a file of any number of numbers, as [`npy_of`] writes them.
    pub(super) fn any_length(file: Mapped, descr: &str) -> Result<Self, String> {
        // A head of one length has few lines of the alignment.
        let heads = (1..=3).map(|lines| lines * npy::ALIGNMENT);
        let lengths = heads.filter_map(|head| Some(file.len().checked_sub(head)? / size_of::<T>()));
        let mut opened = lengths.map(|length| Self::new(file.clone(), descr, length));
        let found = opened.find(Result::is_ok);
        found.unwrap_or_else(|| {
            Err(format!("it is not a NumPy file of numbers of the type {descr}"))
        })
    }

    /// The numbers: a file is aligned to a page, and its head keeps the alignment.
    pub(super) fn all(&self) -> &[T] {
        bytemuck::cast_slice(&self.file[self.start..])
    }
}

impl<T> fmt::Debug for Array<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes of numbers", self.file.len() - self.start)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8], descr: &str, length: usize) -> Result<Vec<i64>, String> {
        let file = Mapped::copy_of(bytes).unwrap();
        Ok(Array::new(file, descr, length)?.all().to_vec())
    }

    #[test]
    fn numbers_come_back_and_others_are_refused() {
        let file = npy_of(INT64, &[1_i64, -2, i64::MAX]);
        assert_eq!(read(&file, INT64, 3), Ok(vec![1, -2, i64::MAX]));
        assert_eq!(read(&npy_of::<i64>(INT64, &[]), INT64, 0), Ok(vec![]));
        assert!(read(&file, INT64, 2).is_err());
        assert!(read(&file, MICROSECONDS, 3).is_err());
        assert!(read(&file[..file.len() - 1], INT64, 3).is_err());
        assert!(read(b"", INT64, 0).is_err());
        for length in [0, 1, 9, 10, 1_000_000] {
            let numbers: Vec<i64> = (0..length).collect();
            let file = Mapped::copy_of(&npy_of(INT64, &numbers)).unwrap();
            assert_eq!(Array::<i64>::any_length(file, INT64).unwrap().all(), numbers);
        }
        for file in [&file[..file.len() - 1], b""] {
            assert!(Array::<i64>::any_length(Mapped::copy_of(file).unwrap(), INT64).is_err());
        }
        assert!(read(&file, INT64, usize::MAX).is_err());
    }
}
