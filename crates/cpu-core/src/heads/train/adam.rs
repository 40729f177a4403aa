//! Adam: steps whose size follows the mean and the variance of each weight's gradients.

use rayon::ThreadPool;
use rayon::prelude::*;

/// The decay of means and of variances, and what keeps a division from failing.
const MEAN_DECAY: f32 = 0.9;
const VARIANCE_DECAY: f32 = 0.999;
const EPSILON: f32 = 1e-8;

/// A word that a step did not meet, and one that no step meets, whose vector stays as it is.
pub(super) const NOT_MET: u32 = u32::MAX;
pub(super) const NEVER_MET: u32 = u32::MAX - 1;

pub(super) struct Adam {
    weights: Moments,
    /// Of words' vectors. Only those that a batch has are changed.
    rows: Moments,
    learning_rate: f32,
    weight_decay: f32,
    step: i32,
    /// The step size, with the corrections for the first steps.
    size: f32,
    variance_correction: f32,
}

struct Moments {
    mean: Vec<f32>,
    variance: Vec<f32>,
}

impl Moments {
    fn new(count: usize) -> Self {
        Self { mean: vec![0.0; count], variance: vec![0.0; count] }
    }
}

impl Adam {
    pub(super) fn new(weights: usize, rows: usize, learning_rate: f32, weight_decay: f32) -> Self {
        let (weights, rows) = (Moments::new(weights), Moments::new(rows));
        let (step, size, variance_correction) = (0, 0.0, 1.0);
        Self { weights, rows, learning_rate, weight_decay, step, size, variance_correction }
    }

    /// Begins a step.
    pub(super) fn begin(&mut self) {
        self.step += 1;
        self.size = self.learning_rate / (1.0 - MEAN_DECAY.powi(self.step));
        self.variance_correction = (1.0 - VARIANCE_DECAY.powi(self.step)).sqrt();
    }

    /// What a change needs to know: decay, step size and the variances' correction.
    fn constants(&self) -> (f32, f32, f32) {
        (self.weight_decay, self.size, self.variance_correction)
    }

    /// Changes the weights whose moments begin at `at`.
    pub(super) fn update(&mut self, at: usize, weights: &mut [f32], gradient: &[f32]) {
        let constants = self.constants();
        let Moments { mean, variance } = &mut self.weights;
        let own = at..at + weights.len();
        change(weights, gradient, &mut mean[own.clone()], &mut variance[own], constants);
    }

    /// The same for the vectors of words, `[words, dim]`: of all, because means go on to move those
    /// that this step did not meet. `met` has the index of a word's gradient among `gradients`, or
    /// [`NOT_MET`], or [`NEVER_MET`].
    pub(super) fn update_rows(
        &mut self,
        rows: &mut [f32],
        dim: usize,
        met: &[u32],
        gradients: &[f32],
        pool: &ThreadPool,
    ) {
        let constants = self.constants();
        let none = vec![0.0; dim];
        let Moments { mean, variance } = &mut self.rows;
        pool.install(|| {
            rows.par_chunks_mut(dim)
                .zip(mean.par_chunks_mut(dim))
                .zip(variance.par_chunks_mut(dim))
                .zip(met)
                .with_min_len(256)
                .for_each(|(((row, mean), variance), &met)| {
                    let gradient = match met {
                        NEVER_MET => return,
                        NOT_MET => &none,
                        met => &gradients[met as usize * dim..][..dim],
                    };
                    change(row, gradient, mean, variance, constants);
                });
        });
    }
}

fn change(
    weights: &mut [f32],
    gradient: &[f32],
    mean: &mut [f32],
    variance: &mut [f32],
    (decay, size, correction): (f32, f32, f32),
) {
    for (((weight, gradient), mean), variance) in
        weights.iter_mut().zip(gradient).zip(mean).zip(variance)
    {
        let gradient = gradient + decay * *weight;
        *mean = MEAN_DECAY * *mean + (1.0 - MEAN_DECAY) * gradient;
        *variance = VARIANCE_DECAY * *variance + (1.0 - VARIANCE_DECAY) * gradient * gradient;
        *weight -= size * *mean / (variance.sqrt() / correction + EPSILON);
    }
}
