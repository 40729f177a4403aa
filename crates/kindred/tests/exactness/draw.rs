//! Where random numbers, filters and attributes come from.

use proptest::strategy::{BoxedStrategy, Strategy, ValueTree};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

use crate::naive::{self, Item, Source};
use crate::random::Random;

/// Distinct rows of attributes of a model.
const ITEMS: usize = 300;

/// All that is random follows from one number.
pub(crate) struct Draw {
    pub(crate) random: Random,
    runner: TestRunner,
    sources: BoxedStrategy<Source>,
}

impl Draw {
    pub(crate) fn new(seed: u64) -> Self {
        let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let bytes: Vec<u8> = (0..32).map(|_| random.below(256) as u8).collect();
        let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
        let runner = TestRunner::new_with_rng(Config::default(), rng);
        Self { random, runner, sources: naive::sources().boxed() }
    }

    /// A number in [-1, 1).
    pub(crate) fn real(&mut self) -> f32 {
        self.random.below(1 << 24) as f32 / (1 << 23) as f32 - 1.0
    }

    /// A filter.
    pub(crate) fn source(&mut self) -> Source {
        self.sources.new_tree(&mut self.runner).unwrap().current()
    }

    /// The attributes of so many rows. Unless `skew` is 1 or 2, nearly all rows have the same.
    pub(crate) fn items(&mut self, rows: usize, skew: usize) -> Vec<Item> {
        let pool = naive::items(ITEMS).new_tree(&mut self.runner).unwrap().current();
        let random = &mut self.random;
        let mut item = || {
            let item = &pool[random.below(ITEMS as u64) as usize];
            let others = if skew == 0 && !random.one_in(20) { &pool[0] } else { item };
            let serial = (!random.one_in(9)).then(|| random.below(3000) as i64);
            Item { serial, ..others.clone() }
        };
        (0..rows).map(|_| item()).collect()
    }
}
