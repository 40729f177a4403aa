//! NumPy files (.npy): the heads of all, and the numbers of those that hold vectors. Format: NEP 1,
//! "A Simple File Format for NumPy Arrays"; versions 1.0 to 3.0 are read, version 1.0 is written.

mod header;

use header::{NpyHeader, SIGNATURE};

use crate::number::Number;

/// A multiple of this many bytes is before the first number, as NumPy itself writes it.
pub(crate) const ALIGNMENT: usize = 64;

/// What is before the first number of a file. `descr` is the type of an element as Python writes
/// it: `'<f4'` with its quotes, or a list of fields.
///
/// ```
/// use model_store::npy::{Numbers, head};
///
/// let file = [head("'<f4'", &[1, 2]), [1.0f32, -2.0].map(f32::to_le_bytes).concat()].concat();
/// let numbers = Numbers::read(&file)?;
/// let mut components = Vec::new();
/// numbers.number.read(numbers.bytes(&file)?, &mut components);
/// assert_eq!((numbers.shape, components), (vec![1, 2], vec![1.0, -2.0]));
/// # Ok::<(), String>(())
/// ```
///
/// # Panics
/// If `descr` is longer than the 64 KiB that a header may have.
pub fn head(descr: &str, shape: &[u64]) -> Vec<u8> {
    const BEFORE_TEXT: usize = SIGNATURE.len() + 4;
    let shape = match shape {
        [length] => format!("({length},)"),
        lengths => {
            format!("({})", lengths.iter().map(u64::to_string).collect::<Vec<_>>().join(", "))
        }
    };
    let mut text = format!("{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}");
    let length = (BEFORE_TEXT + text.len() + 1).next_multiple_of(ALIGNMENT) - BEFORE_TEXT;
    text.extend(std::iter::repeat_n(' ', length - text.len() - 1));
    text.push('\n');
    let length = u16::try_from(length).expect("a type has few fields");
    [SIGNATURE, b"\x01\x00", &length.to_le_bytes(), text.as_bytes()].concat()
}

/// Writes a whole file of float32 of this shape.
///
/// # Errors
/// If `out` can't be written.
///
/// # Panics
/// If there are not as many numbers.
pub fn write_f32(
    out: &mut dyn std::io::Write,
    shape: &[u64],
    numbers: &[f32],
) -> std::io::Result<()> {
    assert_eq!(numbers.len() as u64, shape.iter().product::<u64>(), "numbers of an array");
    out.write_all(&head("'<f4'", shape))?;
    out.write_all(bytemuck::cast_slice(numbers))
}

/// The numbers of a NumPy file, whatever their shape: float32, float64 or float16, little-endian,
/// row by row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Numbers {
    /// The array's dimensions.
    pub shape: Vec<u64>,
    /// The type of each.
    pub number: Number,
    /// The offset of the first number, in bytes.
    pub start: u64,
}

impl Numbers {
    /// Whether these bytes begin like a NumPy file.
    pub fn begins(head: &[u8]) -> bool {
        head.starts_with(SIGNATURE)
    }

    /// Reads the header of a file that begins with these bytes.
    ///
    /// # Errors
    /// If it can't be read, or the numbers have another type or order. Says what is wrong with
    /// "it", and the cure.
    pub fn read(head: &[u8]) -> Result<Self, String> {
        let NpyHeader { descr, fortran_order, shape, bytes } = NpyHeader::read(head)
            .map_err(|reason| format!("its npy header can't be read ({reason})"))?;
        if fortran_order && shape.len() > 1 {
            return Err("its array is in Fortran order (column by column); save it with \
                        numpy.save(path, numpy.ascontiguousarray(array))"
                .to_owned());
        }
        Ok(Self { number: number_of(&descr)?, shape, start: bytes })
    }

    /// The bytes of the numbers in the whole file.
    ///
    /// # Errors
    /// If the file does not have exactly the numbers of the shape.
    pub fn bytes<'a>(&self, file: &'a [u8]) -> Result<&'a [u8], String> {
        let found = usize::try_from(self.start).ok().and_then(|start| file.get(start..));
        let found = found.unwrap_or_default();
        if self.size() == Some(found.len() as u64) {
            return Ok(found);
        }
        let size = self.number.bytes();
        let announced = self.shape.iter().map(u64::to_string).collect::<Vec<_>>().join(" × ");
        Err(format!(
            "its header announces {announced} numbers of {size} bytes, but {} bytes follow; the file is cut off, or its header \
             is wrong",
            found.len()
        ))
    }

    /// The length of the file up to its last number, in bytes; `None` if no file is so long.
    pub fn end(&self) -> Option<u64> {
        self.start.checked_add(self.size()?)
    }

    /// The length of all numbers, in bytes.
    fn size(&self) -> Option<u64> {
        let size = self.number.bytes() as u64;
        let count = self.shape.iter().try_fold(1u64, |count, &length| count.checked_mul(length));
        count?.checked_mul(size)
    }
}

/// The type of numbers of this name.
fn number_of(descr: &str) -> Result<Number, String> {
    match descr {
        "<f2" => Ok(Number::F16),
        "<f4" => Ok(Number::F32),
        "<f8" => Ok(Number::F64),
        "|O" => {
            Err("its array has Python objects, which are pickled, and no numbers; save it with \
                     numpy.save(path, numpy.stack(array).astype('<f4'))"
                .to_owned())
        }
        text if text.contains(['U', 'S']) => Err("its array has text and no numbers; write words \
                                                  one per line, and name the file with --words: \
                                                  numpy.savetxt(path, array, fmt='%s')"
            .to_owned()),
        "|V2" => {
            Err("its numbers have the type |V2, as NumPy calls bfloat16; save it as float32: \
                      numpy.save(path, array.view(ml_dtypes.bfloat16).astype('<f4'))"
                .to_owned())
        }
        _ => Err(format!(
            "its numbers have the type {descr}; save it as little-endian float32, float64 or float16: \
             numpy.save(path, array.astype('<f4'))"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_reads_back_and_is_aligned() {
        for (descr, shape) in [
            ("'<f4'", &[][..]),
            ("'<f8'", &[7]),
            ("'<f2'", &[30_000, 100]),
            ("[('row', '<i8'), ('score', '<f8')]", &[1024, 10]),
        ] {
            let head = head(descr, shape);
            assert_eq!((head.len() % ALIGNMENT, head.last()), (0, Some(&b'\n')), "{descr}");
            let read = NpyHeader::read(&head).unwrap();
            assert_eq!((read.bytes, read.fortran_order), (head.len() as u64, false));
            if descr.starts_with('[') {
                assert_eq!(read.descr, "structured");
            } else {
                assert_eq!((&*read.descr, &*read.shape), (descr.trim_matches('\''), shape));
            }
        }
    }

    #[test]
    fn a_file_has_the_numbers_of_its_shape_and_no_more() {
        let bytes = |shape: &[u64], bytes: usize| {
            let file = [head("'<f4'", shape), vec![0; bytes]].concat();
            let numbers = Numbers::read(&file).unwrap();
            numbers.bytes(&file).map(<[u8]>::len)
        };
        assert_eq!(bytes(&[2, 3], 24), Ok(24));
        let end = |start, shape: &[u64]| {
            Numbers { shape: shape.to_vec(), number: Number::F32, start }.end()
        };
        assert_eq!(
            (end(128, &[2, 3]), end(128, &[]), end(9, &[0, 7])),
            (Some(152), Some(132), Some(9))
        );
        assert_eq!((end(128, &[u64::MAX]), end(u64::MAX, &[1])), (None, None));
        assert_eq!(bytes(&[], 4), Ok(4));
        assert_eq!(bytes(&[0, u64::MAX], 0), Ok(0));
        for (shape, found) in [(&[2, 3][..], 23), (&[2, 3], 25), (&[u64::MAX, 2], 0), (&[1], 0)] {
            let error = bytes(shape, found).unwrap_err();
            assert!(error.contains(&format!("but {found} bytes follow")), "{error}");
        }
        let numbers = Numbers { shape: vec![1], number: Number::F32, start: 99 };
        assert!(numbers.bytes(&[0; 9]).is_err());
    }
}
