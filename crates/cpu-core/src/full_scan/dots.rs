//! Dot products of some rows with some queries, in the contract's order of summation.
//!
//! Rows and queries are widened to float64 here, which is exact, and padded with zeros to whole
//! chunks of [`LANES`]. The zeros change no bit: a lane starts at +0.0, and adding ±0.0 never gives
//! −0.0.

#![allow(clippy::needless_range_loop)] // One index for several arrays.

use contract::score::LANES;

use crate::instruction_set::{Kernel, Vectors, Work};

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
#[inline(always)] // So that it uses the instructions of the kernel that it is part of.
pub(crate) fn widen(vector: &[f32], chunks: &mut [Chunk]) {
    // Chunks of a constant length would be unrolled, and then gathered across.
    for (part, chunk) in vector.chunks(LANES).zip(chunks) {
        for (wide, &x) in chunk.0.iter_mut().zip(part) {
            *wide = f64::from(x);
        }
    }
}

/// The dot products `[rows, queries]` of `rows` and `queries`, each `[_, chunks]`, in tiles: the
/// lanes of a tile fill the registers, and each loaded value is used several times.
pub(crate) struct Dots<'a> {
    pub(crate) rows: &'a [Chunk],
    pub(crate) queries: &'a [Chunk],
    pub(crate) chunks: usize,
    pub(crate) dots: &'a mut [f64],
}

impl Kernel for Dots<'_> {
    const WORK: Work = Work::Wide;

    type Output = ();

    #[inline(always)]
    fn run<V: Vectors>(self, vectors: V) {
        const { assert!(matches!(V::DOTS_TILE, [1, 1] | [2, 3]), "these tiles are below") };
        let Self { rows, queries, chunks, dots } = self;
        let [tile_rows, tile_queries] = V::DOTS_TILE;
        let stride = queries.len() / chunks;
        let mut row = 0;
        while row < rows.len() / chunks {
            let tall = tile_rows > 1 && rows.len() / chunks - row >= tile_rows;
            let mut query = 0;
            while query < stride {
                let wide = tile_queries > 1 && stride - query >= tile_queries;
                let rest = Rest {
                    rows: &rows[row * chunks..],
                    queries: &queries[query * chunks..],
                    chunks,
                    dots: &mut dots[row * stride + query..],
                    stride,
                };
                match (tall, wide) {
                    (true, true) => vectors.run(Tile::<2, 3>(rest)),
                    (true, false) => vectors.run(Tile::<2, 1>(rest)),
                    (false, true) => vectors.run(Tile::<1, 3>(rest)),
                    (false, false) => vectors.run(Tile::<1, 1>(rest)),
                }
                query += if wide { tile_queries } else { 1 };
            }
            row += if tall { tile_rows } else { 1 };
        }
    }
}

/// Rows and queries from a tile on; `dots` is `[_, stride]`.
struct Rest<'a> {
    rows: &'a [Chunk],
    queries: &'a [Chunk],
    chunks: usize,
    dots: &'a mut [f64],
    stride: usize,
}

/// The first `R` rows with the first `Q` queries.
struct Tile<'a, const R: usize, const Q: usize>(Rest<'a>);

impl<const R: usize, const Q: usize> Kernel for Tile<'_, R, Q> {
    const WORK: Work = Work::Wide;

    type Output = ();

    #[inline(always)]
    fn run<V: Vectors>(self, vectors: V) {
        let Rest { rows, queries, chunks, dots, stride } = self.0;
        let (rows, queries) = (&rows[..R * chunks], &queries[..Q * chunks]);
        let mut lanes = [[vectors.zero_lanes(); Q]; R];
        let (registers, zero) = (lanes[0][0].as_ref().len(), lanes[0][0].as_ref()[0]);
        for chunk in 0..chunks {
            for register in 0..registers {
                let mut asked = [zero; Q];
                for q in 0..Q {
                    asked[q] = vectors.load_doubles(&queries[q * chunks + chunk].0, register);
                }
                for r in 0..R {
                    let x = vectors.load_doubles(&rows[r * chunks + chunk].0, register);
                    for q in 0..Q {
                        let lane = &mut lanes[r][q].as_mut()[register];
                        *lane = vectors.fused_doubles(x, asked[q], *lane);
                    }
                }
            }
        }
        for r in 0..R {
            for q in 0..Q {
                dots[r * stride + q] = vectors.fold_lanes(lanes[r][q]);
            }
        }
    }
}

/// The dot products of `R` rows, in float32, with one query: each row is read once, so it is
/// widened in registers.
pub(crate) struct DotsOfNarrow<'a, const R: usize> {
    /// All of one length.
    pub(crate) rows: [&'a [f32]; R],
    /// As many chunks as a row has.
    pub(crate) query: &'a [Chunk],
}

impl<const R: usize> Kernel for DotsOfNarrow<'_, R> {
    const WORK: Work = Work::Wide;

    type Output = [f64; R];

    #[inline(always)]
    fn run<V: Vectors>(self, vectors: V) -> [f64; R] {
        let Self { rows, query } = self;
        let (whole, rest) = (rows[0].len() / LANES, rows[0].len() % LANES);
        // Sliced once, so that the loop has no bounds checks.
        let of_whole = &query[..whole];
        let mut chunks: [&[[f32; LANES]]; R] = [&[]; R];
        for r in 0..R {
            chunks[r] = &rows[r].as_chunks().0[..whole];
        }
        let mut lanes = [vectors.zero_lanes(); R];
        for i in 0..whole {
            let mut some = [&chunks[0][i]; R];
            for r in 0..R {
                some[r] = &chunks[r][i];
            }
            add_products(vectors, some, &of_whole[i], &mut lanes);
        }
        if rest > 0 {
            let mut padded = [[0.0; LANES]; R];
            for r in 0..R {
                padded[r][..rest].copy_from_slice(&rows[r][whole * LANES..]);
            }
            add_products(vectors, padded.each_ref(), &query[whole], &mut lanes);
        }
        let mut dots = [0.0; R];
        for r in 0..R {
            dots[r] = vectors.fold_lanes(lanes[r]);
        }
        dots
    }
}

/// Adds the products of a chunk of each row with one of the query.
#[inline(always)]
fn add_products<V: Vectors, const R: usize>(
    vectors: V,
    rows: [&[f32; LANES]; R],
    query: &Chunk,
    lanes: &mut [V::Lanes; R],
) {
    for register in 0..lanes[0].as_ref().len() {
        let asked = vectors.load_doubles(&query.0, register);
        for r in 0..R {
            let x = vectors.load_widened(rows[r], register);
            let lane = &mut lanes[r].as_mut()[register];
            *lane = vectors.fused_doubles(x, asked, *lane);
        }
    }
}

#[cfg(test)]
mod tests {
    use contract::score;
    use model_store::synth::split_mix;
    use proptest::prelude::*;

    use super::*;
    use crate::InstructionSet;

    proptest! {
        #[test]
        fn dots_have_the_contracts_bits(
            dim in 1usize..140,
            rows in 1usize..6,
            queries in 1usize..8,
            seed in any::<u64>(),
        ) {
            let component = |i: usize| split_mix(seed ^ i as u64) as i32 as f32 / 1e5;
            let all: Vec<f32> = (0..(rows + queries) * dim).map(component).collect();
            let chunks = chunks_per_row(dim);
            let mut widened = vec![Chunk::ZERO; (rows + queries) * chunks];
            for (vector, chunks) in all.chunks(dim).zip(widened.chunks_mut(chunks)) {
                widen(vector, chunks);
            }
            let (of_rows, of_queries) = widened.split_at(rows * chunks);
            for set in InstructionSet::available() {
                let mut dots = vec![f64::NAN; rows * queries];
                set.run(Dots { rows: of_rows, queries: of_queries, chunks, dots: &mut dots });
                for (i, dot) in dots.into_iter().enumerate() {
                    let (row, query) = (i / queries, rows + i % queries);
                    let [a, b] = [row, query].map(|one| &all[one * dim..][..dim]);
                    prop_assert_eq!(dot.to_bits(), score::dot(a, b).to_bits(), "{}", set);
                }
                let two = [0, rows - 1].map(|row| &all[row * dim..][..dim]);
                for (i, query) in of_queries.chunks(chunks).enumerate() {
                    let asked = &all[(rows + i) * dim..][..dim];
                    let expected = two.map(|row| score::dot(row, asked).to_bits());
                    let found = set.run(DotsOfNarrow { rows: two, query }).map(f64::to_bits);
                    prop_assert_eq!(found, expected, "{}", set);
                    let [alone] = set.run(DotsOfNarrow { rows: [two[0]], query });
                    prop_assert_eq!(alone.to_bits(), expected[0], "{}", set);
                }
            }
        }
    }
}
