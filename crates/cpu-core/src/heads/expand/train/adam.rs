//! AdamW: steps whose size follows the mean and the variance of each weight's gradients. Weights are drawn towards where they
//! started, not towards zero, because a start from the table's rows is what is known of words.

use rayon::ThreadPool;
use rayon::prelude::*;

/// The decay of means and of variances, and what keeps a division from failing.
const MEAN_DECAY: f32 = 0.9;
const VARIANCE_DECAY: f32 = 0.999;
const EPSILON: f32 = 1e-8;

/// The means and variances of some weights' gradients.
pub(super) struct Moments {
    mean: Vec<f32>,
    variance: Vec<f32>,
}

impl Moments {
    pub(super) fn new(count: usize) -> Self {
        Self { mean: vec![0.0; count], variance: vec![0.0; count] }
    }
}

/// What a change needs to know of its step.
#[derive(Debug, Clone, Copy)]
pub(super) struct Change {
    /// The step size, with the correction of means for the first steps.
    size: f32,
    variance_correction: f32,
    /// The part of the way back to the start.
    decay: f32,
}

impl Change {
    /// For a step, from 1.
    pub(super) fn new(step: usize, learning_rate: f32, weight_decay: f32) -> Self {
        let step = i32::try_from(step).unwrap_or(i32::MAX);
        Self {
            size: learning_rate / (1.0 - MEAN_DECAY.powi(step)),
            variance_correction: (1.0 - VARIANCE_DECAY.powi(step)).sqrt(),
            decay: learning_rate * weight_decay,
        }
    }

    /// Changes weights that started as `start`.
    pub(super) fn apply(
        self,
        weights: &mut [f32],
        moments: &mut Moments,
        gradient: &[f32],
        start: impl Fn(usize) -> f32,
    ) {
        self.change(weights, &mut moments.mean, &mut moments.variance, gradient, start);
    }

    /// The same for rows `[rows, dim]`, of which only those in the ascending list `touched` have a gradient. The others keep their
    /// values and moments, as in PyTorch's SparseAdam: moments do not decay in steps that do not touch a row.
    pub(super) fn apply_rows(
        self,
        rows: &mut [f32],
        moments: &mut Moments,
        (touched, gradients): (&[u32], &[f32]),
        start: &[f32],
        dim: usize,
        pool: &ThreadPool,
    ) {
        let mut indices = vec![0u32; rows.len() / dim];
        (1..).zip(touched).for_each(|(index, &row)| indices[row as usize] = index);
        let Moments { mean, variance } = moments;
        pool.install(|| {
            rows.par_chunks_mut(dim)
                .zip(mean.par_chunks_mut(dim))
                .zip(variance.par_chunks_mut(dim))
                .zip(start.par_chunks(dim))
                .zip(&indices)
                .with_min_len(256)
                .for_each(|((((row, mean), variance), start), &index)| {
                    if let Some(index) = index.checked_sub(1) {
                        let gradient = &gradients[index as usize * dim..][..dim];
                        self.change(row, mean, variance, gradient, |i| start[i]);
                    }
                });
        });
    }

    fn change(
        self,
        weights: &mut [f32],
        mean: &mut [f32],
        variance: &mut [f32],
        gradient: &[f32],
        start: impl Fn(usize) -> f32,
    ) {
        let all = weights.iter_mut().zip(gradient).zip(mean).zip(variance).enumerate();
        for (index, (((weight, gradient), mean), variance)) in all {
            *mean = MEAN_DECAY * *mean + (1.0 - MEAN_DECAY) * gradient;
            *variance = VARIANCE_DECAY * *variance + (1.0 - VARIANCE_DECAY) * gradient * gradient;
            let step = self.size * *mean / (variance.sqrt() / self.variance_correction + EPSILON);
            *weight -= self.decay * (*weight - start(index)) + step;
        }
    }
}
