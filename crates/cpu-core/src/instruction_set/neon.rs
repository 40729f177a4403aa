//! NEON: registers of 16 bytes, on every AArch64.

use std::arch::aarch64::*;

use super::{About, Line, Vectors};

/// NEON as in ARMv8.0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Neon(());

/// The registers and operations of sets of 16 bytes, which differ in how bytes are joined and
/// products are added.
macro_rules! with_16_bytes {
    (
        signed $signed:literal,
        levels $level_type:ty: |$four:ident| $four_levels:expr,
        accumulate |$sums:ident, $rows:ident, $levels:ident| $accumulated:expr,
        accumulate_row |$row_sums:ident, $row:ident, $of_row:ident| $row_accumulated:expr
    ) => {
        const TILE: [usize; 2] = [2, 2];
        const FEW_TILE: [usize; 2] = [2, 1];
        const DOTS_TILE: [usize; 2] = [1, 1];
        const SIGNED: bool = $signed;

        type Words = [int32x4_t; 4];
        type Floats = [float32x4_t; 4];
        type Levels = $level_type;
        type Doubles = float64x2_t;
        type Lanes = [float64x2_t; 16];

        operations! {
            fn load(line: &$crate::instruction_set::Line) -> [int32x4_t; 4] = {
                let [a, b, c, d]: &[[i32; 4]; 4] = bytemuck::cast_ref(line);
                [
                    vld1q_s32(a.as_ptr()),
                    vld1q_s32(b.as_ptr()),
                    vld1q_s32(c.as_ptr()),
                    vld1q_s32(d.as_ptr()),
                ]
            };
            fn store(words: [int32x4_t; 4], line: &mut $crate::instruction_set::Line) = {
                let [a, b, c, d]: &mut [[i32; 4]; 4] = bytemuck::cast_mut(line);
                vst1q_s32(a.as_mut_ptr(), words[0]);
                vst1q_s32(b.as_mut_ptr(), words[1]);
                vst1q_s32(c.as_mut_ptr(), words[2]);
                vst1q_s32(d.as_mut_ptr(), words[3]);
            };
            fn splat(word: i32) -> [int32x4_t; 4] = [vdupq_n_s32(word); 4];
            fn add(a: [int32x4_t; 4], b: [int32x4_t; 4]) -> [int32x4_t; 4] =
                four!(|i| vaddq_s32(a[i], b[i]));
            fn subtract(a: [int32x4_t; 4], b: [int32x4_t; 4]) -> [int32x4_t; 4] =
                four!(|i| vsubq_s32(a[i], b[i]));
            fn times_16(a: [int32x4_t; 4]) -> [int32x4_t; 4] = four!(|i| vshlq_n_s32::<4>(a[i]));
            fn join(high: [int32x4_t; 4], low: [int32x4_t; 4]) -> [[int32x4_t; 4]; 2] = {
                // From −128 instead of 0: the highest bit of each byte is flipped.
                let flip = vdupq_n_u8(if $signed { 0x88 } else { 0 });
                let high = four!(|i| veorq_u8(vreinterpretq_u8_s32(high[i]), flip));
                let low = four!(|i| vreinterpretq_u8_s32(low[i]));
                // SLI and SRI shift a half into its place and keep the other.
                [
                    four!(|i| vreinterpretq_s32_u8(vsliq_n_u8::<4>(low[i], high[i]))),
                    four!(|i| vreinterpretq_s32_u8(vsriq_n_u8::<4>(high[i], low[i]))),
                ]
            };
            fn halves(bytes: [int32x4_t; 4]) -> [[int32x4_t; 4]; 2] = {
                let lower = vdupq_n_s32(0x0f0f_0f0f);
                [
                    four!(|i| vandq_s32(bytes[i], lower)),
                    four!(|i| {
                        vreinterpretq_s32_u8(vshrq_n_u8::<4>(vreinterpretq_u8_s32(bytes[i])))
                    }),
                ]
            };
            fn levels(four: [u8; 4]) -> $level_type = {
                let $four = four;
                $four_levels
            };
            fn accumulate(sums: [int32x4_t; 4], rows: [int32x4_t; 4], levels: $level_type)
                -> [int32x4_t; 4] = {
                let $levels = levels;
                four!(|i| {
                    let ($sums, $rows) = (sums[i], rows[i]);
                    $accumulated
                })
            };
            fn accumulate_row(sums: [int32x4_t; 4], row: [int32x4_t; 4], levels: [int32x4_t; 4])
                -> [int32x4_t; 4] = {
                // From −128 instead of 0, as in `join`.
                let flip = vdupq_n_s32(if $signed { 0x8080_8080_u32 as i32 } else { 0 });
                four!(|i| {
                    let ($row_sums, $of_row) = (sums[i], levels[i]);
                    let $row = veorq_s32(row[i], flip);
                    $row_accumulated
                })
            };
            fn totals(four: [[int32x4_t; 4]; 4]) -> [i32; 4] = {
                let [a, b, c, d] = four!(|i| vaddq_s32(
                    vaddq_s32(four[i][0], four[i][1]),
                    vaddq_s32(four[i][2], four[i][3]),
                ));
                let mut totals = [0; 4];
                vst1q_s32(totals.as_mut_ptr(), vpaddq_s32(vpaddq_s32(a, b), vpaddq_s32(c, d)));
                totals
            };
            fn upper_halves(words: [int32x4_t; 4]) -> [float32x4_t; 4] = {
                let upper = vdupq_n_s32(0xffff_0000_u32 as i32);
                four!(|i| vreinterpretq_f32_s32(vandq_s32(words[i], upper)))
            };
            fn lower_halves(words: [int32x4_t; 4]) -> [float32x4_t; 4] =
                four!(|i| vreinterpretq_f32_s32(vshlq_n_s32::<16>(words[i])));
            fn convert(words: [int32x4_t; 4]) -> [float32x4_t; 4] =
                four!(|i| vcvtq_f32_s32(words[i]));
            fn load_floats(from: &[f32; 16]) -> [float32x4_t; 4] = {
                let parts: &[[f32; 4]; 4] = bytemuck::cast_ref(from);
                four!(|i| vld1q_f32(parts[i].as_ptr()))
            };
            fn store_floats(floats: [float32x4_t; 4], to: &mut [f32; 16]) = {
                let [a, b, c, d]: &mut [[f32; 4]; 4] = bytemuck::cast_mut(to);
                vst1q_f32(a.as_mut_ptr(), floats[0]);
                vst1q_f32(b.as_mut_ptr(), floats[1]);
                vst1q_f32(c.as_mut_ptr(), floats[2]);
                vst1q_f32(d.as_mut_ptr(), floats[3]);
            };
            fn splat_float(x: f32) -> [float32x4_t; 4] = [vdupq_n_f32(x); 4];
            fn multiply(a: [float32x4_t; 4], b: [float32x4_t; 4]) -> [float32x4_t; 4] =
                four!(|i| vmulq_f32(a[i], b[i]));
            fn fused(a: [float32x4_t; 4], b: [float32x4_t; 4], c: [float32x4_t; 4])
                -> [float32x4_t; 4] = four!(|i| vfmaq_f32(c[i], a[i], b[i]));
            fn max(a: [float32x4_t; 4], b: [float32x4_t; 4]) -> [float32x4_t; 4] =
                four!(|i| vbslq_f32(vcgtq_f32(a[i], b[i]), a[i], b[i]));
            fn not_below(a: [float32x4_t; 4], b: [float32x4_t; 4]) -> u32 = {
                let below = four!(|i| vreinterpretq_u16_u32(vcltq_f32(a[i], b[i])));
                let first = vreinterpretq_u8_u16(vuzp1q_u16(below[0], below[1]));
                let second = vreinterpretq_u8_u16(vuzp1q_u16(below[2], below[3]));
                let bytes = vuzp1q_u8(first, second);
                // Four bits for each.
                let fours = vshrn_n_u16::<4>(vreinterpretq_u16_u8(bytes));
                let not_below = !vget_lane_u64::<0>(vreinterpret_u64_u8(fours));
                if not_below == 0 {
                    0
                } else {
                    let mut bits = not_below & 0x1111_1111_1111_1111;
                    bits = (bits | bits >> 3) & 0x0303_0303_0303_0303;
                    bits = (bits | bits >> 6) & 0x000f_000f_000f_000f;
                    bits = (bits | bits >> 12) & 0x0000_00ff_0000_00ff;
                    (bits | bits >> 24) as u32 & 0xffff
                }
            };
            fn zero_lanes() -> [float64x2_t; 16] = [vdupq_n_f64(0.0); 16];
            fn load_doubles(lanes: &[f64; contract::score::LANES], register: usize)
                -> float64x2_t = {
                let part: &[f64; 2] = &lanes.as_chunks().0[register];
                vld1q_f64(part.as_ptr())
            };
            fn load_widened(lanes: &[f32; contract::score::LANES], register: usize)
                -> float64x2_t = {
                let part: &[f32; 2] = &lanes.as_chunks().0[register];
                vcvt_f64_f32(vld1_f32(part.as_ptr()))
            };
            fn add_doubles(a: float64x2_t, b: float64x2_t) -> float64x2_t = vaddq_f64(a, b);
            fn fused_doubles(a: float64x2_t, b: float64x2_t, c: float64x2_t) -> float64x2_t =
                vfmaq_f64(c, a, b);
            fn fold(lanes: float64x2_t) -> f64 = vpaddd_f64(lanes);
            fn widen(eight: &[u16; 8]) -> [f32; 8] = {
                let [a, b]: &[[u16; 4]; 2] = bytemuck::cast_ref(eight);
                let mut wide = [[0.0; 4]; 2];
                let halves = [vld1_u16(a.as_ptr()), vld1_u16(b.as_ptr())];
                let [a, b] = &mut wide;
                vst1q_f32(a.as_mut_ptr(), vcvt_f32_f16(vreinterpret_f16_u16(halves[0])));
                vst1q_f32(b.as_mut_ptr(), vcvt_f32_f16(vreinterpret_f16_u16(halves[1])));
                bytemuck::cast(wide)
            };
        }
    };
}

pub(super) use with_16_bytes;

impl Vectors for Neon {
    const ABOUT: About = About {
        name: "NEON",
        // Pairs of products are added in 16 bits, which hold them: 2 · 128 · 127 < 2¹⁵.
        largest_level: 126,
        preferred_batch: 64,
        thread_share: 16_000_000,
        task_work: 100_000,
        has_float16: true,
    };

    type Matrices<'a> = super::NoMatrices;

    fn detect() -> Option<Self> {
        std::arch::is_aarch64_feature_detected!("neon").then_some(Self(()))
    }

    runs! { with "neon" }

    with_16_bytes! {
        signed true,
        levels int8x16_t: |four| vreinterpretq_s8_s32(vdupq_n_s32(i32::from_le_bytes(four))),
        accumulate |sums, rows, levels| add_products(sums, rows, levels),
        accumulate_row |sums, row, levels| add_products(sums, row, vreinterpretq_s8_s32(levels))
    }
}

/// Adds four products of signed bytes to each sum.
#[target_feature(enable = "neon")]
#[inline]
fn add_products(sums: int32x4_t, rows: int32x4_t, levels: int8x16_t) -> int32x4_t {
    let rows = vreinterpretq_s8_s32(rows);
    let first = vmull_s8(vget_low_s8(rows), vget_low_s8(levels));
    let second = vmull_high_s8(rows, levels);
    vpadalq_s16(sums, vpaddq_s16(first, second))
}

/// Queries of a set with its own way to multiply groups of them: their components alternate.
pub(crate) struct Alternating<'a, S> {
    pub(super) set: S,
    /// `[groups, lines]`.
    queries: &'a [Line],
    lines: usize,
}

impl<'a, S> Alternating<'a, S> {
    /// Arranges groups of `QUERIES` queries: `N` components of each, the next `N` of each, and so
    /// on. The arguments are those of [`Vectors::matrices`].
    pub(super) fn new<const QUERIES: usize, const N: usize>(
        set: S,
        queries: &[Line],
        query_lines: usize,
        eights: usize,
        arranged: &'a mut Vec<Line>,
    ) -> Self {
        let steps = size_of::<Line>() / (QUERIES * N);
        let lines = (8 * eights / N).div_ceil(steps);
        arranged.clear();
        for group in queries.chunks_exact(QUERIES * query_lines) {
            let of_queries = bytemuck::cast_slice(group).as_chunks::<N>().0;
            let stride = of_queries.len() / QUERIES;
            for line in 0..lines {
                let mut alternating = Line::ZERO;
                for (place, some) in alternating.0.as_chunks_mut().0.iter_mut().enumerate() {
                    let (step, query) = (place / QUERIES, place % QUERIES);
                    *some = of_queries[query * stride + line * steps + step];
                }
                arranged.push(alternating);
            }
        }
        Self { set, queries: arranged, lines }
    }

    /// The lines of a group.
    #[inline(always)]
    pub(super) fn group(&self, group: usize) -> &'a [Line] {
        &self.queries[group * self.lines..][..self.lines]
    }
}
