//! Random numbers that are the same in every run.

use model_store::synth::split_mix;

/// A stream of random numbers.
pub(super) struct Numbers(u64);

impl Numbers {
    pub(super) fn new(seed: u64) -> Self {
        Self(split_mix(seed))
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(1);
        split_mix(self.0)
    }

    /// A number in [0, 1).
    pub(super) fn unit(&mut self) -> f32 {
        (self.next() >> 40) as f32 / (1u32 << 24) as f32
    }

    /// Numbers in [−bound, bound).
    pub(super) fn within(&mut self, bound: f32, count: usize) -> Vec<f32> {
        (0..count).map(|_| (2.0 * self.unit() - 1.0) * bound).collect()
    }

    /// Puts these in a random order (Fisher and Yates).
    pub(super) fn shuffle<T>(&mut self, all: &mut [T]) {
        for last in (1..all.len()).rev() {
            let other = (self.next() % (last as u64 + 1)) as usize;
            all.swap(last, other);
        }
    }
}
