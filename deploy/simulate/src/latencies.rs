//! A histogram of latencies: 128 buckets for each doubling, so that a percentile is off by less than 0.4 %.

/// Mantissa bits that choose a bucket.
const BITS: u32 = 7;
/// The smallest latency that is told apart, about 0.1 µs, as a power of two.
const LOWEST_EXPONENT: i32 = -23;
/// Doublings above it: up to about 9 hours.
const DOUBLINGS: usize = 38;

/// Latencies in seconds.
#[derive(Debug, Clone)]
pub struct Latencies {
    buckets: Vec<u64>,
    count: u64,
    sum: f64,
    highest: f64,
}

impl Default for Latencies {
    fn default() -> Self {
        Self { buckets: vec![0; DOUBLINGS << BITS], count: 0, sum: 0.0, highest: 0.0 }
    }
}

impl Latencies {
    pub fn add(&mut self, seconds: f64) {
        self.buckets[bucket(seconds)] += 1;
        self.count += 1;
        self.sum += seconds;
        self.highest = self.highest.max(seconds);
    }

    pub fn count(&self) -> u64 {
        self.count
    }

    pub fn mean(&self) -> f64 {
        self.sum / self.count as f64
    }

    pub fn highest(&self) -> f64 {
        self.highest
    }

    /// The latency that this share of requests stays below; NaN if there are none.
    pub fn quantile(&self, share: f64) -> f64 {
        let wanted = (share * self.count as f64).ceil().max(1.0) as u64;
        let mut below = 0;
        for (index, &number) in self.buckets.iter().enumerate() {
            below += number;
            if below >= wanted {
                return middle(index).min(self.highest);
            }
        }
        f64::NAN
    }

    /// The share of requests above this latency, to the precision of a bucket.
    pub fn share_above(&self, seconds: f64) -> f64 {
        let above: u64 = self.buckets[bucket(seconds) + 1..].iter().sum();
        above as f64 / self.count as f64
    }
}

/// Exponent and first bits of the mantissa, as they stand in a float64.
fn bucket(seconds: f64) -> usize {
    let lowest = ((1023 + LOWEST_EXPONENT) as u64) << BITS;
    let index = (seconds.to_bits() >> (52 - BITS)).saturating_sub(lowest);
    (index as usize).min((DOUBLINGS << BITS) - 1)
}

fn middle(index: usize) -> f64 {
    let lowest = ((1023 + LOWEST_EXPONENT) as u64) << BITS;
    let edge = |index: usize| f64::from_bits((lowest + index as u64) << (52 - BITS));
    (edge(index) + edge(index + 1)) / 2.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_those_of_the_sorted_list() {
        let mut latencies = Latencies::default();
        let mut all: Vec<f64> = (0..10_000u32).map(|i| 1e-5 * 1.0015f64.powi(i as i32)).collect();
        all.iter().for_each(|&seconds| latencies.add(seconds));
        all.sort_by(f64::total_cmp);
        for share in [0.001, 0.5, 0.99, 0.999, 1.0] {
            let exact = all[((share * 10_000.0) as usize).max(1) - 1];
            let off = latencies.quantile(share) / exact - 1.0;
            assert!(off.abs() < 0.004, "{share}: off by {off}");
        }
        assert!((latencies.share_above(all[7_500]) - 0.25).abs() < 0.003);
        assert!(Latencies::default().quantile(0.5).is_nan());
    }
}
