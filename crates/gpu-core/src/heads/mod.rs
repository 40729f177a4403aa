//! Class scores of texts, from products that stay on the device.
//!
//! A token's products with all filters are computed when a text has it for the first time
//! (`products`), and a text's features are sums and maxima of what its tokens gave. Dense layers
//! run on tensor cores (`pass`). A text has the same scores in every batch, because no sum depends
//! on what is beside it. What overflows float16 becomes NaN, and texts with such scores are
//! classified on the host, as are all texts of a classifier for which the device has no memory, or
//! whose sums might overflow float32.

pub(crate) mod abi;
/// Sums of rows with weights, which the gradients of an expander are:
/// docs/expand.md has the formulas and the order of summation.
pub(crate) mod expand {
    pub(crate) mod abi;
}
mod kernels;
mod pass;
mod products;
mod weights;

use std::rc::Rc;
use std::sync::Arc;

use contract::{Token, TokenClassifier, TokenText};
use cpu_core::heads::classify;
use cust::event::Event;
use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::resident::Resident;
use crate::{GpuError, Precision};
use kernels::Kernels;
use pass::{Buffers, Ready};
use products::Products;
use weights::Weights;

/// Passes that may be under way at the same time.
pub(crate) const SETS: usize = 2;

/// How an engine keeps classifiers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Kept {
    pub(crate) precision: Precision,
    /// The most memory for the products of one, in bytes.
    pub(crate) memory: Option<u64>,
    /// Whether to use only the kernels that every device runs.
    pub(crate) portable: bool,
}

/// The classifiers that an engine was asked for.
pub(crate) struct Classifiers {
    // In the order in which they must be dropped: what is on the device, then the kernels' modules.
    on_device: Vec<OnDevice>,
    kernels: Option<Kernels>,
    pub(crate) kept: Kept,
    /// For what the device can't do.
    on_host: classify::Classifiers,
    threads: Option<ThreadPool>,
    resident: Rc<Resident>,
}

/// A classifier with its products on the device.
struct OnDevice {
    head: Arc<dyn TokenClassifier>,
    products: Products,
    weights: Weights,
    buffers: [Buffers; SETS],
}

/// Texts as one list of tokens, or of their slots.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Flat<'a> {
    pub(crate) tokens: &'a [u32],
    /// Where each text ends.
    pub(crate) ends: &'a [u32],
}

/// The indices of texts, those of each classifier together.
fn by_classifier(texts: &[&TokenText]) -> Vec<Vec<usize>> {
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for (index, text) in texts.iter().enumerate() {
        let is_own =
            |group: &&mut Vec<usize>| Arc::ptr_eq(texts[group[0]].classifier(), text.classifier());
        match groups.iter_mut().find(is_own) {
            Some(group) => group.push(index),
            None => groups.push(vec![index]),
        }
    }
    groups
}

impl Classifiers {
    pub(crate) fn new(resident: Rc<Resident>, kept: Kept) -> Self {
        Self {
            on_device: Vec::new(),
            kernels: None,
            kept,
            on_host: classify::Classifiers::new(None, Precision::Float32),
            threads: None,
            resident,
        }
    }

    /// The class scores of each text.
    pub(crate) fn scores(&mut self, texts: &[&TokenText]) -> Result<Vec<Vec<f64>>, GpuError> {
        // Nobody else has those that were replaced.
        self.on_device.retain(|one| Arc::strong_count(&one.head) > 1);
        let mut scores = vec![Vec::new(); texts.len()];
        for own in by_classifier(texts) {
            let head = texts[own[0]].classifier();
            if let Some(index) = self.index(head)? {
                let tokens: Vec<&[Token]> = own.iter().map(|&at| texts[at].tokens()).collect();
                let found = self.scores_of(index, &tokens)?;
                for (&at, found) in own.iter().zip(found) {
                    scores[at] = found;
                }
            }
        }
        self.on_host(texts, &mut scores)?;
        Ok(scores)
    }

    /// Fills in scores that are missing, or not finite.
    fn on_host(&mut self, texts: &[&TokenText], scores: &mut [Vec<f64>]) -> Result<(), GpuError> {
        let is_missing =
            |scores: &[f64]| scores.is_empty() || scores.iter().any(|x| !x.is_finite());
        let missing: Vec<usize> = (0..texts.len()).filter(|&at| is_missing(&scores[at])).collect();
        if missing.is_empty() {
            return Ok(());
        }
        let pool = match self.threads.take() {
            Some(pool) => pool,
            None => ThreadPoolBuilder::new().build().map_err(|error| GpuError::Driver {
                doing: "starting threads",
                source: error.into(),
            })?,
        };
        let some: Vec<&TokenText> = missing.iter().map(|&at| texts[at]).collect();
        let found = self.on_host.scores(&self.resident.of.table(), &some, &pool, &|| true);
        for (at, found) in missing.into_iter().zip(found) {
            scores[at] = found;
        }
        self.threads = Some(pool);
        Ok(())
    }

    /// The scores of texts of one classifier. May contain NaN.
    fn scores_of(&mut self, index: usize, texts: &[&[Token]]) -> Result<Vec<Vec<f64>>, GpuError> {
        let mut scores = Vec::with_capacity(texts.len());
        while scores.len() < texts.len() {
            let kernels = self.kernels.as_ref().expect("there is a classifier");
            let one = &mut self.on_device[index];
            let rest = &texts[scores.len()..];
            let assigned =
                one.products.load(&self.resident, kernels, &one.weights, &*one.head, rest)?;
            let ends: Vec<u32> = assigned.ends.iter().map(|&end| end as u32).collect();
            one.start(0, kernels, Flat { tokens: &assigned.slots, ends: &ends })?;
            scores.extend(one.finish(0)?);
        }
        Ok(scores)
    }

    /// The index of a classifier that is on the device already.
    fn known(&self, head: &Arc<dyn TokenClassifier>) -> Option<usize> {
        self.on_device.iter().position(|one| Arc::ptr_eq(&one.head, head))
    }

    /// The index of a classifier that is put on the device if it is not there; `None` if the device
    /// has no memory for it.
    fn index(&mut self, head: &Arc<dyn TokenClassifier>) -> Result<Option<usize>, GpuError> {
        if let Some(known) = self.known(head) {
            return Ok(Some(known));
        }
        let kernels = match self.kernels.take() {
            Some(kernels) => kernels,
            None => Kernels::load(&self.resident.gpu, self.kept.portable)?,
        };
        let one = OnDevice::new(head, &self.resident, &kernels, self.kept)?;
        self.kernels = Some(kernels);
        Ok(one.map(|one| {
            self.on_device.push(one);
            self.on_device.len() - 1
        }))
    }

    /// Starts a pass of texts that are all of one classifier, whose products are all on the device.
    /// Returns the classifier's index; `None`, and starts nothing, if they are not.
    pub(crate) fn start(
        &mut self,
        set: usize,
        texts: &[&TokenText],
    ) -> Result<Option<usize>, GpuError> {
        let Some(first) = texts.first() else { return Ok(None) };
        let head = first.classifier();
        let (Some(index), Some(kernels)) = (self.known(head), &self.kernels) else {
            return Ok(None);
        };
        if texts.iter().any(|text| !Arc::ptr_eq(text.classifier(), head)) {
            return Ok(None);
        }
        let one = &mut self.on_device[index];
        let (mut tokens, mut ends) = (Vec::new(), Vec::with_capacity(texts.len()));
        for text in texts {
            for &token in text.tokens() {
                let Some(slot) = one.products.slots.loaded(token) else { return Ok(None) };
                tokens.push(slot);
            }
            ends.push(tokens.len() as u32);
        }
        one.start(set, kernels, Flat { tokens: &tokens, ends: &ends })?;
        Ok(Some(index))
    }

    /// As [`Self::start`], if the products of all tokens are on the device.
    pub(crate) fn start_flat(
        &mut self,
        set: usize,
        head: &Arc<dyn TokenClassifier>,
        texts: Flat<'_>,
    ) -> Result<Option<usize>, GpuError> {
        let (Some(index), Some(kernels)) = (self.known(head), &self.kernels) else {
            return Ok(None);
        };
        let one = &mut self.on_device[index];
        if !one.products.slots.is_whole() {
            return Ok(None);
        }
        one.start(set, kernels, texts)?;
        Ok(Some(index))
    }

    /// Waits for a pass that was started; returns its scores, `[texts, classes]`, of which some may
    /// be NaN.
    pub(crate) fn finish_flat(&self, set: usize, index: usize) -> Result<&[f32], GpuError> {
        let one = &self.on_device[index];
        one.buffers[set].finish(one.weights.classes)
    }

    /// Records an event after the pass that was started last.
    pub(crate) fn record(&self, set: usize, index: usize, event: &Event) -> Result<(), GpuError> {
        self.on_device[index].buffers[set].record(event)
    }

    /// Waits for a pass that was started; returns its scores.
    pub(crate) fn finish(
        &mut self,
        set: usize,
        index: usize,
        texts: &[&TokenText],
    ) -> Result<Vec<Vec<f64>>, GpuError> {
        let mut scores = self.on_device[index].finish(set)?;
        self.on_host(texts, &mut scores)?;
        Ok(scores)
    }

    /// Waits for all passes that were started, also those that failed.
    pub(crate) fn abandon(&self) {
        for one in &self.on_device {
            one.buffers.iter().for_each(Buffers::abandon);
        }
    }
}

impl OnDevice {
    /// `None` if the device has too little memory, or float32 does not hold all sums.
    fn new(
        head: &Arc<dyn TokenClassifier>,
        resident: &Resident,
        kernels: &Kernels,
        kept: Kept,
    ) -> Result<Option<Self>, GpuError> {
        let has_hidden = head.classifier().layers().len() > 1;
        if !classify::float16::float32_holds(&**head, &resident.of.table()) {
            return Ok(None);
        }
        let fits = classify::float16::holds(&**head, &resident.of.table())
            && (!kernels.dense_half.is_empty() || !has_hidden);
        let precision = if fits { kept.precision } else { Precision::Float32 };
        let weights = Weights::upload(head.classifier(), precision)?;
        let products = Products::new(&**head, &resident.gpu, &weights, precision, kept.memory)?;
        let Some(products) = products else { return Ok(None) };
        let buffers = [Buffers::new()?, Buffers::new()?];
        Ok(Some(Self { head: head.clone(), products, weights, buffers }))
    }

    fn start(&mut self, set: usize, kernels: &Kernels, texts: Flat<'_>) -> Result<(), GpuError> {
        let Self { products, weights, buffers, .. } = self;
        buffers[set].start(&Ready { products, weights, kernels }, &texts)
    }

    fn finish(&mut self, set: usize) -> Result<Vec<Vec<f64>>, GpuError> {
        let classes = self.weights.classes;
        let scores = self.buffers[set].finish(classes)?;
        let scores = scores.chunks_exact(classes);
        Ok(scores.map(|text| text.iter().map(|&score| f64::from(score)).collect()).collect())
    }
}
