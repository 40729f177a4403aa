//! The loops with registers of 32 or 64 bytes. See [`portable`](super::portable) for what they
//! compute.
//!
//! Instructions are in loops, never in closures: a closure is not inlined into its caller if a
//! library function without the caller's target features is between them.
//!
//! One long file: a macro makes the loops for three instruction sets from the same text.

use std::arch::x86_64::*;

/// The prefetch distance for a few queries: 6 kB of each plane.
const LINES_AHEAD: usize = 96;

/// `accumulate` adds to each sum of 32 bits four products of unsigned and signed bytes.
macro_rules! with_registers {
    (
        $module:ident, features $features:literal,
        integers $integers:ident of $bytes:literal bytes, tile of $tile:literal queries,
        load $load:ident, store $store:ident, zero $zero:ident, broadcast $broadcast:ident,
        and $and:ident, or $or:ident, left $left:ident, right $right:ident, up $up:ident,
        add $add:ident, subtract $subtract:ident, accumulate $accumulate:path,
        floats $floats:ident: cast $cast:ident, integers $integers_of:ident, convert $convert:ident, broadcast $broadcast_float:ident,
        multiply $multiply:ident, fused $fused:ident, max $max:ident,
        not_below |$bound:ident, $offset:ident| $not_below:expr
    ) => {
        pub(crate) mod $module {
            use std::arch::x86_64::*;

            use super::LINES_AHEAD;
            use crate::certified::kernels::{
                Asked, Block, FEW_QUERIES, Flagged, Purpose, Space, Strips, prefetch_ahead,
            };
            use crate::certified::layout::{BLOCK_ROWS, Line, STRIP_BLOCKS, Sums};

            /// Registers that hold a line.
            const PARTS: usize = 64 / $bytes;

            #[target_feature(enable = $features)]
            pub(crate) fn scan(
                strips: Strips<'_>,
                asked: Asked<'_>,
                space: &mut Space,
                mut purpose: Purpose<'_>,
            ) {
                let queries = asked.thresholds.len();
                let sums = &mut space.sums[..queries * STRIP_BLOCKS];
                let unfolded_lines = strips.layout.unfolded_lines();
                for (strip, blocks) in strips.iter().enumerate() {
                    if queries <= FEW_QUERIES {
                        few_products(&blocks, asked, sums);
                    } else {
                        let (first, second) = space.unfolded.split_at_mut(unfolded_lines);
                        unfold(&blocks[0], first);
                        unfold(&blocks[1], second);
                        let steps = 2 * strips.layout.lines();
                        let unfolded = [&first[..steps], &second[..steps]];
                        products(unfolded, asked, sums, strips, strip);
                    }
                    fulfil(&mut purpose, strip, &blocks, sums, asked);
                }
            }

            #[target_feature(enable = $features)]
            pub(crate) fn both_planes(
                block: Block<'_>,
                planes: &[Line],
                space: &mut Space,
                sums: &mut [Sums; 2],
            ) {
                unfold(&block, &mut space.unfolded);
                let unfolded = [&space.unfolded[..2 * block.high.len()]];
                tile::<1, 2, 2>(unfolded, planes, planes.len() / 2, sums);
            }

            /// Part of a line of halves as the components `8j` to `8j + 3` and the four after them.
            #[target_feature(enable = $features)]
            #[inline]
            fn halves(block: &Block<'_>, j: usize, part: usize) -> [$integers; 2] {
                let (low_halves, high_halves) =
                    ($broadcast(0x0f0f_0f0f), $broadcast(0xf0f0_f0f0_u32 as i32));
                let high = load(&block.high[j], part);
                let low = match block.low {
                    Some(low) => load(&low[j], part),
                    None => $broadcast(0x8888_8888_u32 as i32),
                };
                // Shifts of 16 bits move halves between bytes; the masks remove those.
                [
                    $or($and($left::<4>(high), high_halves), $and(low, low_halves)),
                    $or($and(high, high_halves), $and($right::<4>(low), low_halves)),
                ]
            }

            #[target_feature(enable = $features)]
            #[inline]
            fn prefetch(block: &Block<'_>, j: usize) {
                prefetch_ahead(&block.high[j], LINES_AHEAD);
                if let Some(low) = block.low {
                    prefetch_ahead(&low[j], LINES_AHEAD);
                }
            }

            #[target_feature(enable = $features)]
            #[inline]
            pub(in crate::certified::kernels) fn unfold(block: &Block<'_>, unfolded: &mut [Line]) {
                // Sliced once, so that the loop has no bounds checks.
                let lines = block.high.len();
                let low = block.low.map(|low| &low[..lines]);
                let block = &Block { low, ..*block };
                for (j, lines) in unfolded.as_chunks_mut::<2>().0[..lines].iter_mut().enumerate() {
                    for part in 0..PARTS {
                        let [first, second] = halves(block, j, part);
                        store(&mut lines[0], part, first);
                        store(&mut lines[1], part, second);
                    }
                }
            }

            /// Sums `[queries, STRIP_BLOCKS]` of an unpacked strip with all queries.
            #[target_feature(enable = $features)]
            #[inline]
            fn products(
                unfolded: [&[Line]; STRIP_BLOCKS],
                asked: Asked<'_>,
                sums: &mut [Sums],
                strips: Strips<'_>,
                strip: usize,
            ) {
                let (number, query_lines) = (asked.thresholds.len(), asked.query_lines);
                let mut query = 0;
                while query < number {
                    let queries = &asked.queries[query * query_lines..];
                    let sums = &mut sums[query * STRIP_BLOCKS..];
                    let left = number - query;
                    let width = if left >= $tile {
                        tile::<STRIP_BLOCKS, $tile, 1>(unfolded, queries, query_lines, sums)
                    } else if left >= 4 {
                        tile::<STRIP_BLOCKS, 4, 1>(unfolded, queries, query_lines, sums)
                    } else if left >= 2 {
                        tile::<STRIP_BLOCKS, 2, 2>(unfolded, queries, query_lines, sums)
                    } else {
                        tile::<STRIP_BLOCKS, 1, 2>(unfolded, queries, query_lines, sums)
                    };
                    strips.prefetch_next(strip, query..query + width, number);
                    query += width;
                }
            }

            /// Multiplies the first `QUERIES` queries; returns how many. `SPLIT` sums for each row
            /// and query shorten the dependency chains if there are few of both.
            #[target_feature(enable = $features)]
            fn tile<const BLOCKS: usize, const QUERIES: usize, const SPLIT: usize>(
                unfolded: [&[Line]; BLOCKS],
                queries: &[Line],
                query_lines: usize,
                sums: &mut [Sums],
            ) -> usize {
                let steps = unfolded[0].len();
                // Not by `map`: where the compiler does not inline it, it is code for SSE, which
                // stalls between the instructions of wider registers.
                let mut blocks = unfolded;
                for block in &mut blocks {
                    *block = &block[..steps];
                }
                let queries = first_levels::<QUERIES>(queries, query_lines, steps);
                let mut lanes = [[[[$zero(); SPLIT]; PARTS]; BLOCKS]; QUERIES];
                let mut first = 0;
                while first < steps {
                    for i in 0..SPLIT {
                        let step = first + i;
                        let mut rows = [[$zero(); PARTS]; BLOCKS];
                        for b in 0..BLOCKS {
                            for part in 0..PARTS {
                                rows[b][part] = load(&blocks[b][step], part);
                            }
                        }
                        for q in 0..QUERIES {
                            let levels = $broadcast(i32::from_le_bytes(queries[q][step]));
                            for b in 0..BLOCKS {
                                for part in 0..PARTS {
                                    lanes[q][b][part][i] =
                                        $accumulate(lanes[q][b][part][i], rows[b][part], levels);
                                }
                            }
                        }
                    }
                    // There are two steps for each line, so one or two at a time come out even.
                    first += SPLIT;
                }
                for q in 0..QUERIES {
                    for b in 0..BLOCKS {
                        for part in 0..PARTS {
                            let mut sum = lanes[q][b][part][0];
                            for i in 1..SPLIT {
                                sum = $add(sum, lanes[q][b][part][i]);
                            }
                            store_sums(&mut sums[q * BLOCKS + b], part, sum);
                        }
                    }
                }
                QUERIES
            }

            /// Sums of a strip with a few queries, directly from the planes.
            #[target_feature(enable = $features)]
            #[inline]
            fn few_products(
                blocks: &[Block<'_>; STRIP_BLOCKS],
                asked: Asked<'_>,
                sums: &mut [Sums],
            ) {
                let mut query = 0;
                let mut left = asked.thresholds.len();
                while left > 0 {
                    let queries = &asked.queries[query * asked.query_lines..];
                    let sums = &mut sums[query * STRIP_BLOCKS..];
                    let width = match (blocks[0].low, left) {
                        (None, 1) => few_tile::<1, false>(blocks, queries, asked.query_lines, sums),
                        (None, _) => few_tile::<2, false>(blocks, queries, asked.query_lines, sums),
                        (_, 1) => few_tile::<1, true>(blocks, queries, asked.query_lines, sums),
                        _ => few_tile::<2, true>(blocks, queries, asked.query_lines, sums),
                    };
                    query += width;
                    left -= width;
                }
            }

            /// Multiplies the first `QUERIES` queries; returns how many.
            #[target_feature(enable = $features)]
            fn few_tile<const QUERIES: usize, const LOW: bool>(
                blocks: &[Block<'_>; STRIP_BLOCKS],
                queries: &[Line],
                query_lines: usize,
                sums: &mut [Sums],
            ) -> usize {
                // Sliced once, so that the loop has no bounds checks.
                let lines = blocks[0].high.len();
                let mut blocks = *blocks;
                for block in &mut blocks {
                    block.high = &block.high[..lines];
                    block.low = if LOW { block.low.map(|low| &low[..lines]) } else { None };
                }
                let queries = first_levels::<QUERIES>(queries, query_lines, 2 * lines);
                // Two sums per row and query, to shorten the dependency chains.
                let mut lanes = [[[[$zero(); 2]; PARTS]; STRIP_BLOCKS]; QUERIES];
                for j in 0..lines {
                    let mut levels = [[$zero(); 2]; QUERIES];
                    for q in 0..QUERIES {
                        for i in 0..2 {
                            levels[q][i] = $broadcast(i32::from_le_bytes(queries[q][2 * j + i]));
                        }
                    }
                    for b in 0..STRIP_BLOCKS {
                        prefetch(&blocks[b], j);
                        for part in 0..PARTS {
                            let rows = halves(&blocks[b], j, part);
                            for q in 0..QUERIES {
                                for i in 0..2 {
                                    lanes[q][b][part][i] =
                                        $accumulate(lanes[q][b][part][i], rows[i], levels[q][i]);
                                }
                            }
                        }
                    }
                }
                for q in 0..QUERIES {
                    for b in 0..STRIP_BLOCKS {
                        for part in 0..PARTS {
                            let [first, second] = lanes[q][b][part];
                            store_sums(&mut sums[q * STRIP_BLOCKS + b], part, $add(first, second));
                        }
                    }
                }
                QUERIES
            }

            /// The first `steps` times four levels of the first `QUERIES` queries.
            #[inline(always)]
            fn first_levels<const QUERIES: usize>(
                queries: &[Line],
                query_lines: usize,
                steps: usize,
            ) -> [&[[u8; 4]]; QUERIES] {
                let mut levels: [&[[u8; 4]]; QUERIES] = [&[]; QUERIES];
                for q in 0..QUERIES {
                    let query = &queries[q * query_lines..][..query_lines];
                    levels[q] = &bytemuck::cast_slice(query)[..steps];
                }
                levels
            }

            /// `sums` is `[queries, STRIP_BLOCKS]`.
            #[target_feature(enable = $features)]
            #[inline]
            pub(in crate::certified::kernels) fn fulfil(
                purpose: &mut Purpose<'_>,
                strip: usize,
                blocks: &[Block<'_>; STRIP_BLOCKS],
                sums: &[Sums],
                asked: Asked<'_>,
            ) {
                match purpose {
                    Purpose::Find(found) => admitted(strip, blocks, sums, asked, found),
                    Purpose::Sample(best) => sample(blocks, sums, asked, best),
                }
            }

            #[target_feature(enable = $features)]
            #[inline]
            fn steps_and_residuals(
                blocks: &[Block<'_>; STRIP_BLOCKS],
            ) -> [[[$floats; PARTS]; STRIP_BLOCKS]; 2] {
                let upper_half = $broadcast(0xffff_0000_u32 as i32);
                let mut steps = [[$cast($zero()); PARTS]; STRIP_BLOCKS];
                let mut residuals = steps;
                for b in 0..STRIP_BLOCKS {
                    for part in 0..PARTS {
                        let words = load(blocks[b].scales, part);
                        steps[b][part] = $cast($and(words, upper_half));
                        residuals[b][part] = $cast($up::<16>(words));
                    }
                }
                [steps, residuals]
            }

            #[target_feature(enable = $features)]
            #[inline]
            fn sample(
                blocks: &[Block<'_>; STRIP_BLOCKS],
                sums: &[Sums],
                asked: Asked<'_>,
                best: &mut [[f32; BLOCK_ROWS * STRIP_BLOCKS]],
            ) {
                let [steps, residuals] = steps_and_residuals(blocks);
                let sums = sums.as_chunks::<STRIP_BLOCKS>().0;
                for ((sums, threshold), best) in sums.iter().zip(asked.thresholds).zip(best) {
                    let bias = $broadcast(threshold.bias);
                    let slope = $broadcast_float(-threshold.slope);
                    let mut lines: [Line; STRIP_BLOCKS] = bytemuck::cast(*best);
                    for b in 0..STRIP_BLOCKS {
                        for part in 0..PARTS {
                            let sum = $subtract(load_sums(&sums[b], part), bias);
                            let bound = $fused(
                                $convert(sum),
                                steps[b][part],
                                $multiply(slope, residuals[b][part]),
                            );
                            // For NaN and a number, these instructions return the second operand.
                            let higher = $max(bound, $cast(load(&lines[b], part)));
                            store(&mut lines[b], part, $integers_of(higher));
                        }
                    }
                    *best = bytemuck::cast(lines);
                }
            }

            #[target_feature(enable = $features)]
            #[inline]
            fn admitted(
                strip: usize,
                blocks: &[Block<'_>; STRIP_BLOCKS],
                sums: &[Sums],
                asked: Asked<'_>,
                found: &mut Vec<Flagged>,
            ) {
                let [steps, residuals] = steps_and_residuals(blocks);
                let sums = sums.as_chunks::<STRIP_BLOCKS>().0;
                for (query, (sums, threshold)) in sums.iter().zip(asked.thresholds).enumerate() {
                    let bias = $broadcast(threshold.bias);
                    let slope = $broadcast_float(threshold.slope);
                    let $offset = $broadcast_float(threshold.offset);
                    let mut rows = 0u32;
                    let mut bounds = [[$cast($zero()); PARTS]; STRIP_BLOCKS];
                    for b in 0..STRIP_BLOCKS {
                        for part in 0..PARTS {
                            let sum = $subtract(load_sums(&sums[b], part), bias);
                            let $bound = $fused(
                                $convert(sum),
                                steps[b][part],
                                $multiply(slope, residuals[b][part]),
                            );
                            let admitted: u32 = $not_below;
                            rows |= admitted << (b * BLOCK_ROWS + part * ($bytes / 4));
                            bounds[b][part] = $bound;
                        }
                    }
                    if rows != 0 {
                        let mut all = [Line::ZERO; STRIP_BLOCKS];
                        for b in 0..STRIP_BLOCKS {
                            for part in 0..PARTS {
                                store(&mut all[b], part, $integers_of(bounds[b][part]));
                            }
                        }
                        let (strip, query) = (strip as u32, query as u32);
                        found.push(Flagged { strip, query, rows, bounds: bytemuck::cast(all) });
                    }
                }
            }

            #[target_feature(enable = $features)]
            #[inline]
            #[allow(unsafe_code)]
            fn load(line: &Line, part: usize) -> $integers {
                let part: &[u8; $bytes] = &line.0.as_chunks().0[part];
                // SAFETY: `part` is as long as a register, and the load needs no alignment.
                unsafe { $load(part.as_ptr().cast()) }
            }

            #[target_feature(enable = $features)]
            #[inline]
            #[allow(unsafe_code)]
            fn store(line: &mut Line, part: usize, value: $integers) {
                let part: &mut [u8; $bytes] = &mut line.0.as_chunks_mut().0[part];
                // SAFETY: `part` is as long as a register, and the store needs no alignment.
                unsafe { $store(part.as_mut_ptr().cast(), value) };
            }

            #[target_feature(enable = $features)]
            #[inline]
            fn load_sums(sums: &Sums, part: usize) -> $integers {
                load(bytemuck::cast_ref(sums), part)
            }

            #[target_feature(enable = $features)]
            #[inline]
            fn store_sums(sums: &mut Sums, part: usize, value: $integers) {
                store(bytemuck::cast_mut(sums), part, value);
            }
        }
    };
}

with_registers! {
    avx512vnni, features "avx512f,avx512bw,avx512vnni",
    integers __m512i of 64 bytes, tile of 8 queries,
    load _mm512_loadu_si512, store _mm512_storeu_si512, zero _mm512_setzero_si512, broadcast _mm512_set1_epi32,
    and _mm512_and_si512, or _mm512_or_si512, left _mm512_slli_epi16, right _mm512_srli_epi16, up _mm512_slli_epi32,
    add _mm512_add_epi32, subtract _mm512_sub_epi32, accumulate _mm512_dpbusd_epi32,
    floats __m512: cast _mm512_castsi512_ps, integers _mm512_castps_si512, convert _mm512_cvtepi32_ps, broadcast _mm512_set1_ps,
    multiply _mm512_mul_ps, fused _mm512_fmadd_ps, max _mm512_max_ps,
    not_below |bound, offset| u32::from(_mm512_cmp_ps_mask::<_CMP_NLT_UQ>(bound, offset))
}

/// Two sets that differ only in how products are added.
macro_rules! with_32_bytes {
    ($module:ident, features $features:literal, accumulate $accumulate:path) => {
        with_registers! {
            $module, features $features,
            integers __m256i of 32 bytes, tile of 2 queries,
            load _mm256_loadu_si256, store _mm256_storeu_si256, zero _mm256_setzero_si256, broadcast _mm256_set1_epi32,
            and _mm256_and_si256, or _mm256_or_si256, left _mm256_slli_epi16, right _mm256_srli_epi16, up _mm256_slli_epi32,
            add _mm256_add_epi32, subtract _mm256_sub_epi32, accumulate $accumulate,
            floats __m256: cast _mm256_castsi256_ps, integers _mm256_castps_si256, convert _mm256_cvtepi32_ps, broadcast _mm256_set1_ps,
            multiply _mm256_mul_ps, fused _mm256_fmadd_ps, max _mm256_max_ps,
            not_below |bound, offset| _mm256_movemask_ps(_mm256_cmp_ps::<_CMP_NLT_UQ>(bound, offset)) as u32
        }
    };
}

with_32_bytes!(avxvnni, features "avx2,fma,avxvnni", accumulate _mm256_dpbusd_avx_epi32);
with_32_bytes!(avx2, features "avx2,fma", accumulate super::add_products_avx2);

/// Pairs of products are added in 16 bits, which hold them if no level of a query is beyond 64: 2 ·
/// 255 · 64 < 2¹⁵. [`LARGEST_LEVEL_AVX2`] ensures that in the first plane; in the second, 64 is the
/// maximum.
#[target_feature(enable = "avx2")]
#[inline]
fn add_products_avx2(sums: __m256i, rows: __m256i, levels: __m256i) -> __m256i {
    let pairs = _mm256_maddubs_epi16(rows, levels);
    _mm256_add_epi32(sums, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)))
}

/// See [`add_products_avx2`].
pub(crate) const LARGEST_LEVEL_AVX2: i32 = 63;
