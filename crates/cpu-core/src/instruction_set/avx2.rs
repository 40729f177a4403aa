//! AVX2: registers of 32 bytes.

use std::arch::x86_64::*;

use super::{About, Vectors};

/// AVX2 with FMA and F16C.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Avx2(());

/// The registers and operations of sets of 32 bytes, which differ in how products are added.
macro_rules! with_32_bytes {
    (accumulate |$sums:ident, $rows:ident, $levels:ident| $accumulated:expr) => {
        const TILE: [usize; 2] = [2, 2];
        const FEW_TILE: [usize; 2] = [2, 2];
        const DOTS_TILE: [usize; 2] = [1, 1];
        const SIGNED: bool = false;

        type Words = [__m256i; 2];
        type Floats = [__m256; 2];
        type Levels = __m256i;
        type Doubles = __m256d;
        type Lanes = [__m256d; 8];
        type Matrices<'a> = $crate::instruction_set::NoMatrices;

        operations! {
            fn load(line: &$crate::instruction_set::Line) -> [__m256i; 2] = {
                let [a, b]: &[[u8; 32]; 2] = bytemuck::cast_ref(&line.0);
                [_mm256_loadu_si256(a.as_ptr().cast()), _mm256_loadu_si256(b.as_ptr().cast())]
            };
            fn store(words: [__m256i; 2], line: &mut $crate::instruction_set::Line) = {
                let [a, b]: &mut [[u8; 32]; 2] = bytemuck::cast_mut(&mut line.0);
                _mm256_storeu_si256(a.as_mut_ptr().cast(), words[0]);
                _mm256_storeu_si256(b.as_mut_ptr().cast(), words[1]);
            };
            fn splat(word: i32) -> [__m256i; 2] = [_mm256_set1_epi32(word); 2];
            fn add(a: [__m256i; 2], b: [__m256i; 2]) -> [__m256i; 2] =
                [_mm256_add_epi32(a[0], b[0]), _mm256_add_epi32(a[1], b[1])];
            fn subtract(a: [__m256i; 2], b: [__m256i; 2]) -> [__m256i; 2] =
                [_mm256_sub_epi32(a[0], b[0]), _mm256_sub_epi32(a[1], b[1])];
            fn times_16(a: [__m256i; 2]) -> [__m256i; 2] =
                [_mm256_slli_epi32::<4>(a[0]), _mm256_slli_epi32::<4>(a[1])];
            fn join(high: [__m256i; 2], low: [__m256i; 2]) -> [[__m256i; 2]; 2] = {
                let lower = _mm256_set1_epi32(0x0f0f_0f0f);
                let upper = _mm256_set1_epi32(0xf0f0_f0f0_u32 as i32);
                let mut joined = [[lower; 2]; 2];
                let mut part = 0;
                // Shifts of 16 bits move halves between bytes; the masks remove those.
                while part < 2 {
                    let (high, low) = (high[part], low[part]);
                    joined[0][part] = _mm256_or_si256(
                        _mm256_and_si256(_mm256_slli_epi16::<4>(high), upper),
                        _mm256_and_si256(low, lower),
                    );
                    joined[1][part] = _mm256_or_si256(
                        _mm256_and_si256(high, upper),
                        _mm256_and_si256(_mm256_srli_epi16::<4>(low), lower),
                    );
                    part += 1;
                }
                joined
            };
            fn halves(bytes: [__m256i; 2]) -> [[__m256i; 2]; 2] = {
                let lower = _mm256_set1_epi32(0x0f0f_0f0f);
                let [a, b] = bytes;
                [
                    [_mm256_and_si256(a, lower), _mm256_and_si256(b, lower)],
                    [
                        _mm256_and_si256(_mm256_srli_epi16::<4>(a), lower),
                        _mm256_and_si256(_mm256_srli_epi16::<4>(b), lower),
                    ],
                ]
            };
            fn levels(four: [u8; 4]) -> __m256i = _mm256_set1_epi32(i32::from_le_bytes(four));
            fn accumulate(sums: [__m256i; 2], rows: [__m256i; 2], levels: __m256i)
                -> [__m256i; 2] = {
                let $levels = levels;
                let ($sums, $rows) = (sums[0], rows[0]);
                let first = $accumulated;
                let ($sums, $rows) = (sums[1], rows[1]);
                [first, $accumulated]
            };
            fn accumulate_row(sums: [__m256i; 2], row: [__m256i; 2], levels: [__m256i; 2])
                -> [__m256i; 2] = {
                let ($sums, $rows, $levels) = (sums[0], row[0], levels[0]);
                let first = $accumulated;
                let ($sums, $rows, $levels) = (sums[1], row[1], levels[1]);
                [first, $accumulated]
            };
            fn totals(four: [[__m256i; 2]; 4]) -> [i32; 4] = {
                let eight = four!(|i| _mm256_add_epi32(four[i][0], four[i][1]));
                bytemuck::cast($crate::instruction_set::avx2::totals_of_eight(eight))
            };
            fn upper_halves(words: [__m256i; 2]) -> [__m256; 2] = {
                let upper = _mm256_set1_epi32(0xffff_0000_u32 as i32);
                [
                    _mm256_castsi256_ps(_mm256_and_si256(words[0], upper)),
                    _mm256_castsi256_ps(_mm256_and_si256(words[1], upper)),
                ]
            };
            fn lower_halves(words: [__m256i; 2]) -> [__m256; 2] = [
                _mm256_castsi256_ps(_mm256_slli_epi32::<16>(words[0])),
                _mm256_castsi256_ps(_mm256_slli_epi32::<16>(words[1])),
            ];
            fn convert(words: [__m256i; 2]) -> [__m256; 2] =
                [_mm256_cvtepi32_ps(words[0]), _mm256_cvtepi32_ps(words[1])];
            fn load_floats(from: &[f32; 16]) -> [__m256; 2] = {
                let [a, b]: &[[f32; 8]; 2] = bytemuck::cast_ref(from);
                [_mm256_loadu_ps(a.as_ptr()), _mm256_loadu_ps(b.as_ptr())]
            };
            fn store_floats(floats: [__m256; 2], to: &mut [f32; 16]) = {
                let [a, b]: &mut [[f32; 8]; 2] = bytemuck::cast_mut(to);
                _mm256_storeu_ps(a.as_mut_ptr(), floats[0]);
                _mm256_storeu_ps(b.as_mut_ptr(), floats[1]);
            };
            fn splat_float(x: f32) -> [__m256; 2] = [_mm256_set1_ps(x); 2];
            fn multiply(a: [__m256; 2], b: [__m256; 2]) -> [__m256; 2] =
                [_mm256_mul_ps(a[0], b[0]), _mm256_mul_ps(a[1], b[1])];
            fn fused(a: [__m256; 2], b: [__m256; 2], c: [__m256; 2]) -> [__m256; 2] =
                [_mm256_fmadd_ps(a[0], b[0], c[0]), _mm256_fmadd_ps(a[1], b[1], c[1])];
            // For NaN and a number, this instruction returns the second operand.
            fn max(a: [__m256; 2], b: [__m256; 2]) -> [__m256; 2] =
                [_mm256_max_ps(a[0], b[0]), _mm256_max_ps(a[1], b[1])];
            fn not_below(a: [__m256; 2], b: [__m256; 2]) -> u32 = {
                let first = _mm256_movemask_ps(_mm256_cmp_ps::<_CMP_NLT_UQ>(a[0], b[0])) as u32;
                let second = _mm256_movemask_ps(_mm256_cmp_ps::<_CMP_NLT_UQ>(a[1], b[1])) as u32;
                first | second << 8
            };
            fn zero_lanes() -> [__m256d; 8] = [_mm256_setzero_pd(); 8];
            fn load_doubles(lanes: &[f64; contract::score::LANES], register: usize) -> __m256d = {
                let part: &[f64; 4] = &lanes.as_chunks().0[register];
                _mm256_loadu_pd(part.as_ptr())
            };
            fn load_widened(lanes: &[f32; contract::score::LANES], register: usize) -> __m256d = {
                let part: &[f32; 4] = &lanes.as_chunks().0[register];
                _mm256_cvtps_pd(_mm_loadu_ps(part.as_ptr()))
            };
            fn add_doubles(a: __m256d, b: __m256d) -> __m256d = _mm256_add_pd(a, b);
            fn fused_doubles(a: __m256d, b: __m256d, c: __m256d) -> __m256d =
                _mm256_fmadd_pd(a, b, c);
            fn fold(lanes: __m256d) -> f64 = {
                let mut stored = [0.0; 4];
                _mm256_storeu_pd(stored.as_mut_ptr(), lanes);
                contract::score::fold(stored)
            };
            fn widen(eight: &[u16; 8]) -> [f32; 8] =
                bytemuck::cast(_mm256_cvtph_ps(bytemuck::cast(*eight)));
        }
    };
}

pub(super) use with_32_bytes;

/// The sum of all eight words of each.
#[target_feature(enable = "avx2")]
#[inline]
pub(super) fn totals_of_eight(four: [__m256i; 4]) -> __m128i {
    let [a, b, c, d] = four;
    let sums = _mm256_hadd_epi32(_mm256_hadd_epi32(a, b), _mm256_hadd_epi32(c, d));
    _mm_add_epi32(_mm256_castsi256_si128(sums), _mm256_extracti128_si256::<1>(sums))
}

impl Vectors for Avx2 {
    const ABOUT: About = About {
        name: "AVX2",
        // Pairs of products are added in 16 bits, which hold them if no level is beyond 64: 2 ·
        // 255 · 64 < 2¹⁵. In a query's second plane, 64 is the maximum anyway.
        largest_level: 63,
        preferred_batch: 64,
        thread_share: 32_000_000,
        task_work: 200_000,
        has_float16: true,
    };

    fn detect() -> Option<Self> {
        let detected = is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("fma")
            && is_x86_feature_detected!("f16c");
        detected.then_some(Self(()))
    }

    runs! { with "avx2,fma,f16c" }

    with_32_bytes! {
        accumulate |sums, rows, levels| {
            let pairs = _mm256_maddubs_epi16(rows, levels);
            _mm256_add_epi32(sums, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)))
        }
    }
}
