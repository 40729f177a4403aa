//! AVX-512 without VNNI: registers of 64 bytes, and more of them.

use std::arch::x86_64::*;

use super::avx2::Avx2;
use super::{About, Vectors};

/// AVX-512 (F, VL, BW and DQ), and AVX2.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Avx512 {
    avx2: Avx2,
}

/// The registers and operations of sets of 64 bytes, which differ in how products are added.
macro_rules! with_64_bytes {
    (accumulate |$sums:ident, $rows:ident, $levels:ident| $accumulated:expr) => {
        const TILE: [usize; 2] = [2, 8];
        const FEW_TILE: [usize; 2] = [2, 2];
        const DOTS_TILE: [usize; 2] = [2, 3];
        const SIGNED: bool = false;

        type Words = __m512i;
        type Floats = __m512;
        type Levels = __m512i;
        type Doubles = __m512d;
        type Lanes = [__m512d; 4];

        operations! {
            fn load(line: &$crate::instruction_set::Line) -> __m512i =
                _mm512_loadu_si512(line.0.as_ptr().cast());
            fn store(words: __m512i, line: &mut $crate::instruction_set::Line) =
                _mm512_storeu_si512(line.0.as_mut_ptr().cast(), words);
            fn splat(word: i32) -> __m512i = _mm512_set1_epi32(word);
            fn add(a: __m512i, b: __m512i) -> __m512i = _mm512_add_epi32(a, b);
            fn subtract(a: __m512i, b: __m512i) -> __m512i = _mm512_sub_epi32(a, b);
            fn times_16(a: __m512i) -> __m512i = _mm512_slli_epi32::<4>(a);
            fn join(high: __m512i, low: __m512i) -> [__m512i; 2] = {
                let lower = _mm512_set1_epi32(0x0f0f_0f0f);
                let upper = _mm512_set1_epi32(0xf0f0_f0f0_u32 as i32);
                // Shifts of 16 bits move halves between bytes; the masks remove those.
                [
                    _mm512_or_si512(
                        _mm512_and_si512(_mm512_slli_epi16::<4>(high), upper),
                        _mm512_and_si512(low, lower),
                    ),
                    _mm512_or_si512(
                        _mm512_and_si512(high, upper),
                        _mm512_and_si512(_mm512_srli_epi16::<4>(low), lower),
                    ),
                ]
            };
            fn halves(bytes: __m512i) -> [__m512i; 2] = {
                let lower = _mm512_set1_epi32(0x0f0f_0f0f);
                [
                    _mm512_and_si512(bytes, lower),
                    _mm512_and_si512(_mm512_srli_epi16::<4>(bytes), lower),
                ]
            };
            fn levels(four: [u8; 4]) -> __m512i = _mm512_set1_epi32(i32::from_le_bytes(four));
            fn accumulate(sums: __m512i, rows: __m512i, levels: __m512i) -> __m512i = {
                let ($sums, $rows, $levels) = (sums, rows, levels);
                $accumulated
            };
            fn accumulate_row(sums: __m512i, row: __m512i, levels: __m512i) -> __m512i = {
                let ($sums, $rows, $levels) = (sums, row, levels);
                $accumulated
            };
            fn totals(four: [__m512i; 4]) -> [i32; 4] = {
                let eight = four!(|i| _mm256_add_epi32(
                    _mm512_castsi512_si256(four[i]),
                    _mm512_extracti64x4_epi64::<1>(four[i]),
                ));
                bytemuck::cast($crate::instruction_set::avx2::totals_of_eight(eight))
            };
            fn upper_halves(words: __m512i) -> __m512 = _mm512_castsi512_ps(_mm512_and_si512(
                words,
                _mm512_set1_epi32(0xffff_0000_u32 as i32),
            ));
            fn lower_halves(words: __m512i) -> __m512 =
                _mm512_castsi512_ps(_mm512_slli_epi32::<16>(words));
            fn convert(words: __m512i) -> __m512 = _mm512_cvtepi32_ps(words);
            fn load_floats(from: &[f32; 16]) -> __m512 = _mm512_loadu_ps(from.as_ptr());
            fn store_floats(floats: __m512, to: &mut [f32; 16]) =
                _mm512_storeu_ps(to.as_mut_ptr(), floats);
            fn splat_float(x: f32) -> __m512 = _mm512_set1_ps(x);
            fn multiply(a: __m512, b: __m512) -> __m512 = _mm512_mul_ps(a, b);
            fn fused(a: __m512, b: __m512, c: __m512) -> __m512 = _mm512_fmadd_ps(a, b, c);
            // For NaN and a number, this instruction returns the second operand.
            fn max(a: __m512, b: __m512) -> __m512 = _mm512_max_ps(a, b);
            fn not_below(a: __m512, b: __m512) -> u32 =
                u32::from(_mm512_cmp_ps_mask::<_CMP_NLT_UQ>(a, b));
            fn zero_lanes() -> [__m512d; 4] = [_mm512_setzero_pd(); 4];
            fn load_doubles(lanes: &[f64; contract::score::LANES], register: usize) -> __m512d = {
                let part: &[f64; 8] = &lanes.as_chunks().0[register];
                _mm512_loadu_pd(part.as_ptr())
            };
            fn load_widened(lanes: &[f32; contract::score::LANES], register: usize) -> __m512d = {
                let part: &[f32; 8] = &lanes.as_chunks().0[register];
                _mm512_cvtps_pd(_mm256_loadu_ps(part.as_ptr()))
            };
            fn add_doubles(a: __m512d, b: __m512d) -> __m512d = _mm512_add_pd(a, b);
            fn fused_doubles(a: __m512d, b: __m512d, c: __m512d) -> __m512d =
                _mm512_fmadd_pd(a, b, c);
            fn fold(lanes: __m512d) -> f64 = {
                let mut stored = [0.0; 8];
                _mm512_storeu_pd(stored.as_mut_ptr(), lanes);
                contract::score::fold(stored)
            };
            fn widen(eight: &[u16; 8]) -> [f32; 8] =
                bytemuck::cast(_mm256_cvtph_ps(bytemuck::cast(*eight)));
        }
    };
}

pub(super) use with_64_bytes;

impl Vectors for Avx512 {
    const ABOUT: About = About { name: "AVX-512", task_work: 800_000, ..Avx2::ABOUT };

    type Matrices<'a> = super::NoMatrices;

    fn detect() -> Option<Self> {
        let avx2 = Avx2::detect()?;
        let detected = is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512vl")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512dq");
        detected.then_some(Self { avx2 })
    }

    runs! { with "avx2,fma,f16c,avx512f,avx512vl,avx512bw,avx512dq", only Wide, else avx2 }

    with_64_bytes! {
        accumulate |sums, rows, levels| {
            // As AVX2 does it, with its largest level.
            let pairs = _mm512_maddubs_epi16(rows, levels);
            _mm512_add_epi32(sums, _mm512_madd_epi16(pairs, _mm512_set1_epi16(1)))
        }
    }
}
