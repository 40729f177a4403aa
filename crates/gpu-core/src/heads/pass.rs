//! A pass: texts to the device, features, dense layers, class scores back.

#![allow(unsafe_code)]

use cust::event::Event;
use cust::stream::Stream;

use super::Flat;
use super::abi::{DenseParams, FeaturesParams, HEAD_GROUP, HEAD_TEXTS, SCORE_TEXTS, ScoresParams};
use super::kernels::{Dense, Kernels};
use super::products::Products;
use super::weights::{Hidden, Place, Weights};
use crate::driver::{Array, Doing, Pinned, Room, Shape, new_stream, start_download};
use crate::{GpuError, Precision};

/// Bytes of features that are on the device together.
const CHUNK_BYTES: usize = 128 << 20;

/// Threads of the kernels for features.
const THREADS: usize = 256;

/// The most groups of channels of a block.
const MOST_GROUPS: usize = 16;

/// With fewer groups of channels in a block, reads are too short.
const LEAST_GROUPS: usize = 4;

/// What passes need and do not change.
pub(super) struct Ready<'a> {
    pub(super) products: &'a Products,
    pub(super) weights: &'a Weights,
    pub(super) kernels: &'a Kernels,
}

/// What a pass writes, and its stream. Grows with the largest pass.
pub(super) struct Buffers {
    stream: Stream,
    /// Texts of the pass that was started last.
    texts: usize,
    tokens: Room<u32>,
    /// `[texts + 1]`.
    bounds: Room<u32>,
    /// `[chunk, features]`. What fills features up to a multiple is zero, because nothing else
    /// writes here.
    features: Array<u8>,
    /// `[chunk, widest]` each: the outputs of hidden layers, in turns.
    layers: [Array<u8>; 2],
    /// `[texts, classes]`.
    scores: (Array<f32>, Pinned<f32>),
}

impl Buffers {
    pub(super) fn new() -> Result<Self, GpuError> {
        Ok(Self {
            stream: new_stream()?,
            texts: 0,
            tokens: Room::new()?,
            bounds: Room::new()?,
            features: Array::zeroed(0)?,
            layers: [Array::zeroed(0)?, Array::zeroed(0)?],
            scores: (Array::zeroed(0)?, Pinned::zeroed(0)?),
        })
    }

    /// Starts a pass of these texts, whose tokens are slots of loaded products. The pass that was
    /// started before with these buffers has been waited for.
    pub(super) fn start(&mut self, ready: &Ready<'_>, texts: &Flat<'_>) -> Result<(), GpuError> {
        let &Flat { tokens, ends } = texts;
        let last = ends.last().map_or(0, |&end| end as usize);
        assert!(ends.is_sorted() && last == tokens.len(), "texts that follow each other");
        let slots = ready.products.slots.count() as u32;
        assert!(
            tokens.iter().fold(0, |most, &slot| slot.max(most)) < slots.max(1),
            "slots that there are"
        );
        self.grow(ready, ends.len())?;
        self.texts = ends.len();
        let bounds: Vec<u32> = std::iter::once(0).chain(ends.iter().copied()).collect();
        // SAFETY: `launch` keeps to the buffers, which have grown as these texts need. The stream
        // is synchronised before they are used again (`finish`), or dropped.
        let launched = unsafe { self.launch(ready, tokens, &bounds) };
        if launched.is_err() {
            self.abandon();
        }
        launched
    }

    /// Waits for the pass; returns its scores, `[texts, classes]`.
    pub(super) fn finish(&self, classes: usize) -> Result<&[f32], GpuError> {
        // Nothing follows it in the stream.
        self.stream.synchronize().doing("classifying")?;
        Ok(&self.scores.1[..self.texts * classes])
    }

    /// Records an event after the pass.
    pub(super) fn record(&self, event: &Event) -> Result<(), GpuError> {
        event.record(&self.stream).doing("recording an event")
    }

    /// Waits for whatever was started.
    pub(super) fn abandon(&self) {
        let _ = self.stream.synchronize();
    }

    fn grow(&mut self, ready: &Ready<'_>, texts: usize) -> Result<(), GpuError> {
        let Weights { classes, .. } = *ready.weights;
        let more = |needed: usize| needed.next_power_of_two();
        if self.scores.1.len() < texts * classes {
            let scores = more(texts) * classes;
            self.scores = (Array::zeroed(scores)?, Pinned::zeroed(scores)?);
        }
        // All texts of a tile are multiplied, also those that are not there.
        let chunk = more(texts.min(ready.chunk())).max(HEAD_TEXTS);
        let Self { features, layers: [first, second], .. } = self;
        let widest = ready.weights.widest_hidden();
        for (array, width) in
            [(features, ready.weights.features), (first, widest), (second, widest)]
        {
            let bytes = chunk * width * ready.value_bytes();
            if array.bytes() < bytes {
                *array = Array::zeroed(bytes)?;
            }
        }
        Ok(())
    }

    /// # Safety
    /// - The buffers have room for these texts.
    /// - They stay as they are until the stream has been synchronised.
    unsafe fn launch(
        &mut self,
        ready: &Ready<'_>,
        tokens: &[u32],
        bounds: &[u32],
    ) -> Result<(), GpuError> {
        let (texts, classes, chunk) = (self.texts, ready.weights.classes, ready.chunk());
        // SAFETY: the buffers have room for the texts and stay as they are, as the caller promises;
        // each kernel's grid and memory are as its comment says.
        unsafe {
            self.tokens.upload(tokens, &self.stream)?;
            self.bounds.upload(bounds, &self.stream)?;
            let stream = &self.stream;
            for from in (0..texts).step_by(chunk) {
                let count = chunk.min(texts - from);
                for place in &ready.weights.places {
                    self.features(ready, place, from, count)?;
                }
                let mut inputs = &self.features;
                for (hidden, outputs) in ready.weights.hidden.iter().zip(self.layers.iter().cycle())
                {
                    self.dense(ready, hidden, inputs, outputs, count)?;
                    inputs = outputs;
                }
                let (kernels, weights) = (ready.kernels, ready.weights);
                let params = ScoresParams {
                    inputs: inputs.pointer(),
                    weights: weights.last.pointer(),
                    bias: weights.last_bias.pointer(),
                    scores: self.scores.0.pointer_mut().offset(from * classes),
                    input_count: weights.last_inputs as u32,
                    classes: classes as u32,
                    texts: count as u32,
                };
                let scores =
                    if ready.is_half() { kernels.scores_half } else { kernels.scores_float };
                let shape = Shape::grid(count.div_ceil(SCORE_TEXTS), classes);
                scores.launch(stream, shape, &params)?;
            }
            start_download(&self.scores.0, &self.scores.1, texts * classes, stream)
        }
    }

    /// # Safety
    /// - The buffers have room for these texts, which are some of those of [`Self::launch`].
    /// - They stay as they are until the stream has been synchronised.
    unsafe fn features(
        &self,
        ready: &Ready<'_>,
        place: &Place,
        from: usize,
        count: usize,
    ) -> Result<(), GpuError> {
        let Ready { products, weights, kernels } = ready;
        let (groups, bytes) = (place.channels / HEAD_GROUP, products.precision.bytes());
        let block_groups = block_groups(ready, place);
        let block_texts = THREADS / block_groups;
        let params = FeaturesParams {
            products: products.values.pointer(),
            tokens: self.tokens.pointer(),
            bounds: self.bounds.pointer().offset(from),
            bias: place.bias.pointer(),
            features: self.features.pointer_mut(),
            texts: count as u32,
            columns: weights.columns as u32,
            pieces: (weights.features * ready.value_bytes() / super::abi::HEAD_PIECE) as u32,
            column: place.column as u32,
            first_feature: place.feature as u32,
            channels: place.channels as u32,
            width: place.width as u32,
            padding: place.padding as u32,
            block_groups: block_groups as u32,
            block_texts: block_texts as u32,
        };
        let widths = match (ready.is_half(), bytes) {
            (true, _) => &kernels.half,
            (false, 2) => &kernels.mixed,
            (false, _) => &kernels.float,
        };
        let shape = Shape::grid(count.div_ceil(block_texts), groups.div_ceil(block_groups));
        // SAFETY: the buffers have room for the texts and stay as they are, as the caller promises;
        // the grid covers the texts and the channels.
        unsafe { widths.of(place.width).launch(&self.stream, shape, &params) }
    }

    /// # Safety
    /// - The buffers have room for these texts, which are some of those of [`Self::launch`].
    /// - They stay as they are until the stream has been synchronised.
    unsafe fn dense(
        &self,
        ready: &Ready<'_>,
        hidden: &Hidden,
        inputs: &Array<u8>,
        outputs: &Array<u8>,
        count: usize,
    ) -> Result<(), GpuError> {
        let kernels = ready.kernels;
        let Dense { kernel, outputs: wide, texts, shared } = match ready.is_half() {
            true => {
                let fits = |one: &&Dense| hidden.outputs.is_multiple_of(one.outputs);
                *kernels.dense_half.iter().find(fits).expect("the last takes any layer")
            }
            false => kernels.dense_float,
        };
        let params = DenseParams {
            inputs: inputs.pointer(),
            weights: hidden.weights.pointer(),
            bias: hidden.bias.pointer(),
            outputs: outputs.pointer_mut(),
            input_count: hidden.inputs as u32,
            output_count: hidden.outputs as u32,
        };
        let tiles = count.next_multiple_of(HEAD_TEXTS) / texts;
        let shape = Shape::grid(hidden.outputs / wide, tiles).shared(shared);
        // SAFETY: the buffers stay as they are, as the caller promises; all texts of a tile are
        // within them.
        unsafe { kernel.launch(&self.stream, shape, &params) }
    }
}

impl Drop for Buffers {
    fn drop(&mut self) {
        self.abandon();
    }
}

impl Ready<'_> {
    /// Whether features and outputs of hidden layers are float16.
    fn is_half(&self) -> bool {
        self.products.precision == Precision::Float16 && !self.weights.hidden.is_empty()
    }

    /// Texts whose features are on the device together: a power of two.
    fn chunk(&self) -> usize {
        let most = CHUNK_BYTES / (self.weights.features * self.value_bytes());
        most.max(1024).next_power_of_two()
    }

    fn value_bytes(&self) -> usize {
        if self.is_half() { size_of::<u16>() } else { size_of::<f32>() }
    }
}

/// The groups of channels of a block. The blocks of the same channels run together: if the products
/// of all tokens with these fit the second-level cache, they are read from memory once, however
/// often a token occurs.
fn block_groups(ready: &Ready<'_>, place: &Place) -> usize {
    let groups = place.channels / HEAD_GROUP;
    let group_bytes = HEAD_GROUP * ready.products.precision.bytes();
    let fit =
        ready.kernels.cache / 2 / (ready.products.slots.count() * place.width * group_bytes).max(1);
    let most = if fit >= LEAST_GROUPS { fit.min(MOST_GROUPS) } else { MOST_GROUPS };
    // As even as possible.
    groups.div_ceil(groups.div_ceil(most))
}
