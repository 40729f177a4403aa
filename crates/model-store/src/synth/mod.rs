//! Synthetic word vectors of any size, reproducible to the bit, for tests and benchmarks without a
//! download. `docs/synth.md` compares them with real ones.
//!
//! Component `d` of row `r` is
//! `scale(d) · (0.9 · centre(c(r), d) + noise(r) · own(r, d) + 0.35 · mean(d))`, the row then
//! scaled to a norm that falls with its rank. Centres, own parts and means are roughly Gaussian;
//! clusters are of unequal size; two components are five times as heavy as the rest. Under the dot
//! product norms also vary between rows (log-normal, σ = 0.3), and biases fall with rank.
//!
//! Every number is a hash of its position (SplitMix64: Steele, Lea and Flood 2014, "Fast Splittable
//! Pseudorandom Number Generators") by operations that IEEE 754 rounds the same everywhere, so the
//! same arguments give the same vectors on every machine, with any number of threads, to the bit.

mod attributes;
mod folder;
mod ngrams;
mod text;

use rayon::prelude::*;

use contract::{Metric, score};
pub use folder::{SynthOptions, synth_folder, synth_in_memory};
pub use text::synth_text;

/// Average number of rows per cluster.
const ROWS_PER_CLUSTER: u32 = 44;

/// A table computed on demand.
#[derive(Debug, Clone)]
pub struct Synth {
    rows: u32,
    seed: u64,
    clusters: u32,
    scales: Vec<f32>,
    means: Vec<f32>,
    metric: Metric,
}

/// The purpose of a number; hashes for different purposes are independent.
#[derive(Clone, Copy)]
enum Purpose {
    Cluster = 1,
    Noise,
    Centre,
    Own,
    Mean,
    Scale,
    Length,
    Bias,
    Integer,
    Keyword,
    Ngram,
}

impl Synth {
    /// A table of `rows` rows of `dim` components.
    ///
    /// # Panics
    /// If either is 0.
    pub fn new(rows: u32, dim: usize, seed: u64) -> Self {
        assert!(rows > 0 && dim > 0, "a table has rows and components");
        let clusters = (rows / ROWS_PER_CLUSTER).max(1);
        let (scales, means) = (Vec::new(), Vec::new());
        let mut synth = Self { rows, seed, clusters, scales, means, metric: Metric::Cosine };
        synth.means = (0..dim as u32).map(|d| synth.gaussian(Purpose::Mean, 0, d)).collect();
        let scale = |d: u32| {
            let scale = near_exp(0.35 * synth.gaussian(Purpose::Scale, 0, d));
            let heavy = dim > 16 && (d == 17 % dim as u32 || d == 2 * dim as u32 / 3);
            if heavy { 5.0 * scale } else { scale }
        };
        synth.scales = (0..dim as u32).map(scale).collect();
        synth
    }

    /// The same directions under another metric. Under [`Metric::Dot`] norms also vary from row to
    /// row.
    pub fn under(self, metric: Metric) -> Self {
        Self { metric, ..self }
    }

    /// Number of rows.
    pub fn rows(&self) -> u32 {
        self.rows
    }

    /// Components in a row.
    pub fn dim(&self) -> usize {
        self.scales.len()
    }

    /// Row `row`, `[dim]`.
    ///
    /// # Panics
    /// If `out` has another length.
    pub fn row(&self, row: u32, out: &mut [f32]) {
        assert_eq!(out.len(), self.dim(), "a row has the table's dimension");
        // Clusters of low numbers are larger, because u^1.5 falls there more often.
        let u = self.uniform(Purpose::Cluster, row);
        let cluster = ((u * u.sqrt() * f64::from(self.clusters)) as u32).min(self.clusters - 1);
        let noise = (0.5 + 0.6 * self.uniform(Purpose::Noise, row)).sqrt() as f32;
        for (d, out) in out.iter_mut().enumerate() {
            let centre = self.gaussian(Purpose::Centre, cluster, d as u32);
            let own = self.gaussian(Purpose::Own, row, d as u32);
            *out = self.scales[d] * (0.9 * centre + noise * own + 0.35 * self.means[d]);
        }
        let norm = score::norm(out);
        if norm > 0.0 {
            let mut factor = (norm_of_rank(row) / norm) as f32;
            if self.metric == Metric::Dot {
                factor *= near_exp(0.3 * self.gaussian(Purpose::Length, row, 0));
            }
            out.iter_mut().for_each(|x| *x *= factor);
        }
    }

    /// The bias of a row under [`Metric::Dot`]: frequent words have higher ones, as in language
    /// models.
    pub fn bias(&self, row: u32) -> f32 {
        2.0 * (norm_of_rank(row) - 5.0) as f32 + 0.5 * self.gaussian(Purpose::Bias, row, 0)
    }

    /// Rows from `first` on, as many as fit `out` `[rows, dim]`, on all cores.
    ///
    /// # Panics
    /// If `out` is no whole number of rows.
    pub fn fill(&self, first: u32, out: &mut [f32]) {
        assert!(out.len().is_multiple_of(self.dim()), "whole rows only");
        out.par_chunks_mut(self.dim())
            .enumerate()
            .for_each(|(i, out)| self.row(first + i as u32, out));
    }

    fn hash(&self, purpose: Purpose, a: u32, b: u32) -> u64 {
        let position = u64::from(a) << 32 | u64::from(b);
        split_mix(position ^ split_mix(self.seed.wrapping_add((purpose as u64) << 56)))
    }

    /// Uniform in [0, 1).
    fn uniform(&self, purpose: Purpose, row: u32) -> f64 {
        (self.hash(purpose, row, 0) >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Mean 0, variance 1: the sum of four uniform numbers of 16 bits (Irwin–Hall).
    fn gaussian(&self, purpose: Purpose, a: u32, b: u32) -> f32 {
        let h = self.hash(purpose, a, b);
        let sum = (h & 0xffff) + (h >> 16 & 0xffff) + (h >> 32 & 0xffff) + (h >> 48);
        // The sum's mean is 2 · 65535, its variance 4 · (2³² − 1) / 12.
        (sum as i32 - 131_070) as f32 / 37_837.227
    }
}

/// The next number of SplitMix64 after this state, which is also a hash of it.
pub fn split_mix(state: u64) -> u64 {
    let z = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// (1 + x/8)^8, near exp(x), from exact products only.
fn near_exp(x: f32) -> f32 {
    let near_one = 1.0 + x / 8.0;
    let squared = near_one * near_one;
    (squared * squared) * (squared * squared)
}

/// From 7 for the most frequent word down by 0.2 for each doubling of the rank.
fn norm_of_rank(row: u32) -> f64 {
    let rank = u64::from(row) + 1;
    let doublings = rank.ilog2();
    // Linear between powers of two: no logarithm, which rounds differently from library to library.
    let fraction = rank as f64 / (1u64 << doublings) as f64 - 1.0;
    7.0 - 0.2 * (f64::from(doublings) + fraction)
}

/// The word of a synthetic row: its number in syllables of six bits, at least two. Different rows
/// have different words.
pub fn word(row: u32) -> String {
    const CONSONANTS: &[u8; 16] = b"bdfghjklmnprstvz";
    const VOWELS: &[u8; 4] = b"aiou";
    let mut syllables = Vec::new();
    let mut rest = row;
    while rest > 0 || syllables.len() < 2 {
        syllables.push(rest % 64);
        rest /= 64;
    }
    let letters = |syllable: u32| {
        let (consonant, vowel) = (syllable / 4, syllable % 4);
        [CONSONANTS[consonant as usize] as char, VOWELS[vowel as usize] as char]
    };
    syllables.into_iter().rev().flat_map(letters).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(rows: u32, dim: usize, seed: u64) -> Vec<f32> {
        let mut out = vec![0.0; rows as usize * dim];
        Synth::new(rows, dim, seed).fill(0, &mut out);
        out
    }

    #[test]
    fn the_same_arguments_give_the_same_bytes_for_ever() {
        let bytes = |rows, dim, seed| blake3::hash(bytemuck::cast_slice(&table(rows, dim, seed)));
        assert_eq!(bytes(1000, 50, 7), bytes(1000, 50, 7));
        assert_ne!(bytes(1000, 50, 7), bytes(1000, 50, 8));
        // Change this only with a reason in CHANGELOG.md, because published figures refer to these
        // rows.
        assert_eq!(bytes(1000, 50, 7).to_hex()[..16], *"925b1fe79fc53547",);
    }

    #[test]
    fn under_dot_directions_stay_and_norms_and_biases_vary() {
        let (cosine, dot) = (Synth::new(2000, 30, 7), Synth::new(2000, 30, 7).under(Metric::Dot));
        let (mut a, mut b) = (vec![0.0; 30], vec![0.0; 30]);
        let mut factors = Vec::new();
        for row in 0..2000 {
            cosine.row(row, &mut a);
            dot.row(row, &mut b);
            let (norm_a, norm_b) = (score::norm(&a), score::norm(&b));
            assert!(score::cosine(score::dot(&a, &b), norm_a, norm_b) > 1.0 - 1e-6);
            factors.push(norm_b / norm_a);
        }
        factors.sort_by(f64::total_cmp);
        assert!(factors[0] < 0.6 && factors[1999] > 1.7, "{} {}", factors[0], factors[1999]);
        let biases: Vec<f32> = (0..2000).map(|row| dot.bias(row)).collect();
        assert!(biases.iter().any(|&bias| bias > 3.0) && biases.iter().any(|&bias| bias < 0.0));
        // As for the rows above.
        let bytes = blake3::hash(bytemuck::cast_slice(&biases));
        assert_eq!(bytes.to_hex()[..16], *"3671ac9e92f2e064");
        let mut rows = vec![0.0; 2000 * 30];
        dot.fill(0, &mut rows);
        assert_eq!(blake3::hash(bytemuck::cast_slice(&rows)).to_hex()[..16], *"3dc4a82624316cc2");
    }

    #[test]
    fn a_row_is_the_same_whoever_asks_for_it() {
        let all = table(300, 33, 1);
        let synth = Synth::new(300, 33, 1);
        let mut some = vec![0.0; 10 * 33];
        rayon::ThreadPoolBuilder::new()
            .num_threads(1)
            .build()
            .unwrap()
            .install(|| synth.fill(200, &mut some));
        assert_eq!(all[200 * 33..210 * 33], some);
    }

    #[test]
    fn every_dimension_gives_finite_rows_with_a_direction() {
        for dim in (1..=40).chain([300, 4096]) {
            let rows = table(50, dim, 3);
            for row in rows.chunks(dim) {
                assert!(row.iter().all(|x| x.is_finite()) && score::norm(row) > 0.0, "dim {dim}");
            }
        }
    }

    #[test]
    fn norms_fall_with_rank() {
        assert_eq!(norm_of_rank(0), 7.0);
        assert!((1..3_000_000).step_by(997).all(|r| norm_of_rank(r) < norm_of_rank(r - 1)));
        assert!(norm_of_rank(u32::MAX) > 0.0);
    }

    #[test]
    fn words_are_distinct_and_can_be_said() {
        assert_eq!(word(0), "baba");
        assert_eq!(word(63), "bazu");
        let mut words: Vec<String> = (0..300_000).map(word).collect();
        words.sort_unstable();
        words.dedup();
        assert_eq!(words.len(), 300_000);
        assert_eq!(word(u32::MAX).len(), 12);
    }
}
