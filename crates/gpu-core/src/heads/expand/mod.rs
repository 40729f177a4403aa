//! Gradients of an expander on a device: as `cpu_core::heads::expand::gradients`, whose page has the formulas and the order of
//! summation, with the same bits.

#![allow(unsafe_code)]

pub(crate) mod abi;

use std::time::Duration;

use cpu_core::heads::expand::gradients::{Entry, Gradients, TermGradients, Way};
use cust::event::{Event, EventFlags};
use cust::stream::Stream;

use crate::GpuError;
use crate::abi::{DevicePointer, DevicePointerMut};
use crate::driver::{Array, Doing, Kernel, Modules, Room, Shape, start_clearing};
pub(crate) use abi::SumRowsParams;
use abi::{SUMMED_TOGETHER, entries};

/// Counters for each entry up to which entries are grouped by counting.
const MOST_COUNTERS: usize = 8;

/// Lanes of a warp.
const WARP: usize = 32;

/// Components of a group that a warp sums.
const fn components_of_warp(way: Way) -> usize {
    match way {
        Way::ByTerm => SUMMED_TOGETHER * WARP,
        Way::ByComponent => WARP,
    }
}

/// The kernels, and the gradients that were computed last.
pub(crate) struct GradientSums {
    // In the order in which they must be dropped: buffers, then kernels.
    terms: Groups,
    tokens: Groups,
    /// `[touched terms, dim]`.
    of_terms: Array<f32>,
    /// `[touched terms]`.
    of_biases: Array<f32>,
    /// `[tokens, dim]`.
    of_tokens: Array<f32>,
    /// The touched terms, ascending.
    touched: Vec<u32>,
    /// Before and after the sums, and how long they took.
    around: [Event; 2],
    device_time: Duration,
    /// Components of all tokens.
    token_components: usize,
    dim: usize,
    row_sums: RowSums,
}

/// The kernels that sum rows.
pub(crate) struct RowSums {
    by_group: Kernel<SumRowsParams>,
    by_component: Kernel<SumRowsParams>,
    _modules: Modules,
}

impl RowSums {
    /// # Errors
    /// If the device can't run the kernels.
    pub(crate) fn new() -> Result<Self, GpuError> {
        use entries::gradients;
        let mut modules = Modules::default();
        Ok(Self {
            by_group: modules.kernel(gradients::sum_by_group)?,
            by_component: modules.kernel(gradients::sum_by_component)?,
            _modules: modules,
        })
    }

    /// Starts summing in one way.
    ///
    /// # Safety
    /// The parameters' arrays have what they say.
    ///
    /// # Errors
    /// If the driver refuses.
    pub(crate) unsafe fn start(
        &self,
        way: Way,
        params: &SumRowsParams,
        stream: &Stream,
    ) -> Result<(), GpuError> {
        let kernel = match way {
            Way::ByTerm => &self.by_group,
            Way::ByComponent => &self.by_component,
        };
        let groups = (params.groups as usize).div_ceil(kernel.threads() / WARP);
        let shape = Shape::grid(groups, (params.dim as usize).div_ceil(components_of_warp(way)));
        // SAFETY: the caller's promise; a warp for each group and part of its components.
        unsafe { kernel.launch(stream, shape, params) }
    }
}

/// Entries in groups.
struct Groups {
    indices: Room<u32>,
    weights: Room<f32>,
    begins: Room<u32>,
    targets: Room<u32>,
}

/// Vectors on the device.
#[derive(Clone, Copy)]
pub(crate) struct Vectors<'a> {
    /// `[tokens, dim]`.
    pub(crate) tokens: DevicePointer<f32>,
    /// `[rows, dim]`.
    pub(crate) terms: DevicePointer<f32>,
    pub(crate) rows: usize,
    /// `[texts]`: where each text ends, in tokens.
    pub(crate) ends: &'a [usize],
    pub(crate) dim: usize,
}

impl Groups {
    fn new() -> Result<Self, GpuError> {
        Ok(Self {
            indices: Room::new()?,
            weights: Room::new()?,
            begins: Room::new()?,
            targets: Room::new()?,
        })
    }

    /// Starts uploading entries in groups. Returns the groups.
    ///
    /// # Safety
    /// As for [`Room::upload`].
    unsafe fn upload(&mut self, of: Grouped, stream: &Stream) -> Result<Vec<u32>, GpuError> {
        // SAFETY: the caller's promise.
        unsafe {
            self.indices.upload(&of.indices, stream)?;
            self.weights.upload(&of.weights, stream)?;
            self.begins.upload(&of.begins, stream)?;
            self.targets.upload(&of.groups, stream)?;
        }
        Ok(of.groups)
    }
}

impl GradientSums {
    /// # Errors
    /// If the device can't run the kernels.
    pub(crate) fn new() -> Result<Self, GpuError> {
        Ok(Self {
            terms: Groups::new()?,
            tokens: Groups::new()?,
            of_terms: Array::zeroed(0)?,
            of_biases: Array::zeroed(0)?,
            of_tokens: Array::zeroed(0)?,
            touched: Vec::new(),
            around: [event()?, event()?],
            device_time: Duration::ZERO,
            token_components: 0,
            dim: 0,
            row_sums: RowSums::new()?,
        })
    }

    /// The touched terms, ascending, and on the device the gradients of their vectors and biases.
    pub(crate) fn of_terms(&self) -> (&[u32], DevicePointer<f32>, DevicePointer<f32>) {
        (&self.touched, self.of_terms.pointer(), self.of_biases.pointer())
    }

    /// Computes all gradients in one way, and waits for them. `None`: by term, which was faster at every shape (docs/expand.md).
    /// `entries` are ordered by text, and those of a text by term; they name texts, positions and terms that exist.
    ///
    /// # Safety
    /// The vectors are such as they say, and nothing changes them meanwhile.
    ///
    /// # Errors
    /// If the device fails, or lacks the memory.
    pub(crate) unsafe fn compute(
        &mut self,
        of: Vectors<'_>,
        entries: &[Entry],
        way: Option<Way>,
        stream: &Stream,
    ) -> Result<(), GpuError> {
        let way = way.unwrap_or(Way::ByTerm);
        let Vectors { tokens, terms, ends, dim, .. } = of;
        let token_of = |entry: &Entry| {
            let start = (entry.text as usize).checked_sub(1).map_or(0, |before| ends[before]);
            (start + entry.position as usize) as u32
        };
        let by_term = Grouped::new(entries, of.rows, |entry| entry.term, token_of);
        let tokens_end = ends.last().copied().unwrap_or(0);
        let by_token = Grouped::new(entries, tokens_end, token_of, |entry| entry.term);
        let all = tokens_end * dim;
        self.dim = dim;
        self.token_components = all;
        // SAFETY: no kernel uses the buffers, because this function waits for its own.
        unsafe {
            self.touched = self.terms.upload(by_term, stream)?;
            let touched_tokens = self.tokens.upload(by_token, stream)?.len();
            grow(&mut self.of_terms, self.touched.len() * dim)?;
            grow(&mut self.of_biases, self.touched.len())?;
            grow(&mut self.of_tokens, all)?;
            self.around[0].record(stream).doing("recording an event")?;
            start_clearing(&self.of_tokens, all, stream)?;
            let (to, totals) = (self.of_terms.pointer_mut(), self.of_biases.pointer_mut());
            let params = params_of(
                &self.terms,
                (tokens, DevicePointer::NULL),
                (to, totals),
                dim,
                self.touched.len(),
            );
            self.row_sums.start(way, &params, stream)?;
            let targets = self.tokens.targets.pointer();
            let to = (self.of_tokens.pointer_mut(), DevicePointerMut::NULL);
            let params = params_of(&self.tokens, (terms, targets), to, dim, touched_tokens);
            self.row_sums.start(way, &params, stream)?;
        }
        self.around[1].record(stream).doing("recording an event")?;
        stream.synchronize().doing("computing gradients")?;
        let took = self.around[1].elapsed_time_f32(&self.around[0]).doing("reading an event")?;
        self.device_time = Duration::from_secs_f64(f64::from(took) / 1e3);
        Ok(())
    }

    /// How long the device took for the gradients that were computed last, once it had all of their entries.
    pub(crate) fn device_time(&self) -> Duration {
        self.device_time
    }

    /// Reads the gradients that were computed last.
    ///
    /// # Errors
    /// If the device fails.
    pub(crate) fn read(&self) -> Result<Gradients, GpuError> {
        let touched = self.touched.len();
        let terms = TermGradients {
            terms: Some(self.touched.clone()),
            vectors: read_first(&self.of_terms, touched * self.dim)?,
            biases: read_first(&self.of_biases, touched)?,
        };
        Ok(Gradients { terms, ..self.read_of_tokens()? })
    }

    /// Reads those of tokens alone; those of terms are empty.
    ///
    /// # Errors
    /// If the device fails.
    pub(crate) fn read_of_tokens(&self) -> Result<Gradients, GpuError> {
        let none =
            TermGradients { terms: Some(Vec::new()), vectors: Vec::new(), biases: Vec::new() };
        Ok(Gradients { terms: none, tokens: read_first(&self.of_tokens, self.token_components)? })
    }
}

/// Entries in groups, and those of a group in their order.
#[derive(Debug, Default)]
struct Grouped {
    /// `[entries]`.
    indices: Vec<u32>,
    weights: Vec<f32>,
    /// `[groups + 1]`.
    begins: Vec<u32>,
    /// `[groups]`, ascending.
    groups: Vec<u32>,
}

impl Grouped {
    /// Groups entries. Groups are below `end`.
    fn new(
        entries: &[Entry],
        end: usize,
        group: impl Fn(&Entry) -> u32,
        index: impl Fn(&Entry) -> u32,
    ) -> Self {
        if end > MOST_COUNTERS * entries.len() {
            return Self::by_sorting(entries, group, index);
        }
        // Counted, which takes one step for each entry and each counter.
        let mut next = vec![0u32; end + 1];
        entries.iter().for_each(|entry| next[group(entry) as usize + 1] += 1);
        let mut grouped = Self::with_room(entries.len());
        let mut begin = 0;
        for (group, next) in (0u32..).zip(&mut next[1..]) {
            let count = std::mem::replace(next, begin);
            if count > 0 {
                grouped.begins.push(begin);
                grouped.groups.push(group);
                begin += count;
            }
        }
        grouped.begins.push(begin);
        grouped.indices.resize(entries.len(), 0);
        grouped.weights.resize(entries.len(), 0.0);
        for entry in entries {
            let next = &mut next[group(entry) as usize + 1];
            grouped.indices[*next as usize] = index(entry);
            grouped.weights[*next as usize] = entry.gradient;
            *next += 1;
        }
        grouped
    }

    fn by_sorting(
        entries: &[Entry],
        group: impl Fn(&Entry) -> u32,
        index: impl Fn(&Entry) -> u32,
    ) -> Self {
        let key = |(at, entry): (usize, &Entry)| u64::from(group(entry)) << 32 | at as u64;
        let mut keys: Vec<u64> = entries.iter().enumerate().map(key).collect();
        keys.sort_unstable();
        let mut grouped = Self::with_room(entries.len());
        for (at, key) in (0u32..).zip(keys) {
            let (group, entry) = ((key >> 32) as u32, &entries[key as u32 as usize]);
            if grouped.groups.last() != Some(&group) {
                grouped.begins.push(at);
                grouped.groups.push(group);
            }
            grouped.indices.push(index(entry));
            grouped.weights.push(entry.gradient);
        }
        grouped.begins.push(entries.len() as u32);
        grouped
    }

    fn with_room(entries: usize) -> Self {
        let (indices, weights) = (Vec::with_capacity(entries), Vec::with_capacity(entries));
        Self { indices, weights, ..Self::default() }
    }
}

/// The parameters of the sums of groups: from rows to where they go.
fn params_of(
    of: &Groups,
    (rows, targets): (DevicePointer<f32>, DevicePointer<u32>),
    (sums, totals): (DevicePointerMut<f32>, DevicePointerMut<f32>),
    dim: usize,
    groups: usize,
) -> SumRowsParams {
    SumRowsParams {
        rows,
        indices: of.indices.pointer(),
        weights: of.weights.pointer(),
        begins: of.begins.pointer(),
        targets,
        sums,
        totals,
        dim: dim as i32,
        groups: groups as u32,
    }
}

fn event() -> Result<Event, GpuError> {
    Event::new(EventFlags::DEFAULT).doing("making an event")
}

/// Reads the first values.
fn read_first(array: &Array<f32>, count: usize) -> Result<Vec<f32>, GpuError> {
    let mut values = array.read()?;
    values.truncate(count);
    Ok(values)
}

/// Makes room for this many values, which are lost.
fn grow(array: &mut Array<f32>, len: usize) -> Result<(), GpuError> {
    if array.len() < len {
        *array = Array::zeroed(0)?;
        *array = Array::zeroed(len.next_power_of_two())?;
    }
    Ok(())
}
