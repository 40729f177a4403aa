//! Decides how many of the waiting queries the next pass takes.

use std::time::Duration;

/// The recent duration of a pass of each width.
#[derive(Debug)]
pub(super) struct Pace(Vec<(usize, Option<Duration>)>);

impl Pace {
    /// For passes of these widths, ascending. No durations are known yet.
    pub(super) fn new(widths: &[usize]) -> Self {
        Self(widths.iter().map(|&width| (width, None)).collect())
    }

    /// Notes that a pass of this width took this long.
    pub(super) fn note(&mut self, width: usize, took: Duration) {
        for (known, time) in &mut self.0 {
            *time = match *time {
                None => (*known == width).then_some(took),
                // A pass that the system delayed must not outweigh many others.
                Some(before) if *known == width => {
                    Some(before - before / 8 + took.min(2 * before) / 8)
                }
                // A width that was slow once is tried again after some hundred passes.
                Some(before) => Some(before - before / 1024),
            };
        }
    }

    /// How many of `waiting` queries the next pass should take. A pass takes as long as a batch of
    /// the next larger width, so one query beyond a width can cost as much as a hundred. Such
    /// queries wait for the next pass if that raises throughput by more than a tenth.
    pub(super) fn best(&self, waiting: usize) -> usize {
        let rate = |queries: usize, time: Duration| queries as f64 / time.as_secs_f64();
        let Some(&(_, Some(all))) = self.0.iter().find(|(width, _)| *width >= waiting) else {
            return waiting;
        };
        let narrower = self.0.iter().filter(|(width, _)| *width < waiting);
        narrower
            .filter_map(|&(width, time)| Some((width, rate(width, time?))))
            .filter(|&(_, narrow)| narrow > 1.1 * rate(waiting, all))
            .max_by(|a, b| a.1.total_cmp(&b.1))
            .map_or(waiting, |(width, _)| width)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured() -> Pace {
        let mut pace = Pace::new(&[64, 128, 256, 512]);
        for (width, microseconds) in [(64, 260), (128, 290), (256, 460), (512, 770)] {
            pace.note(width, Duration::from_micros(microseconds));
        }
        pace
    }

    #[test]
    fn a_few_more_than_a_width_wait() {
        let pace = measured();
        let cases = [(0, 0), (1, 1), (64, 64), (100, 100), (128, 128), (129, 128), (140, 128)];
        for (waiting, best) in cases.into_iter().chain([(220, 220), (257, 256), (400, 400)]) {
            assert_eq!(pace.best(waiting), best, "{waiting}");
        }
    }

    #[test]
    fn all_are_taken_while_nothing_is_known() {
        let mut pace = Pace::new(&[64, 128]);
        assert_eq!(pace.best(100), 100);
        pace.note(64, Duration::from_micros(200));
        assert_eq!(pace.best(100), 100);
        assert_eq!(pace.best(5000), 5000);
        pace.note(128, Duration::from_micros(1000));
        assert_eq!(pace.best(100), 64);
    }

    #[test]
    fn one_pass_that_was_held_up_changes_little() {
        let mut pace = measured();
        pace.note(128, Duration::from_secs(1));
        assert_eq!(pace.best(128), 128);
        pace.note(77, Duration::from_secs(1));
    }

    #[test]
    fn a_width_that_was_slow_once_is_tried_again() {
        let mut pace = measured();
        for _ in 0..20 {
            pace.note(256, Duration::from_micros(4000));
        }
        assert_eq!(pace.best(250), 128);
        let tried = (0..50_000).position(|_| {
            pace.note(128, Duration::from_micros(290));
            pace.best(250) == 250
        });
        assert!(tried.is_some_and(|passes| passes > 300), "{tried:?}");
    }
}
