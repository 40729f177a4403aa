//! SSE2: registers of 16 bytes, on every x86-64.

use std::arch::x86_64::*;

use contract::score::{LANES, fold};
use model_store::from_float16;

use super::{About, Kernel, Line, NoMatrices, Vectors};

/// SSE2.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sse2(());

impl Vectors for Sse2 {
    const ABOUT: About = About {
        name: "SSE2",
        largest_level: 127,
        preferred_batch: 64,
        thread_share: 16_000_000,
        task_work: 100_000,
        has_float16: false,
    };
    const TILE: [usize; 2] = [1, 2];
    const FEW_TILE: [usize; 2] = [1, 1];
    const DOTS_TILE: [usize; 2] = [1, 1];
    const SIGNED: bool = false;

    type Words = [__m128i; 4];
    type Floats = [__m128; 4];
    /// In 16 bits each: the first and the third in turn, and the second and the fourth.
    type Levels = [__m128i; 2];
    type Doubles = __m128d;
    type Lanes = [__m128d; 16];
    type Matrices<'a> = NoMatrices;

    fn detect() -> Option<Self> {
        Some(Self(()))
    }

    #[inline(always)]
    fn run<K: Kernel>(self, kernel: K) -> K::Output {
        fn inner<K: Kernel>(set: Sse2, kernel: K) -> K::Output {
            kernel.run(set)
        }
        inner(self, kernel)
    }

    operations! {
        fn load(line: &Line) -> [__m128i; 4] = {
            let parts: &[[u8; 16]; 4] = bytemuck::cast_ref(&line.0);
            four!(|i| _mm_loadu_si128(parts[i].as_ptr().cast()))
        };
        fn store(words: [__m128i; 4], line: &mut Line) = {
            let [a, b, c, d]: &mut [[u8; 16]; 4] = bytemuck::cast_mut(&mut line.0);
            _mm_storeu_si128(a.as_mut_ptr().cast(), words[0]);
            _mm_storeu_si128(b.as_mut_ptr().cast(), words[1]);
            _mm_storeu_si128(c.as_mut_ptr().cast(), words[2]);
            _mm_storeu_si128(d.as_mut_ptr().cast(), words[3]);
        };
        fn splat(word: i32) -> [__m128i; 4] = [_mm_set1_epi32(word); 4];
        fn add(a: [__m128i; 4], b: [__m128i; 4]) -> [__m128i; 4] =
            four!(|i| _mm_add_epi32(a[i], b[i]));
        fn subtract(a: [__m128i; 4], b: [__m128i; 4]) -> [__m128i; 4] =
            four!(|i| _mm_sub_epi32(a[i], b[i]));
        fn times_16(a: [__m128i; 4]) -> [__m128i; 4] = four!(|i| _mm_slli_epi32::<4>(a[i]));
        fn join(high: [__m128i; 4], low: [__m128i; 4]) -> [[__m128i; 4]; 2] = {
            let lower = _mm_set1_epi32(0x0f0f_0f0f);
            let upper = _mm_set1_epi32(0xf0f0_f0f0_u32 as i32);
            // Shifts of 16 bits move halves between bytes; the masks remove those.
            [
                four!(|i| _mm_or_si128(
                    _mm_and_si128(_mm_slli_epi16::<4>(high[i]), upper),
                    _mm_and_si128(low[i], lower),
                )),
                four!(|i| _mm_or_si128(
                    _mm_and_si128(high[i], upper),
                    _mm_and_si128(_mm_srli_epi16::<4>(low[i]), lower),
                )),
            ]
        };
        fn halves(bytes: [__m128i; 4]) -> [[__m128i; 4]; 2] = {
            let lower = _mm_set1_epi32(0x0f0f_0f0f);
            [
                four!(|i| _mm_and_si128(bytes[i], lower)),
                four!(|i| _mm_and_si128(_mm_srli_epi16::<4>(bytes[i]), lower)),
            ]
        };
        fn levels(four: [u8; 4]) -> [__m128i; 2] = widened(_mm_set1_epi32(i32::from_le_bytes(four)));
        fn accumulate(sums: [__m128i; 4], rows: [__m128i; 4], levels: [__m128i; 2])
            -> [__m128i; 4] = four!(|i| add_products(sums[i], rows[i], levels));
        fn accumulate_row(sums: [__m128i; 4], row: [__m128i; 4], levels: [__m128i; 4])
            -> [__m128i; 4] = four!(|i| add_products(sums[i], row[i], widened(levels[i])));
        fn totals(four: [[__m128i; 4]; 4]) -> [i32; 4] = {
            let [a, b, c, d] = four!(|i| _mm_add_epi32(
                _mm_add_epi32(four[i][0], four[i][1]),
                _mm_add_epi32(four[i][2], four[i][3]),
            ));
            // Halves of two rows side by side, added; then the same of four.
            let first = _mm_add_epi32(_mm_unpacklo_epi32(a, b), _mm_unpackhi_epi32(a, b));
            let second = _mm_add_epi32(_mm_unpacklo_epi32(c, d), _mm_unpackhi_epi32(c, d));
            let sums = _mm_add_epi32(
                _mm_unpacklo_epi64(first, second),
                _mm_unpackhi_epi64(first, second),
            );
            let mut totals = [0; 4];
            _mm_storeu_si128(totals.as_mut_ptr().cast(), sums);
            totals
        };
        fn upper_halves(words: [__m128i; 4]) -> [__m128; 4] = {
            let upper = _mm_set1_epi32(0xffff_0000_u32 as i32);
            four!(|i| _mm_castsi128_ps(_mm_and_si128(words[i], upper)))
        };
        fn lower_halves(words: [__m128i; 4]) -> [__m128; 4] =
            four!(|i| _mm_castsi128_ps(_mm_slli_epi32::<16>(words[i])));
        fn convert(words: [__m128i; 4]) -> [__m128; 4] = four!(|i| _mm_cvtepi32_ps(words[i]));
        fn load_floats(from: &[f32; 16]) -> [__m128; 4] = {
            let parts: &[[f32; 4]; 4] = bytemuck::cast_ref(from);
            four!(|i| _mm_loadu_ps(parts[i].as_ptr()))
        };
        fn store_floats(floats: [__m128; 4], to: &mut [f32; 16]) = {
            let [a, b, c, d]: &mut [[f32; 4]; 4] = bytemuck::cast_mut(to);
            _mm_storeu_ps(a.as_mut_ptr(), floats[0]);
            _mm_storeu_ps(b.as_mut_ptr(), floats[1]);
            _mm_storeu_ps(c.as_mut_ptr(), floats[2]);
            _mm_storeu_ps(d.as_mut_ptr(), floats[3]);
        };
        fn splat_float(x: f32) -> [__m128; 4] = [_mm_set1_ps(x); 4];
        fn multiply(a: [__m128; 4], b: [__m128; 4]) -> [__m128; 4] =
            four!(|i| _mm_mul_ps(a[i], b[i]));
        fn fused(a: [__m128; 4], b: [__m128; 4], c: [__m128; 4]) -> [__m128; 4] =
            four!(|i| _mm_add_ps(_mm_mul_ps(a[i], b[i]), c[i]));
        // For NaN and a number, this instruction returns the second operand.
        fn max(a: [__m128; 4], b: [__m128; 4]) -> [__m128; 4] = four!(|i| _mm_max_ps(a[i], b[i]));
        fn not_below(a: [__m128; 4], b: [__m128; 4]) -> u32 = {
            let [w, x, y, z] = four!(|i| _mm_movemask_ps(_mm_cmpnlt_ps(a[i], b[i])) as u32);
            w | x << 4 | y << 8 | z << 12
        };
        fn zero_lanes() -> [__m128d; 16] = [_mm_setzero_pd(); 16];
        fn load_doubles(lanes: &[f64; LANES], register: usize) -> __m128d = {
            let part: &[f64; 2] = &lanes.as_chunks().0[register];
            _mm_loadu_pd(part.as_ptr())
        };
        fn load_widened(lanes: &[f32; LANES], register: usize) -> __m128d = {
            let part: &[f32; 2] = &lanes.as_chunks().0[register];
            _mm_cvtps_pd(_mm_castsi128_ps(_mm_loadl_epi64(part.as_ptr().cast())))
        };
        fn add_doubles(a: __m128d, b: __m128d) -> __m128d = _mm_add_pd(a, b);
        fn fused_doubles(a: __m128d, b: __m128d, c: __m128d) -> __m128d =
            _mm_add_pd(_mm_mul_pd(a, b), c);
        fn fold(lanes: __m128d) -> f64 = {
            let mut stored = [0.0; 2];
            _mm_storeu_pd(stored.as_mut_ptr(), lanes);
            fold(stored)
        };
        fn widen(eight: &[u16; 8]) -> [f32; 8] = eight.map(from_float16);
    }
}

/// Signed bytes in 16 bits each: the first of each pair, and the second.
#[inline(always)]
#[allow(unsafe_code, unused_unsafe)]
fn widened(levels: __m128i) -> [__m128i; 2] {
    // SAFETY: every x86-64 has SSE2.
    unsafe { [_mm_srai_epi16::<8>(_mm_slli_epi16::<8>(levels)), _mm_srai_epi16::<8>(levels)] }
}

/// Adds four products of unsigned bytes and [widened] levels to each sum.
#[inline(always)]
#[allow(unsafe_code, unused_unsafe)]
fn add_products(sums: __m128i, rows: __m128i, levels: [__m128i; 2]) -> __m128i {
    // SAFETY: every x86-64 has SSE2.
    unsafe {
        let first = _mm_madd_epi16(_mm_and_si128(rows, _mm_set1_epi16(0xff)), levels[0]);
        let second = _mm_madd_epi16(_mm_srli_epi16::<8>(rows), levels[1]);
        _mm_add_epi32(_mm_add_epi32(sums, first), second)
    }
}
