//! Numbers that look random and are the same in every run.

/// A stream of numbers.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    /// A number from 0, below the bound.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0 += 1;
        kindred::synth::split_mix(self.0) % bound
    }

    /// True once in so many times.
    pub(crate) fn one_in(&mut self, of: u64) -> bool {
        self.below(of) == 0
    }

    /// One of these.
    pub(crate) fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u64) as usize]
    }
}
