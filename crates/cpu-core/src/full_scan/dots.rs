//! Dot products of some rows with some queries, in the contract's order of summation.
//!
//! Rows and queries are widened to float64 here, which is exact, and padded with zeros to whole
//! chunks of [`LANES`]. The zeros change no bit: a lane starts at +0.0, and adding ±0.0 never gives
//! −0.0.

use contract::score::{LANES, fold};

use crate::instruction_set::dispatched;

dispatched! {
    /// The dot products `[rows, queries]` of `rows` and `queries`, each `[_, chunks]`.
    fn dots(rows: &[Chunk], queries: &[Chunk], chunks: usize, dots: &mut [f64]) =
        amx avx512::dots, vnni512 avx512::dots, avx512 avx512::dots,
        vnni avx2::dots, avx2 avx2::dots, portable portable;
}

/// One component for each lane.
#[derive(Debug, Clone, Copy)]
#[repr(align(64))]
pub(crate) struct Chunk(pub(crate) [f64; LANES]);

impl Chunk {
    pub(crate) const ZERO: Self = Self([0.0; LANES]);
}

/// Chunks that hold a vector of `dim` components.
pub(crate) fn chunks_per_row(dim: usize) -> usize {
    dim.div_ceil(LANES)
}

/// Converts a vector to float64. The tail of the last chunk keeps its zeros.
pub(crate) fn widen(vector: &[f32], chunks: &mut [Chunk]) {
    for (part, chunk) in vector.chunks(LANES).zip(chunks) {
        for (wide, &x) in chunk.0.iter_mut().zip(part) {
            *wide = f64::from(x);
        }
    }
}

/// The dot products `[rows, queries]` of `rows` and `queries`, each `[_, chunks]`.
pub(crate) fn portable(rows: &[Chunk], queries: &[Chunk], chunks: usize, dots: &mut [f64]) {
    let number_of_queries = queries.len() / chunks;
    for (row, dots) in rows.chunks_exact(chunks).zip(dots.chunks_exact_mut(number_of_queries)) {
        for (query, dot) in queries.chunks_exact(chunks).zip(dots) {
            let mut lanes = [0.0; LANES];
            for (row, query) in row.iter().zip(query) {
                for ((lane, x), q) in lanes.iter_mut().zip(&row.0).zip(&query.0) {
                    *lane += x * q;
                }
            }
            *dot = fold(lanes);
        }
    }
}

/// The same with registers of `$width` float64, in tiles of `$rows` × `$queries` dot products: the
/// lanes of a tile fill the registers, and each loaded value is used several times.
#[cfg(target_arch = "x86_64")]
macro_rules! with_registers {
    (
        $module:ident, features $features:literal, register $register:ident of $width:literal,
        tile $tile_rows:literal x $tile_queries:literal,
        zero $zero:ident, load $load:ident, store $store:ident, add $add:ident, fused $fused:ident
    ) => {
        pub(crate) mod $module {
            use std::arch::x86_64::*;

            use super::{Chunk, LANES, fold};

            const REGISTERS: usize = LANES / $width;

            /// See [`portable`](super::portable).
            #[target_feature(enable = $features)]
            pub(crate) fn dots(rows: &[Chunk], queries: &[Chunk], chunks: usize, dots: &mut [f64]) {
                let stride = queries.len() / chunks;
                let mut row = 0;
                while row < rows.len() / chunks {
                    let tall = rows.len() / chunks - row >= $tile_rows;
                    let mut query = 0;
                    while query < stride {
                        let wide = stride - query >= $tile_queries;
                        let (rows, queries) = (&rows[row * chunks..], &queries[query * chunks..]);
                        let dots = &mut dots[row * stride + query..];
                        match (tall, wide) {
                            (true, true) => {
                                tile::<$tile_rows, $tile_queries>(
                                    rows, queries, chunks, dots, stride,
                                );
                            }
                            (true, false) => {
                                tile::<$tile_rows, 1>(rows, queries, chunks, dots, stride)
                            }
                            (false, true) => {
                                tile::<1, $tile_queries>(rows, queries, chunks, dots, stride)
                            }
                            (false, false) => tile::<1, 1>(rows, queries, chunks, dots, stride),
                        }
                        query += if wide { $tile_queries } else { 1 };
                    }
                    row += if tall { $tile_rows } else { 1 };
                }
            }

            /// The first `R` rows with the first `Q` queries; `dots` is `[R, stride]`.
            #[target_feature(enable = $features)]
            fn tile<const R: usize, const Q: usize>(
                rows: &[Chunk],
                queries: &[Chunk],
                chunks: usize,
                dots: &mut [f64],
                stride: usize,
            ) {
                let (rows, queries) = (&rows[..R * chunks], &queries[..Q * chunks]);
                let mut lanes = [[[$zero(); REGISTERS]; Q]; R];
                for chunk in 0..chunks {
                    for register in 0..REGISTERS {
                        let mut asked = [$zero(); Q];
                        for q in 0..Q {
                            asked[q] = load(&queries[q * chunks + chunk], register);
                        }
                        for r in 0..R {
                            let x = load(&rows[r * chunks + chunk], register);
                            for q in 0..Q {
                                lanes[r][q][register] = $fused(x, asked[q], lanes[r][q][register]);
                            }
                        }
                    }
                }
                for r in 0..R {
                    for q in 0..Q {
                        // Halves of whole registers first: the contract's fold by 16, 8, …
                        let mut registers = lanes[r][q];
                        let mut half = REGISTERS / 2;
                        while half > 0 {
                            for register in 0..half {
                                registers[register] =
                                    $add(registers[register], registers[register + half]);
                            }
                            half /= 2;
                        }
                        dots[r * stride + q] = fold(store(registers[0]));
                    }
                }
            }

            #[target_feature(enable = $features)]
            #[inline]
            #[allow(unsafe_code)]
            fn load(chunk: &Chunk, register: usize) -> $register {
                let part: &[f64; $width] = &chunk.0.as_chunks().0[register];
                // SAFETY: `part` is as long as a register.
                unsafe { $load(part.as_ptr()) }
            }

            #[target_feature(enable = $features)]
            #[inline]
            #[allow(unsafe_code)]
            fn store(value: $register) -> [f64; $width] {
                let mut lanes = [0.0; $width];
                // SAFETY: `lanes` is as long as a register.
                unsafe { $store(lanes.as_mut_ptr(), value) };
                lanes
            }
        }
    };
}

#[cfg(target_arch = "x86_64")]
with_registers! {
    avx512, features "avx512f", register __m512d of 8, tile 2 x 3,
    zero _mm512_setzero_pd, load _mm512_loadu_pd, store _mm512_storeu_pd, add _mm512_add_pd, fused _mm512_fmadd_pd
}

#[cfg(target_arch = "x86_64")]
with_registers! {
    avx2, features "avx2,fma", register __m256d of 4, tile 1 x 1,
    zero _mm256_setzero_pd, load _mm256_loadu_pd, store _mm256_storeu_pd, add _mm256_add_pd, fused _mm256_fmadd_pd
}
