use std::fmt;

use super::dots::{self, Chunk};

/// Instructions that this machine has; a value of this type is the proof of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InstructionSet(Kind);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    #[cfg(target_arch = "x86_64")]
    Avx512,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    Portable,
}

impl InstructionSet {
    /// All that this machine has, best first. The last is portable and always there.
    pub fn available() -> Vec<Self> {
        let mut sets = Vec::new();
        #[cfg(target_arch = "x86_64")]
        {
            if is_x86_feature_detected!("avx512f") {
                sets.push(Self(Kind::Avx512));
            }
            if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
                sets.push(Self(Kind::Avx2));
            }
        }
        sets.push(Self(Kind::Portable));
        sets
    }

    /// The best that this machine has.
    pub fn best() -> Self {
        Self::available()[0]
    }

    /// The dot products `[rows, queries]` of `rows` and `queries`, each `[_, chunks]`.
    #[allow(unsafe_code)]
    pub(crate) fn dots(self, rows: &[Chunk], queries: &[Chunk], chunks: usize, dots: &mut [f64]) {
        match self.0 {
            // SAFETY: only `available` makes such a value, after it has seen the features.
            #[cfg(target_arch = "x86_64")]
            Kind::Avx512 => unsafe { dots::avx512::dots(rows, queries, chunks, dots) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Kind::Avx2 => unsafe { dots::avx2::dots(rows, queries, chunks, dots) },
            Kind::Portable => dots::portable(rows, queries, chunks, dots),
        }
    }
}

impl fmt::Display for InstructionSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            #[cfg(target_arch = "x86_64")]
            Kind::Avx512 => "AVX-512",
            #[cfg(target_arch = "x86_64")]
            Kind::Avx2 => "AVX2",
            Kind::Portable => "portable",
        })
    }
}
