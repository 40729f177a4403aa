//! Tests each operation of every instruction set against its scalar formula.

use std::cmp::Ordering;

use contract::score::{self, LANES};
use model_store::from_float16;
use model_store::synth::split_mix;
use proptest::prelude::*;

use super::*;

/// Operands.
#[derive(Debug, Clone)]
struct Operands {
    words: [[i32; 16]; 2],
    /// Planes of high and of low halves.
    bytes: [[u8; 64]; 2],
    levels: [i8; 4],
    /// The last are numbers.
    floats: [[f32; 16]; 3],
    /// Of float32.
    doubles: [[f64; LANES]; 2],
    halves: [u16; 8],
}

impl Operands {
    /// Random ones, with levels in the set's range.
    fn new(seed: u64, set: InstructionSet) -> Self {
        const SPECIAL: [f32; 8] =
            [0.0, -0.0, 1.0, f32::MIN_POSITIVE / 4.0, f32::MAX, f32::INFINITY, f32::NAN, 0.1];
        let mut state = seed;
        let mut next = || {
            state = state.wrapping_add(1);
            split_mix(state)
        };
        let bits: [[u32; 16]; 2] = std::array::from_fn(|_| std::array::from_fn(|_| next() as u32));
        let words = bits.map(|words| words.map(|word| word as i32 >> 8));
        let bytes = std::array::from_fn(|_| std::array::from_fn(|_| next() as u8));
        // One more below zero than the set's levels are.
        let largest = set.largest_level();
        let levels = std::array::from_fn(|_| match next() % 4 {
            0 => (-largest - 1) as i8,
            1 => largest as i8,
            _ => (next() as i32 % largest) as i8,
        });
        let mut float = || match next() % 4 {
            0 => SPECIAL[next() as usize % 8],
            1 => f32::from_bits(next() as u32),
            _ => (next() as i32 as f32) / 1e6,
        };
        let mut floats: [[f32; 16]; 3] = std::array::from_fn(|_| std::array::from_fn(|_| float()));
        for x in &mut floats[2] {
            *x = if x.is_nan() { 3.5 } else { *x };
        }
        let doubles = std::array::from_fn(|_| {
            std::array::from_fn(|_| f64::from((next() as i32 as f32) / 1e5))
        });
        let halves = std::array::from_fn(|_| next() as u16);
        Self { words, bytes, levels, floats, doubles, halves }
    }
}

/// The results of all operations; of floats, their bits.
#[derive(Debug, PartialEq)]
struct Results {
    copied: Line,
    splat: [i32; 16],
    sum: [i32; 16],
    difference: [i32; 16],
    times_16: [i32; 16],
    joined: [[u8; 64]; 2],
    halves: [[u8; 64]; 2],
    /// Products with the joined bytes, and with the halves.
    products: [[[i32; 16]; 2]; 2],
    /// Products of a row with as many levels.
    of_row: [i32; 16],
    totals: [i32; 4],
    upper_halves: [u32; 16],
    lower_halves: [u32; 16],
    converted: [u32; 16],
    copied_floats: [u32; 16],
    splat_floats: [u32; 16],
    product: [u32; 16],
    higher: [u32; 16],
    not_below: u32,
    dot: u64,
    /// The same, one of the two from float32.
    dot_of_floats: u64,
    widened: [u32; 8],
}

/// All NaNs are alike here, and so are both zeros.
fn bits(floats: [f32; 16]) -> [u32; 16] {
    floats.map(bits_of)
}

fn bits_of(x: f32) -> u32 {
    if x.is_nan() { f32::NAN.to_bits() } else { (x + 0.0).to_bits() }
}

/// Runs all operations, as a kernel for each kind of work: sets hand some of these to others.
/// Returns also what is fused, which may be rounded once or twice.
struct Operate<'a, const WORK: usize>(&'a Operands);

impl<const WORK: usize> Kernel for Operate<'_, WORK> {
    const WORK: Work = [Work::Products, Work::Wide, Work::Narrow][WORK];

    type Output = (bool, Results, [f32; 16]);

    #[inline(always)]
    fn run<V: Vectors>(self, vectors: V) -> Self::Output {
        let Operands { words, bytes, levels, floats, doubles, halves } = self.0;
        let store = |words| {
            let mut line = Line::ZERO;
            vectors.store(words, &mut line);
            line
        };
        let integers = |words| -> [i32; 16] { bytemuck::cast(store(words).0) };
        let store_floats = |floats| {
            let mut stored = [0.0; 16];
            vectors.store_floats(floats, &mut stored);
            stored
        };
        let [a, b] = words.map(|words| vectors.load(&Line(bytemuck::cast(words))));
        let [high, low] = bytes.map(|bytes| vectors.load(&Line(bytes)));
        let [x, y, z] = floats.map(|floats| vectors.load_floats(&floats));
        let (joined, of_high) = (vectors.join(high, low), vectors.halves(high));
        let four = vectors.levels(bytemuck::cast(*levels));
        let products = [joined, of_high]
            .map(|all| all.map(|rows| integers(vectors.accumulate(a, rows, four))));
        let narrow = doubles[0].map(|x| x as f32);
        let [mut lanes, mut of_floats] = [vectors.zero_lanes(); 2];
        for (register, lane) in lanes.as_mut().iter_mut().enumerate() {
            let [one, other] = doubles.each_ref().map(|all| vectors.load_doubles(all, register));
            *lane = vectors.fused_doubles(one, other, *lane);
            let (one, lane) =
                (vectors.load_widened(&narrow, register), &mut of_floats.as_mut()[register]);
            *lane = vectors.fused_doubles(one, other, *lane);
        }
        let results = Results {
            copied: store(high),
            splat: integers(vectors.splat(words[0][0])),
            sum: integers(vectors.add(a, b)),
            difference: integers(vectors.subtract(a, b)),
            times_16: integers(vectors.times_16(a)),
            joined: joined.map(|bytes| store(bytes).0),
            halves: of_high.map(|bytes| store(bytes).0),
            products,
            of_row: integers(vectors.accumulate_row(a, high, vectors.load(&repeated(levels)))),
            totals: vectors.totals([a, b, vectors.add(a, b), vectors.splat(words[0][1])]),
            upper_halves: bits(store_floats(vectors.upper_halves(a))),
            lower_halves: bits(store_floats(vectors.lower_halves(a))),
            converted: bits(store_floats(vectors.convert(a))),
            copied_floats: bits(store_floats(x)),
            splat_floats: bits(store_floats(vectors.splat_float(floats[0][0]))),
            product: bits(store_floats(vectors.multiply(x, y))),
            higher: bits(store_floats(vectors.max(x, z))),
            not_below: vectors.not_below(x, y),
            dot: vectors.fold_lanes(lanes).to_bits(),
            dot_of_floats: vectors.fold_lanes(of_floats).to_bits(),
            widened: vectors.widen(halves).map(bits_of),
        };
        (V::SIGNED, results, store_floats(vectors.fused(x, y, z)))
    }
}

/// A line of the four levels and the same in other orders.
fn repeated(levels: &[i8; 4]) -> Line {
    let level = |i: usize| levels[(i + i / 4) % 4] as u8;
    Line(std::array::from_fn(level))
}

/// The same by their formulas.
fn expected(operands: &Operands, signed: bool) -> Results {
    let Operands { words: [a, b], bytes: [high, low], levels, floats: [x, y, z], doubles, halves } =
        operands;
    let each = |of: &dyn Fn(usize) -> i32| -> [i32; 16] { std::array::from_fn(of) };
    let bytes = |of: &dyn Fn(usize) -> u8| -> [u8; 64] { std::array::from_fn(of) };
    let of_floats = |of: &dyn Fn(usize) -> f32| -> [u32; 16] { bits(std::array::from_fn(of)) };
    let flip = if signed { 0x80 } else { 0 };
    let joined = [
        bytes(&|i| (high[i] << 4 | low[i] & 15) ^ flip),
        bytes(&|i| (high[i] & 0xf0 | low[i] >> 4) ^ flip),
    ];
    let of_high = [bytes(&|i| high[i] & 15), bytes(&|i| high[i] >> 4)];
    let value = |byte: u8| if signed { i32::from(byte as i8) } else { i32::from(byte) };
    let products = [joined, of_high].map(|all| {
        all.map(|rows| {
            let of_row = |r: usize| {
                (0..4).map(|i| value(rows[4 * r + i]) * i32::from(levels[i])).sum::<i32>()
            };
            each(&|r| a[r] + of_row(r))
        })
    });
    let own = repeated(levels).0;
    let of_row = |r: usize| -> i32 {
        (4 * r..4 * r + 4).map(|i| value(high[i] ^ flip) * i32::from(own[i] as i8)).sum()
    };
    let total = |words: &[i32; 16]| words.iter().sum::<i32>();
    let mut lanes = [0.0; LANES];
    for (lane, (one, other)) in lanes.iter_mut().zip(doubles[0].iter().zip(&doubles[1])) {
        *lane += one * other;
    }
    Results {
        copied: Line(*high),
        splat: [a[0]; 16],
        sum: each(&|i| a[i] + b[i]),
        difference: each(&|i| a[i] - b[i]),
        times_16: each(&|i| a[i] * 16),
        joined,
        halves: of_high,
        products,
        of_row: each(&|r| a[r] + of_row(r)),
        totals: [total(a), total(b), total(a) + total(b), 16 * a[1]],
        upper_halves: of_floats(&|i| f32::from_bits(a[i] as u32 & 0xffff_0000)),
        lower_halves: of_floats(&|i| f32::from_bits((a[i] as u32) << 16)),
        converted: of_floats(&|i| a[i] as f32),
        copied_floats: of_floats(&|i| x[i]),
        splat_floats: [bits_of(x[0]); 16],
        product: of_floats(&|i| x[i] * y[i]),
        higher: of_floats(&|i| if x[i] > z[i] { x[i] } else { z[i] }),
        not_below: (0..16)
            .map(|i| u32::from(x[i].partial_cmp(&y[i]) != Some(Ordering::Less)) << i)
            .sum(),
        dot: score::fold(lanes).to_bits(),
        dot_of_floats: score::fold(lanes).to_bits(),
        widened: halves.map(|half| bits_of(from_float16(half))),
    }
}

fn compare(set: InstructionSet, operands: &Operands, found: (bool, Results, [f32; 16])) {
    let (signed, results, fused) = found;
    assert_eq!(results, expected(operands, signed), "{set}");
    let [x, y, z] = &operands.floats;
    for (i, fused) in fused.into_iter().enumerate() {
        let allowed = [x[i].mul_add(y[i], z[i]), x[i] * y[i] + z[i]].map(bits_of);
        assert!(allowed.contains(&bits_of(fused)), "{set}: {} · {} + {}", x[i], y[i], z[i]);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 3 } else { 400 }))]
    #[test]
    fn operations_are_what_their_names_say(seed in any::<u64>()) {
        for set in InstructionSet::available() {
            let operands = Operands::new(seed, set);
            compare(set, &operands, set.run(Operate::<0>(&operands)));
            // Sets hand these to others, which may take lower levels.
            let levels = operands.levels.map(|level| level / 2);
            let operands = Operands { levels, ..operands };
            compare(set, &operands, set.run(Operate::<1>(&operands)));
            compare(set, &operands, set.run(Operate::<2>(&operands)));
        }
    }
}

/// Float16 numbers that begin with this one.
struct Widen(u16);

impl Kernel for Widen {
    const WORK: Work = Work::Wide;

    type Output = [f32; 8];

    #[inline(always)]
    fn run<V: Vectors>(self, vectors: V) -> [f32; 8] {
        vectors.widen(&std::array::from_fn(|i| self.0 + i as u16))
    }
}

#[test]
fn every_float16_has_its_value() {
    let step = if cfg!(miri) { 4096 } else { 8 };
    for set in InstructionSet::available() {
        for first in (0..=u16::MAX).step_by(step) {
            for (i, found) in set.run(Widen(first)).into_iter().enumerate() {
                let expected = from_float16(first + i as u16);
                assert_eq!(bits_of(found), bits_of(expected), "{set}: {first} + {i}");
            }
        }
    }
}

#[test]
fn the_last_set_is_portable_and_names_differ() {
    let names: Vec<String> =
        InstructionSet::available().iter().map(InstructionSet::to_string).collect();
    assert_eq!(names.last().map(String::as_str), Some("portable"));
    let distinct: std::collections::BTreeSet<&String> = names.iter().collect();
    assert_eq!(distinct.len(), names.len());
}
