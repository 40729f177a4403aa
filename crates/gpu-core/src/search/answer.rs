//! A batch's way to its answers: which pass takes which query, and what becomes of those that it could not
//! certify.

use std::time::{Duration, Instant};

use contract::{Hit, Query, Row, TopK};

use super::kernels::MAX_K;
use super::plan::Class;
use super::workspace::{MAX_BATCH, MAX_EXCLUDED};
use super::{CudaEngine, GraphKey};
use crate::GpuError;
use crate::driver::{Doing, start_upload};

/// What a query costs for which every float32 row is read, in plain queries of a full batch, if those are answered
/// by certified passes. A rough estimate.
const EXACT_COST: usize = 48;

impl CudaEngine {
    /// The class of the certified pass that takes this query, if one does.
    fn certified_class(&self, query: &Query) -> Option<Class> {
        let filter = query.filter();
        let all_rows = filter.row_limit(self.tables.rows) == self.tables.rows;
        if self.certifies() && all_rows {
            Class::of(query.k(), filter.excluded().len())
        } else {
            None
        }
    }

    /// Whether there are certified passes at all.
    fn certifies(&self) -> bool {
        self.tables.quantised.is_some() && self.tables.rows >= self.paths.certified_from_rows
    }

    /// What a query takes of a pass, in plain ones of a full batch.
    pub(super) fn cost(&self, query: &Query) -> usize {
        // Of what is not listed it is only found out that a full pass has to answer it.
        if query.k() == 0 || !is_listed(query) {
            return 1;
        }
        let uncertified = if self.certifies() { EXACT_COST } else { 1 };
        self.certified_class(query).map_or(uncertified, Class::cost)
    }

    /// Calls `meanwhile` in each pass, while the device is at work. `None` for a query that the device's lists have no
    /// room for: [`ranked_on_the_host`](Self::ranked_on_the_host) answers it, slowly.
    pub(super) fn answer(
        &mut self,
        batch: &[&Query],
        meanwhile: &mut dyn FnMut(),
    ) -> Result<Vec<Option<Vec<Hit>>>, GpuError> {
        let mut answers: Vec<Vec<Hit>> = vec![Vec::new(); batch.len()];
        let mut certified: [Vec<usize>; 3] = Default::default();
        let mut exact = Vec::new();
        for (place, query) in batch.iter().enumerate() {
            match self.certified_class(query) {
                _ if query.k() == 0 => {}
                Some(class) => certified[class as usize].push(place),
                None => exact.push(place),
            }
        }
        self.counters.exact += exact.len() as u64;
        for (class, places) in Class::ALL.into_iter().zip(certified) {
            for places in self.pieces(batch, &places, class.max_batch()) {
                let doubtful = self.certified(batch, &places, class, &mut answers, meanwhile)?;
                self.counters.fallbacks += doubtful.len() as u64;
                exact.extend(doubtful);
            }
        }
        let (listed, unlisted): (Vec<_>, Vec<_>) =
            exact.into_iter().partition(|&place| is_listed(batch[place]));
        for places in self.pieces(batch, &listed, 64) {
            self.exact(batch, &places, &mut answers, meanwhile)?;
        }
        let mut answers: Vec<Option<Vec<Hit>>> = answers.into_iter().map(Some).collect();
        for place in unlisted {
            answers[place] = None;
        }
        Ok(answers)
    }

    /// Cuts a batch into pieces that one pass takes: so many queries, so many excluded rows.
    fn pieces(&self, batch: &[&Query], places: &[usize], max: usize) -> Vec<Vec<usize>> {
        let mut pieces: Vec<Vec<usize>> = Vec::new();
        let mut excluded = usize::MAX;
        for &place in places {
            let more = batch[place].filter().excluded().len();
            match pieces.last_mut() {
                Some(piece) if piece.len() < max && excluded + more <= MAX_EXCLUDED => {
                    piece.push(place);
                    excluded += more;
                }
                _ => {
                    pieces.push(vec![place]);
                    excluded = more;
                }
            }
        }
        pieces
    }

    /// One certified pass; returns the places of the queries that have no certificate.
    fn certified(
        &mut self,
        batch: &[&Query],
        places: &[usize],
        class: Class,
        answers: &mut [Vec<Hit>],
        meanwhile: &mut dyn FnMut(),
    ) -> Result<Vec<usize>, GpuError> {
        let alone =
            places.len() == 1 && class == Class::Small && self.graphs.contains_key(&GraphKey::Int4);
        if alone {
            let doubtful = self.run(batch, places, GraphKey::Int4, answers, meanwhile)?;
            if doubtful.is_empty() {
                return Ok(doubtful);
            }
            self.counters.retried += 1;
        }
        let widths = self.kernels.int8.widths;
        let width =
            widths.iter().copied().find(|&width| width >= places.len()).unwrap_or(MAX_BATCH);
        let started = Instant::now();
        let doubtful = self.run(batch, places, GraphKey::Int8(width, class), answers, meanwhile)?;
        if class == Class::Small {
            self.pace.note(width, started.elapsed());
        }
        Ok(doubtful)
    }

    fn run(
        &mut self,
        batch: &[&Query],
        places: &[usize],
        key: GraphKey,
        answers: &mut [Vec<Hit>],
        meanwhile: &mut dyn FnMut(),
    ) -> Result<Vec<usize>, GpuError> {
        let (width, class) = key.width_and_class();
        self.begin()?;
        self.upload_queries(batch, places, width)?;
        self.graphs[&key].launch(&self.stream)?;
        self.end(meanwhile)?;
        let doubtful = self.collect(batch, places, class.stride(), answers);
        self.counters.certified += (places.len() - doubtful.len()) as u64;
        Ok(doubtful)
    }

    fn exact(
        &mut self,
        batch: &[&Query],
        places: &[usize],
        answers: &mut [Vec<Hit>],
        meanwhile: &mut dyn FnMut(),
    ) -> Result<(), GpuError> {
        let most = places.iter().map(|&place| batch[place].k()).max().unwrap_or(0);
        let class = Class::of(most, 0).unwrap_or(Class::Large);
        self.begin()?;
        self.upload_queries(batch, places, places.len())?;
        self.pass().exact(places.len(), class, self.paths.float32)?;
        self.end(meanwhile)?;
        self.collect(batch, places, class.stride(), answers);
        Ok(())
    }

    /// For more hits or excluded rows than the device's lists hold: the device scores, the host ranks.
    pub(super) fn ranked_on_the_host(&mut self, query: &Query) -> Result<Vec<Hit>, GpuError> {
        self.begin()?;
        self.upload_queries(&[query], &[0], 1)?;
        let headers = &self.workspace.headers;
        start_upload(&headers.host, &headers.device, 1, &self.stream)?;
        let limit = query.filter().row_limit(self.tables.rows);
        let step = self.workspace.scratch.len();
        let mut best = TopK::new(query.k());
        for first in (0..limit).step_by(step) {
            let count = step.min(limit - first);
            self.pass().score_rows(first, count)?;
            self.stream.synchronize().doing("scoring rows")?;
            for (i, bits) in self.workspace.scratch.read()?[..count].iter().enumerate() {
                let hit = Hit { row: Row((first + i) as u32), score: f64::from_bits(*bits) };
                // Rows of norm zero come as -2.
                if hit.score >= -1.0
                    && best.admits(hit)
                    && query.filter().admits(hit.row, hit.score)
                {
                    best.push(hit);
                }
            }
        }
        self.end(&mut || ())?;
        Ok(best.into_sorted())
    }

    fn begin(&mut self) -> Result<(), GpuError> {
        self.counters.passes += 1;
        if let Some([start, _]) = &self.timing {
            start.record(&self.stream).doing("recording an event")?;
        }
        Ok(())
    }

    /// The one wait of a pass.
    fn end(&mut self, meanwhile: &mut dyn FnMut()) -> Result<(), GpuError> {
        if let Some([_, end]) = &self.timing {
            end.record(&self.stream).doing("recording an event")?;
        }
        meanwhile();
        self.stream.synchronize().doing("searching")?;
        if let Some([start, end]) = &self.timing {
            let milliseconds = end.elapsed_time_f32(start).doing("reading an event")?;
            self.device_time += Duration::from_secs_f64(f64::from(milliseconds) / 1e3);
        }
        Ok(())
    }
}

/// Whether the device's lists take what a query asks and excludes.
fn is_listed(query: &Query) -> bool {
    query.k() <= MAX_K && query.filter().excluded().len() <= MAX_EXCLUDED
}
