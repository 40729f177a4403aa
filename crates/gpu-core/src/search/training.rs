//! An expander's terms on a device, for training: which terms texts touch, all gradients, and steps that change the terms.

#![allow(unsafe_code)]

use std::sync::Arc;
use std::time::Duration;

use contract::certificate::Lift;
use contract::expansion::LEAST;
use contract::{HasTable, Metric, Table, score};
use cpu_core::heads::expand::gradients::{Entry, Gradients, Touched, Way};
use rayon::prelude::*;

use super::CudaEngine;
use super::expand::{MAX_TEXTS, TokenVectors, Tokens, touched};
use super::paths::{Counters, Paths};
use crate::driver::Gpu;
use crate::heads::Kept;
use crate::heads::expand::{GradientSums, Vectors};
use crate::resident::RowChanges;
use crate::{GpuError, Options, Precision};

/// What rows may grow by before all of them are rounded again.
const ROOM: f64 = 1.25;

/// The terms of an expander on a GPU: a table under the metric `dot` with biases, whose rows change.
pub struct DeviceTerms {
    // In the order in which they must be dropped.
    gradients: GradientSums,
    changes: RowChanges,
    engine: CudaEngine,
    /// Where each text that was uploaded last ends, in tokens.
    ends: Vec<usize>,
    query_norm: f64,
    paths: Paths,
}

/// A table that is read from the device.
#[derive(Debug)]
struct Owned {
    components: Vec<f32>,
    norms: Vec<f64>,
    biases: Vec<f32>,
    dim: usize,
}

impl HasTable for Owned {
    fn table(&self) -> Table<'_> {
        Table::new(&self.components, &self.norms, self.dim).under_dot(Some(&self.biases))
    }
}

impl DeviceTerms {
    /// Uploads the terms, for tokens whose norm is about `query_norm`.
    ///
    /// # Errors
    /// If there is no such GPU, or the table does not fit.
    ///
    /// # Panics
    /// If the table has no biases.
    pub fn new(
        terms: Arc<dyn HasTable>,
        query_norm: f64,
        options: Options<'_>,
    ) -> Result<Self, GpuError> {
        let gpu = Gpu::open(options.ordinal)?;
        // Small tables are searched in the same way.
        let paths = Paths { certified_from_rows: 0, int4: false, ..Paths::default() };
        let engine = engine(gpu, terms, query_norm, paths)?;
        let changes = RowChanges::new(engine.resident.lifted_dim())?;
        Ok(Self {
            gradients: GradientSums::new()?,
            changes,
            engine,
            ends: Vec::new(),
            query_norm,
            paths,
        })
    }

    /// As [`new`](Self::new), from terms' vectors `[terms, dim]` and biases `[terms]`.
    ///
    /// # Errors
    /// If there is no such GPU, or the table does not fit.
    pub fn of_vectors(
        vectors: &[f32],
        biases: &[f32],
        query_norm: f64,
        options: Options<'_>,
    ) -> Result<Self, GpuError> {
        let terms = Owned::new(vectors.to_vec(), biases.to_vec());
        Self::new(Arc::new(terms), query_norm, options)
    }

    /// The terms that each text touches, ordered by text, then by term: those above zero, with the first position of their maximum.
    /// The texts are as for [`upload`](Self::upload).
    ///
    /// # Errors
    /// If the device fails, or a text touches more terms than the device merges.
    ///
    /// # Panics
    /// As for [`upload`](Self::upload).
    pub fn touched(&mut self, vectors: &[f32], ends: &[usize]) -> Result<Vec<Touched>, GpuError> {
        self.upload(vectors, ends)?;
        self.touched_by_uploaded()
    }

    /// The same for the texts that were uploaded last.
    ///
    /// # Errors
    /// As for [`touched`](Self::touched).
    pub fn touched_by_uploaded(&mut self) -> Result<Vec<Touched>, GpuError> {
        let leasts = vec![LEAST; self.ends.len()];
        let tokens = Tokens { vectors: TokenVectors::Uploaded, ends: &self.ends, leasts: &leasts };
        let texts = self.engine.terms_of(tokens)?;
        let (touched, over) = touched(texts, &self.ends);
        over.first().map_or(Ok(touched), |&text| Err(GpuError::TooManyTerms { text }))
    }

    /// Uploads texts. `vectors` are those of their tokens, `[tokens, dim]`, one text after the other; each text `ends` at a token.
    ///
    /// # Errors
    /// If the device fails, or lacks the memory.
    ///
    /// # Panics
    /// If the last text does not end with the last token, or there are more than 1,024 texts.
    pub fn upload(&mut self, vectors: &[f32], ends: &[usize]) -> Result<(), GpuError> {
        let tokens = vectors.len() / self.engine.resident.dim;
        assert_eq!(ends.last().copied().unwrap_or(0), tokens, "texts end with the last token");
        assert!(ends.len() <= MAX_TEXTS, "{} texts", ends.len());
        self.ends = ends.to_vec();
        self.engine.upload_tokens(vectors)
    }

    /// Computes all gradients of the texts that were uploaded last, in one way of summing; `None`: in the faster one. `entries` are
    /// ordered by text, and those of a text by term.
    ///
    /// # Errors
    /// If the device fails, or lacks the memory.
    ///
    /// # Panics
    /// If an entry names a text, a position or a term that does not exist.
    pub fn gradients(&mut self, entries: &[Entry], way: Option<Way>) -> Result<(), GpuError> {
        let (resident, ends) = (&self.engine.resident, &self.ends);
        for entry in entries {
            let text = entry.text as usize;
            let start = text.checked_sub(1).map_or(0, |before| ends[before]);
            assert!(start + (entry.position as usize) < ends[text], "{entry:?}");
            assert!((entry.term as usize) < resident.rows, "{entry:?}");
        }
        let vectors = Vectors {
            tokens: self.engine.token_vectors(),
            terms: resident.view().components,
            rows: resident.rows,
            ends,
            dim: resident.dim,
        };
        // SAFETY: the tokens are those of the last pass, and the terms the table; this has both by exclusive reference.
        unsafe { self.gradients.compute(vectors, entries, way, &self.engine.stream) }
    }

    /// How long the device took for the last gradients, once it had the list of their entries.
    pub fn gradients_time(&self) -> Duration {
        self.gradients.device_time()
    }

    /// Reads the gradients that were computed last: those of terms, for the touched ones.
    ///
    /// # Errors
    /// If the device fails.
    pub fn read_gradients(&self) -> Result<Gradients, GpuError> {
        self.gradients.read()
    }

    /// Takes a step against the last gradients: `w -= rate * dW` and `b -= rate * db`, of the touched terms. Only these are rounded
    /// again, unless one has grown too much.
    ///
    /// # Errors
    /// If the device fails.
    pub fn step(&mut self, rate: f32) -> Result<(), GpuError> {
        let (rows, of_rows, of_biases) = self.gradients.of_terms();
        let (resident, stream) = (&self.engine.resident, &self.engine.stream);
        // SAFETY: the engine's tables are its own, and it has no pass under way; the gradients are those of these rows.
        let fit = unsafe { self.changes.step(resident, rows, (of_rows, of_biases), rate, stream)? };
        self.made_again_unless(fit)
    }

    /// Gives terms new biases, and the first of them new vectors `[some, dim]`. Only these are rounded again, unless one has grown too
    /// much.
    ///
    /// # Errors
    /// If the device fails.
    ///
    /// # Panics
    /// If there is not one bias for each term, or there are more vectors, or a term is named twice or does not exist.
    pub fn replace(
        &mut self,
        terms: &[u32],
        biases: &[f32],
        vectors: &[f32],
    ) -> Result<(), GpuError> {
        let (resident, stream) = (&self.engine.resident, &self.engine.stream);
        let mut is_named = vec![false; resident.rows];
        let is_new = |&term: &u32| !std::mem::replace(&mut is_named[term as usize], true);
        assert!(terms.iter().all(is_new), "distinct terms");
        // SAFETY: the engine's tables are its own, and it has no pass under way; the terms are distinct rows.
        let fit = unsafe { self.changes.replace(resident, terms, (vectors, biases), stream)? };
        self.made_again_unless(fit)
    }

    /// Rounds all rows again, unless they are as long as they may be.
    fn made_again_unless(&mut self, fit: bool) -> Result<(), GpuError> {
        if !fit {
            let terms = Arc::new(self.owned()?);
            let gpu = Gpu::open(Some(self.engine.resident.gpu.ordinal))?;
            let mut engine = engine(gpu, terms, self.query_norm, self.paths)?;
            // With the texts that were uploaded.
            engine.token_passes = self.engine.token_passes.take();
            self.engine = engine;
        }
        Ok(())
    }

    /// Reads the terms' vectors `[terms, dim]` and biases.
    ///
    /// # Errors
    /// If the device fails.
    pub fn read(&self) -> Result<(Vec<f32>, Vec<f32>), GpuError> {
        let Owned { components, biases, .. } = self.owned()?;
        Ok((components, biases))
    }

    /// The counters of the passes so far.
    pub fn counters(&self) -> Counters {
        self.engine.counters()
    }

    fn owned(&self) -> Result<Owned, GpuError> {
        let (components, biases) = self.engine.resident.read()?;
        Ok(Owned::new(components, biases.unwrap_or_default()))
    }
}

impl Owned {
    fn new(components: Vec<f32>, biases: Vec<f32>) -> Self {
        let dim = components.len() / biases.len();
        let norms = components.par_chunks_exact(dim).map(score::norm).collect();
        Self { components, norms, biases, dim }
    }
}

fn engine(
    gpu: Gpu,
    terms: Arc<dyn HasTable>,
    query_norm: f64,
    paths: Paths,
) -> Result<CudaEngine, GpuError> {
    let table = terms.table();
    assert!(table.metric() == Metric::Dot && table.biases().is_some(), "terms have biases");
    let lift = Lift::for_queries(&table, Some(query_norm)).with_room(ROOM);
    let kept = Kept { precision: Precision::Float32, memory: None, portable: paths.portable };
    CudaEngine::on(gpu, terms.clone(), lift, None, paths, kept, None)
}
