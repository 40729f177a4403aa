//! Plain Rust, for every processor: arrays, in loops that compilers make vector instructions of.

#![allow(clippy::needless_range_loop)] // One index for several arrays.

use contract::score::{LANES, fold};
use model_store::from_float16;

use super::{About, Kernel, Line, NoMatrices, Vectors};

/// No instructions that must be detected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Portable;

/// Float64 that are added together.
const DOUBLES: usize = 8;

/// An array of the values for each index.
macro_rules! each {
    (|$i:ident| $value:expr) => {{
        let mut all = [Default::default(); 16];
        for $i in 0..16 {
            all[$i] = $value;
        }
        all
    }};
}

impl Vectors for Portable {
    const ABOUT: About = About {
        name: "portable",
        largest_level: 127,
        preferred_batch: 64,
        thread_share: 8_000_000,
        task_work: 50_000,
        has_float16: false,
    };
    const TILE: [usize; 2] = [1, 2];
    const FEW_TILE: [usize; 2] = [1, 1];
    const DOTS_TILE: [usize; 2] = [1, 1];
    const SIGNED: bool = false;

    type Words = [i32; 16];
    type Floats = [f32; 16];
    type Levels = [i8; 4];
    type Doubles = [f64; DOUBLES];
    type Lanes = [[f64; DOUBLES]; LANES / DOUBLES];
    type Matrices<'a> = NoMatrices;

    fn detect() -> Option<Self> {
        Some(Self)
    }

    #[inline(always)]
    fn run<K: Kernel>(self, kernel: K) -> K::Output {
        fn inner<K: Kernel>(kernel: K) -> K::Output {
            kernel.run(Portable)
        }
        inner(kernel)
    }

    operations! {
        fn load(line: &Line) -> [i32; 16] = bytemuck::cast(line.0);
        fn store(words: [i32; 16], line: &mut Line) = line.0 = bytemuck::cast(words);
        fn splat(word: i32) -> [i32; 16] = [word; 16];
        fn add(a: [i32; 16], b: [i32; 16]) -> [i32; 16] = each!(|i| a[i].wrapping_add(b[i]));
        fn subtract(a: [i32; 16], b: [i32; 16]) -> [i32; 16] = each!(|i| a[i].wrapping_sub(b[i]));
        fn times_16(a: [i32; 16]) -> [i32; 16] = each!(|i| a[i] << 4);
        fn join(high: [i32; 16], low: [i32; 16]) -> [[i32; 16]; 2] = [
            each!(|i| high[i] << 4 & 0xf0f0_f0f0_u32 as i32 | low[i] & 0x0f0f_0f0f),
            each!(|i| high[i] & 0xf0f0_f0f0_u32 as i32 | low[i] >> 4 & 0x0f0f_0f0f),
        ];
        fn halves(bytes: [i32; 16]) -> [[i32; 16]; 2] =
            [each!(|i| bytes[i] & 0x0f0f_0f0f), each!(|i| bytes[i] >> 4 & 0x0f0f_0f0f)];
        fn levels(four: [u8; 4]) -> [i8; 4] = bytemuck::cast(four);
        fn accumulate(sums: [i32; 16], rows: [i32; 16], levels: [i8; 4]) -> [i32; 16] =
            each!(|i| add_products(sums[i], rows[i], levels));
        fn accumulate_row(sums: [i32; 16], row: [i32; 16], levels: [i32; 16]) -> [i32; 16] =
            each!(|i| add_products(sums[i], row[i], bytemuck::cast(levels[i])));
        fn totals(four: [[i32; 16]; 4]) -> [i32; 4] = {
            let mut totals = [0i32; 4];
            for i in 0..4 {
                for word in four[i] {
                    totals[i] = totals[i].wrapping_add(word);
                }
            }
            totals
        };
        fn upper_halves(words: [i32; 16]) -> [f32; 16] =
            each!(|i| f32::from_bits(words[i] as u32 & 0xffff_0000));
        fn lower_halves(words: [i32; 16]) -> [f32; 16] =
            each!(|i| f32::from_bits((words[i] as u32) << 16));
        fn convert(words: [i32; 16]) -> [f32; 16] = each!(|i| words[i] as f32);
        fn load_floats(from: &[f32; 16]) -> [f32; 16] = *from;
        fn store_floats(floats: [f32; 16], to: &mut [f32; 16]) = *to = floats;
        fn splat_float(x: f32) -> [f32; 16] = [x; 16];
        fn multiply(a: [f32; 16], b: [f32; 16]) -> [f32; 16] = each!(|i| a[i] * b[i]);
        fn fused(a: [f32; 16], b: [f32; 16], c: [f32; 16]) -> [f32; 16] =
            each!(|i| a[i] * b[i] + c[i]);
        fn max(a: [f32; 16], b: [f32; 16]) -> [f32; 16] =
            each!(|i| if a[i] > b[i] { a[i] } else { b[i] });
        fn not_below(a: [f32; 16], b: [f32; 16]) -> u32 = {
            let mut bits = 0;
            for i in 0..16 {
                let is_below = a[i] < b[i];
                bits |= u32::from(!is_below) << i;
            }
            bits
        };
        fn zero_lanes() -> [[f64; DOUBLES]; LANES / DOUBLES] =
            [[0.0; DOUBLES]; LANES / DOUBLES];
        fn load_doubles(lanes: &[f64; LANES], register: usize) -> [f64; DOUBLES] =
            lanes.as_chunks().0[register];
        fn load_widened(lanes: &[f32; LANES], register: usize) -> [f64; DOUBLES] = {
            let part: &[f32; DOUBLES] = &lanes.as_chunks().0[register];
            part.map(f64::from)
        };
        fn add_doubles(a: [f64; DOUBLES], b: [f64; DOUBLES]) -> [f64; DOUBLES] = {
            let mut sums = a;
            for (sum, b) in sums.iter_mut().zip(b) {
                *sum += b;
            }
            sums
        };
        fn fused_doubles(a: [f64; DOUBLES], b: [f64; DOUBLES], c: [f64; DOUBLES])
            -> [f64; DOUBLES] = {
            let mut sums = c;
            for i in 0..DOUBLES {
                sums[i] += a[i] * b[i];
            }
            sums
        };
        fn fold(lanes: [f64; DOUBLES]) -> f64 = fold(lanes);
        fn widen(eight: &[u16; 8]) -> [f32; 8] = eight.map(from_float16);
    }
}

/// Adds the products of four unsigned bytes and four levels.
#[inline(always)]
fn add_products(mut sum: i32, bytes: i32, levels: [i8; 4]) -> i32 {
    for (byte, level) in bytes.to_le_bytes().into_iter().zip(levels) {
        sum = sum.wrapping_add(i32::from(byte) * i32::from(level));
    }
    sum
}
