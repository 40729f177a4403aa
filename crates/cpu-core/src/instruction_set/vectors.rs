//! The trait of instruction sets, and that of the algorithms which are written in its operations.

use contract::score::LANES;

#[cfg(doc)]
use super::InstructionSet;
use super::lines::{Line, STRIP_BLOCKS, Sums};

/// The name of a set, and numbers that depend on its speed; see the methods of [`InstructionSet`].
#[derive(Debug, Clone, Copy)]
pub(crate) struct About {
    pub(crate) name: &'static str,
    pub(crate) largest_level: i32,
    pub(crate) preferred_batch: usize,
    pub(crate) thread_share: usize,
    pub(crate) task_work: usize,
    pub(crate) has_float16: bool,
}

/// An algorithm.
pub(crate) trait Kernel {
    /// By this, a set may hand it to another set.
    const WORK: Work;

    type Output;

    /// Runs it. Implementations must be `#[inline(always)]`.
    fn run<V: Vectors>(self, vectors: V) -> Self::Output;
}

/// The kind of an algorithm's inner loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Work {
    /// Products of bytes.
    Products,
    /// Floats, in loops that gain from the widest registers.
    Wide,
    /// Loops that do not: because they are short, or lower the processor's clock.
    Narrow,
}

/// A set's registers and operations.
///
/// Words and floats come by sixteen, one for each row of a block, in as many registers as that
/// takes.
pub(crate) trait Vectors: Copy {
    const ABOUT: About;

    /// Blocks and queries of a scan's tile, whose sums are in registers.
    const TILE: [usize; 2];

    /// Queries that are multiplied together if there are few, and the number of sums for each of
    /// them and each row: two shorten the dependency chains.
    const FEW_TILE: [usize; 2];

    /// Rows and queries of a tile of float64 dot products.
    const DOTS_TILE: [usize; 2];

    /// Whether the bytes of rows are multiplied as signed ones. Then [`join`](Self::join) counts
    /// them from −128, and the sums of products are lower by 128 times the sum of the levels.
    const SIGNED: bool;

    /// Sixteen integers of 32 bits.
    type Words: Copy;
    /// Sixteen float32.
    type Floats: Copy;
    /// Four levels of a query, as they are multiplied with each row.
    type Levels: Copy;
    /// A register of float64.
    type Doubles: Copy;
    /// [`LANES`] float64.
    type Lanes: Copy + AsRef<[Self::Doubles]> + AsMut<[Self::Doubles]>;
    /// [`NoMatrices`], unless the set multiplies several rows by several queries in its own way.
    type Matrices<'a>: Matrices;

    /// The set, if the machine has it.
    fn detect() -> Option<Self>;

    /// Runs an algorithm with these instructions, or has a set that this one includes run it.
    fn run<K: Kernel>(self, kernel: K) -> K::Output;

    fn load(self, line: &Line) -> Self::Words;
    fn store(self, words: Self::Words, line: &mut Line);
    fn splat(self, word: i32) -> Self::Words;
    fn add(self, a: Self::Words, b: Self::Words) -> Self::Words;
    fn subtract(self, a: Self::Words, b: Self::Words) -> Self::Words;
    fn times_16(self, a: Self::Words) -> Self::Words;

    /// Bytes from their high and low halves: those from the lower halves of both, and those from
    /// the upper ones.
    fn join(self, high: Self::Words, low: Self::Words) -> [Self::Words; 2];

    /// The lower half of each byte, and the upper one, as numbers below 16.
    fn halves(self, bytes: Self::Words) -> [Self::Words; 2];

    fn levels(self, four: [u8; 4]) -> Self::Levels;

    /// Adds to each sum four products of a row's bytes, which are unsigned unless the set is
    /// [`SIGNED`](Self::SIGNED), and signed levels.
    fn accumulate(self, sums: Self::Words, rows: Self::Words, levels: Self::Levels) -> Self::Words;

    /// Adds to each sum four products of bytes of one row, unsigned in any set, and of as many
    /// levels. If the set is [`SIGNED`](Self::SIGNED), it multiplies them counted from −128.
    fn accumulate_row(
        self,
        sums: Self::Words,
        row: Self::Words,
        levels: Self::Words,
    ) -> Self::Words;

    /// The sum of all sixteen of each.
    fn totals(self, four: [Self::Words; 4]) -> [i32; 4];

    /// The float32 whose upper 16 bits are the upper halves of the words, and whose others are 0.
    fn upper_halves(self, words: Self::Words) -> Self::Floats;

    /// The same from the lower halves.
    fn lower_halves(self, words: Self::Words) -> Self::Floats;

    fn convert(self, words: Self::Words) -> Self::Floats;
    fn load_floats(self, from: &[f32; 16]) -> Self::Floats;
    fn store_floats(self, floats: Self::Floats, to: &mut [f32; 16]);
    fn splat_float(self, x: f32) -> Self::Floats;
    fn multiply(self, a: Self::Floats, b: Self::Floats) -> Self::Floats;

    /// `a · b + c`, rounded once or twice.
    fn fused(self, a: Self::Floats, b: Self::Floats, c: Self::Floats) -> Self::Floats;

    /// The higher of two numbers; `b` where `a` is NaN.
    fn max(self, a: Self::Floats, b: Self::Floats) -> Self::Floats;

    /// A bit for each `a` that is not below `b`; also where one of them is NaN.
    fn not_below(self, a: Self::Floats, b: Self::Floats) -> u32;

    fn zero_lanes(self) -> Self::Lanes;

    /// The lanes in this register of [`Lanes`](Self::Lanes).
    fn load_doubles(self, lanes: &[f64; LANES], register: usize) -> Self::Doubles;

    /// The same from float32.
    fn load_widened(self, lanes: &[f32; LANES], register: usize) -> Self::Doubles;
    fn add_doubles(self, a: Self::Doubles, b: Self::Doubles) -> Self::Doubles;

    /// `a · b + c`, rounded once or twice: the products of the contract are exact.
    fn fused_doubles(self, a: Self::Doubles, b: Self::Doubles, c: Self::Doubles) -> Self::Doubles;

    /// The contract's fold of a register.
    fn fold(self, lanes: Self::Doubles) -> f64;

    /// The contract's fold of all lanes: by halves of whole registers, and of the last one.
    #[inline(always)]
    fn fold_lanes(self, mut lanes: Self::Lanes) -> f64 {
        let registers = lanes.as_mut();
        let mut half = registers.len() / 2;
        while half > 0 {
            for register in 0..half {
                registers[register] =
                    self.add_doubles(registers[register], registers[register + half]);
            }
            half /= 2;
        }
        self.fold(registers[0])
    }

    /// The values of float16 numbers.
    fn widen(self, eight: &[u16; 8]) -> [f32; 8];

    /// Begins a scan that multiplies strips by matrices. `queries` is `[queries, query_lines]`,
    /// with whole groups of queries, of which the first `eights` times eight components count;
    /// `arranged` is room for them in another order.
    #[inline(always)]
    fn matrices<'a>(
        self,
        queries: &'a [Line],
        query_lines: usize,
        eights: usize,
        arranged: &'a mut Vec<Line>,
    ) -> Option<Self::Matrices<'a>> {
        let _ = (queries, query_lines, eights, arranged);
        None
    }

    /// The order in which matrices need two lines of a block: with components 8j to 8j + 3 of all
    /// rows, and with the next four.
    #[inline(always)]
    fn arrange_rows(self, lines: [Self::Words; 2]) -> [Self::Words; 2] {
        lines
    }
}

/// Products of several rows with several queries, with instructions for that or with queries in
/// another order.
pub(crate) trait Matrices {
    /// Queries of a group.
    const QUERIES: usize;

    /// Sums `[QUERIES, STRIP_BLOCKS]` of a strip with a group of queries. The blocks' lines are
    /// [arranged](Vectors::arrange_rows), and padded with zeros to whole lines of a query.
    fn multiply(&self, blocks: [&[Line]; STRIP_BLOCKS], group: usize, sums: &mut [Sums]);
}

/// No such instructions: there is no value of this type.
pub(crate) enum NoMatrices {}

impl Matrices for NoMatrices {
    const QUERIES: usize = 1;

    #[inline(always)]
    fn multiply(&self, _: [&[Line]; STRIP_BLOCKS], _: usize, _: &mut [Sums]) {
        match *self {}
    }
}
