//! Little-endian numbers.

use contract::score;

/// The tolerated relative difference between a stored and the computed norm. Components are often written with five
/// digits; a norm summed in float32 has a smaller error.
const NORM_TOLERANCE: f64 = 1e-4;

/// A number type of NumPy and safetensors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Number {
    F16,
    Bf16,
    F32,
    F64,
}

impl Number {
    /// Bytes per number.
    pub(super) fn bytes(self) -> usize {
        match self {
            Self::F16 | Self::Bf16 => 2,
            Self::F32 => 4,
            Self::F64 => 8,
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::F16 => "float16",
            Self::Bf16 => "bfloat16",
            Self::F32 => "float32",
            Self::F64 => "float64",
        }
    }

    /// Appends each number as the nearest float32; numbers out of range become infinite.
    pub(super) fn read(self, bytes: &[u8], out: &mut Vec<f32>) {
        match self {
            Self::F16 => out.extend(arrays(bytes).map(|b| f16(u16::from_le_bytes(b)))),
            Self::Bf16 => out.extend(arrays(bytes).map(|b| bf16(u16::from_le_bytes(b)))),
            Self::F32 => out.extend(arrays(bytes).map(f32::from_le_bytes)),
            Self::F64 => out.extend(arrays(bytes).map(|b| f64::from_le_bytes(b) as f32)),
        }
    }
}

/// The value of a float16.
fn f16(bits: u16) -> f32 {
    let sign = u32::from(bits & 0x8000) << 16;
    let rest = u32::from(bits & 0x7fff) << 13;
    let magnitude = match rest >> 23 {
        // Infinity, or no number.
        0x1f => f32::from_bits(rest | 0x7f80_0000),
        // The same exponent bits stand for 2^112 times as much as in a float32. The product is exact, even for
        // subnormals.
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

/// Checks that components are finite, as a model requires.
pub(super) fn check_finite(components: &[f32]) -> Result<(), String> {
    match components.iter().position(|x| !x.is_finite()) {
        None => Ok(()),
        Some(index) => {
            Err(format!("component {} is not a finite float32: {}", index + 1, components[index]))
        }
    }
}

/// Checks a stored norm against the components.
pub(super) fn check_norm(stored: f32, components: &[f32]) -> Result<(), String> {
    let computed = score::norm(components);
    // Also false if the stored norm is NaN.
    if (f64::from(stored) - computed).abs() <= NORM_TOLERANCE * computed {
        return Ok(());
    }
    Err(format!(
        "the stored norm is {stored}, but the components have the norm {computed:.6}; if the file has no \
         norms, set another --format"
    ))
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
            let found = f64::from(f16(bits));
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
        assert!(check_finite(&[0.0, f32::MAX]).is_ok());
        assert!(check_finite(&[0.0, f32::NAN]).unwrap_err().contains("component 2"));
    }
}
