//! Little-endian numbers of other programs' files.

use safetensors::Dtype;

/// A number type of NumPy and safetensors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Number {
    /// A float16.
    F16,
    /// A bfloat16.
    Bf16,
    /// A float32.
    F32,
    /// A float64.
    F64,
}

impl Number {
    /// The type of a tensor; `None` if it is no floating-point number that is read.
    pub fn of(dtype: Dtype) -> Option<Self> {
        match dtype {
            Dtype::F16 => Some(Self::F16),
            Dtype::BF16 => Some(Self::Bf16),
            Dtype::F32 => Some(Self::F32),
            Dtype::F64 => Some(Self::F64),
            _ => None,
        }
    }

    /// Bytes per number.
    pub fn bytes(self) -> usize {
        match self {
            Self::F16 | Self::Bf16 => 2,
            Self::F32 => 4,
            Self::F64 => 8,
        }
    }

    /// Its name, as NumPy has it.
    pub fn name(self) -> &'static str {
        match self {
            Self::F16 => "float16",
            Self::Bf16 => "bfloat16",
            Self::F32 => "float32",
            Self::F64 => "float64",
        }
    }

    /// Appends each number as the nearest float32; numbers out of range become infinite.
    pub fn read(self, bytes: &[u8], out: &mut Vec<f32>) {
        match self {
            Self::F16 => out.extend(arrays(bytes).map(|b| from_float16(u16::from_le_bytes(b)))),
            Self::Bf16 => out.extend(arrays(bytes).map(|b| bf16(u16::from_le_bytes(b)))),
            Self::F32 => out.extend(arrays(bytes).map(f32::from_le_bytes)),
            Self::F64 => out.extend(arrays(bytes).map(|b| f64::from_le_bytes(b) as f32)),
        }
    }
}

/// The value of a float16, given as its bits.
#[inline]
pub fn from_float16(bits: u16) -> f32 {
    let sign = u32::from(bits & 0x8000) << 16;
    let rest = u32::from(bits & 0x7fff) << 13;
    let magnitude = match rest >> 23 {
        // Infinity, or no number.
        0x1f => f32::from_bits(rest | 0x7f80_0000),
        // The same exponent bits stand for 2^112 times as much as in a float32. The product is
        // exact, even for subnormals.
        _ => f32::from_bits(rest) * f32::from_bits((112 + 127) << 23),
    };
    f32::from_bits(magnitude.to_bits() | sign)
}

/// The value of a bfloat16: the first half of a float32.
fn bf16(bits: u16) -> f32 {
    f32::from_bits(u32::from(bits) << 16)
}

fn arrays<const N: usize>(bytes: &[u8]) -> impl Iterator<Item = [u8; N]> + '_ {
    bytes.chunks_exact(N).map(|chunk| chunk.try_into().expect("chunks of this length"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_float16_has_its_value() {
        for bits in 0..=u16::MAX {
            let (exponent, fraction) =
                (i32::from(bits >> 10 & 0x1f), f64::from(bits & 0x3ff) / 1024.0);
            let magnitude = match exponent {
                0 => fraction * 2f64.powi(-14),
                31 if fraction == 0.0 => f64::INFINITY,
                31 => f64::NAN,
                _ => (1.0 + fraction) * 2f64.powi(exponent - 15),
            };
            let expected = if bits >> 15 == 0 { magnitude } else { -magnitude };
            let found = f64::from(from_float16(bits));
            assert_eq!(found.is_nan(), expected.is_nan(), "{bits:x}");
            assert!(found.is_nan() || found.to_bits() == expected.to_bits(), "{bits:x}");
        }
        assert_eq!([0x3f80, 0xc000, 0x7f80].map(bf16), [1.0, -2.0, f32::INFINITY]);
    }

    #[test]
    fn numbers_become_the_nearest_float32() {
        let read = |number: Number, bytes: &[u8]| {
            let mut out = vec![7.0];
            number.read(bytes, &mut out);
            assert_eq!(out.remove(0), 7.0);
            out
        };
        assert_eq!(read(Number::F32, &[0, 0, 128, 63, 0, 0, 0, 192]), [1.0, -2.0]);
        assert_eq!(read(Number::F64, &0.1f64.to_le_bytes()), [0.1f32]);
        assert_eq!(read(Number::F64, &1e300f64.to_le_bytes()), [f32::INFINITY]);
        assert_eq!(read(Number::F16, &[0, 60, 1, 0]), [1.0, 2f32.powi(-24)]);
        assert_eq!(read(Number::Bf16, &[128, 63]), [1.0]);
    }
}
