//! Texts as searches for their tokens, whose vectors the host uploads: of each text the rows that a
//! token has above the least value. The device makes the queries, lists their hits and merges those
//! of a text, so that the host waits once.

#![allow(unsafe_code)]

pub(crate) mod abi;

use super::CudaEngine;
use super::abi::{PassView, QueriesView, QueryHeader, ScoredRow};
use super::launches::{LISTING_PARTS, Source};
use super::workspace::MAX_BATCH;
use crate::GpuError;
use crate::abi::{DevicePointer, DevicePointerMut};
use crate::driver::{Array, Kernel, Modules, Pinned, Room, Shape, start_clearing};
use crate::resident::Quantised;
use abi::{ListTermsParams, MergeTermsParams, NOT_MERGED, TextTerms, TokenQueriesParams, entries};

/// The most terms of a pass, over all of its texts.
const LISTED_TERMS: usize = 1 << 20;

/// The most texts of a pass: each has room for at least 1,024 hits of its tokens.
pub(crate) const MAX_TEXTS: usize = 1024;

/// The most tokens that an engine takes together.
pub(crate) const MAX_TOKENS: usize = 1 << 17;

/// Tokens of texts, one text after the other.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tokens<'a> {
    pub(crate) vectors: TokenVectors<'a>,
    /// `[texts]`: where each text ends, in tokens.
    pub(crate) ends: &'a [usize],
    /// `[texts]`: the least value of a term, above zero.
    pub(crate) leasts: &'a [f64],
}

/// Where the vectors `[tokens, dim]` of tokens are.
#[derive(Debug, Clone, Copy)]
pub(crate) enum TokenVectors<'a> {
    Host(&'a [f32]),
    /// At an address on the device, in the memory of another library. They do not change during the
    /// pass.
    Borrowed(DevicePointer<f32>),
}

/// A term that a text touches: its value is above 0.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Touched {
    /// The text.
    pub text: u32,
    /// The term: a row of the table.
    pub term: u32,
    /// The position of the maximum in the text, from 0: the lowest of several.
    pub position: u32,
    /// The maximum.
    pub value: f64,
}

/// The terms of texts that each `end` at a token, ordered by text, then by term; and the texts
/// whose terms were not merged.
pub(super) fn touched(
    texts: Vec<Option<Vec<ScoredRow>>>,
    ends: &[usize],
) -> (Vec<Touched>, Vec<u32>) {
    let mut touched = Vec::with_capacity(texts.iter().flatten().map(Vec::len).sum());
    let (mut over, mut start) = (Vec::new(), 0);
    for ((text, terms), &end) in (0u32..).zip(texts).zip(ends) {
        let of_text = |ScoredRow { row, score, query: token }| {
            let position = token - start as u32;
            Touched { text, term: row, position, value: score }
        };
        match terms {
            Some(terms) => touched.extend(terms.into_iter().map(of_text)),
            None => over.push(text),
        }
        start = end;
    }
    (touched, over)
}

/// The kernels and buffers of such passes.
pub(super) struct TokenPasses {
    // In the order in which they must be dropped: buffers, then kernels, then their module.
    vectors: Room<f32>,
    texts: Room<u32>,
    leasts: Room<f64>,
    headers: Array<QueryHeader>,
    found: Array<ScoredRow>,
    counts: Array<u32>,
    total: Array<u32>,
    terms: Pinned<ScoredRow>,
    ranges: Pinned<TextTerms>,
    token_queries: Kernel<TokenQueriesParams>,
    list_terms: Kernel<ListTermsParams>,
    merge_terms: Kernel<MergeTermsParams>,
    _modules: Modules,
}

impl TokenPasses {
    pub(super) fn new() -> Result<Self, GpuError> {
        use entries::expand;
        let mut modules = Modules::default();
        Ok(Self {
            vectors: Room::new()?,
            texts: Room::new()?,
            leasts: Room::new()?,
            headers: Array::zeroed(0)?,
            found: Array::zeroed(LISTED_TERMS)?,
            counts: Array::zeroed(MAX_TEXTS)?,
            total: Array::zeroed(1)?,
            terms: Pinned::zeroed(LISTED_TERMS)?,
            ranges: Pinned::zeroed(MAX_TEXTS)?,
            token_queries: modules.kernel(expand::token_queries)?,
            list_terms: modules.kernel(expand::list_terms)?,
            merge_terms: modules.kernel(expand::merge_terms)?,
            _modules: modules,
        })
    }
}

impl CudaEngine {
    /// The terms of each text, in the order of rows, each with the first token of the pass that
    /// gives it its value; `None` for a text with too many hits to merge. At most [`MAX_TEXTS`]
    /// texts. Only for tables with certificates.
    ///
    /// # Errors
    /// If the device fails.
    pub(crate) fn terms_of(
        &mut self,
        tokens: Tokens<'_>,
    ) -> Result<Vec<Option<Vec<ScoredRow>>>, GpuError> {
        let mut passes = self.token_passes.take().map_or_else(TokenPasses::new, Ok)?;
        self.begin();
        self.note_start()?;
        // SAFETY: this function waits for the stream before anything else uses the buffers.
        let launched = unsafe { self.launch_tokens(&mut passes, tokens) };
        let done = launched.and_then(|()| self.end(&mut || ()));
        // Kept after an error, too: some kernels may be under way until the stream has been
        // synchronised.
        let passes = self.token_passes.insert(passes);
        done?;
        let found = passes.ranges[..tokens.ends.len()].iter().map(|range| {
            let TextTerms { first, count } = *range;
            let terms = || passes.terms[first as usize..][..count as usize].to_vec();
            (count != NOT_MERGED).then(terms)
        });
        let found = found.collect();
        self.counters.certified += tokens.ends.last().copied().unwrap_or(0) as u64;
        Ok(found)
    }

    /// # Safety
    /// - Nothing else uses the buffers until the stream has been synchronised.
    /// - Nothing else uses the workspace until then.
    unsafe fn launch_tokens(
        &self,
        passes: &mut TokenPasses,
        tokens: Tokens<'_>,
    ) -> Result<(), GpuError> {
        let (stream, resident) = (&self.stream, &*self.resident);
        let quantised = resident.quantised.as_ref().expect("tables with certificates");
        let Tokens { vectors, ends, leasts } = tokens;
        let (count, texts) = (ends.last().copied().unwrap_or(0), ends.len());
        assert!(texts <= MAX_TEXTS && leasts.len() == texts, "{texts} texts");
        let components = match vectors {
            TokenVectors::Host(vectors) => vectors.len(),
            TokenVectors::Borrowed(_) => count * resident.dim,
        };
        assert_eq!(components, count * resident.dim, "texts end with the last token");
        let padded = count.next_multiple_of(MAX_BATCH);
        if passes.headers.len() < padded {
            passes.headers = Array::zeroed(padded.next_power_of_two())?;
        }
        let mut text_of = Vec::with_capacity(count);
        for (text, &end) in (0u32..).zip(ends) {
            text_of.resize(end, text);
        }
        // SAFETY: nothing else uses the buffers or the workspace until the stream has been
        // synchronised, as the caller promises; the buffers have room, as asserted and made above.
        unsafe {
            if let TokenVectors::Host(vectors) = vectors {
                passes.vectors.upload(vectors, stream)?;
            }
            passes.texts.upload(&text_of, stream)?;
            passes.leasts.upload(leasts, stream)?;
            start_clearing(&passes.counts, texts, stream)?;
            start_clearing(&passes.total, 1, stream)?;
        }
        let vectors = match vectors {
            TokenVectors::Borrowed(vectors) => vectors,
            TokenVectors::Host(_) => passes.vectors.pointer(),
        };
        let params = TokenQueriesParams {
            table: resident.view(),
            lift: resident.lift_view(),
            vectors,
            texts: passes.texts.pointer(),
            leasts: passes.leasts.pointer(),
            headers: passes.headers.pointer_mut(),
            tokens: count as i32,
            tiles: quantised.tiles() as u32,
        };
        // SAFETY: a block for each header; each token has a text, and each text a least value.
        unsafe { passes.token_queries.launch(stream, Shape::grid(padded, 1), &params)? };
        let capacity = LISTED_TERMS / texts;
        for first in (0..count).step_by(MAX_BATCH) {
            // SAFETY: nothing else uses the buffers or the workspace, as the caller promises; the
            // headers were made by the launch before.
            unsafe { self.launch_some(passes, vectors, quantised, (first, count), capacity)? };
        }
        let params = MergeTermsParams {
            found: passes.found.pointer(),
            counts: passes.counts.pointer(),
            terms: passes.terms.pointer_mut()?,
            ranges: passes.ranges.pointer_mut()?,
            total: passes.total.pointer_mut(),
            capacity: capacity as u32,
            list_capacity: LISTED_TERMS as u32,
        };
        // SAFETY: a block for each text, whose hits are within its capacity, or it is not merged.
        unsafe { passes.merge_terms.launch(stream, Shape::grid(texts, 1), &params) }
    }

    /// Starts the search for the tokens from `first` on: as many as a pass takes.
    ///
    /// # Safety
    /// - Nothing else uses the buffers until the stream has been synchronised.
    /// - Nothing else uses the workspace until then.
    /// - The headers of the tokens are made earlier in the stream.
    unsafe fn launch_some(
        &self,
        passes: &TokenPasses,
        vectors: DevicePointer<f32>,
        quantised: &Quantised,
        (first, count): (usize, usize),
        capacity: usize,
    ) -> Result<(), GpuError> {
        let (pass, kernels) = (self.pass(self.free_exchange()), &self.kernels);
        let (rest, widths) = (count - first, kernels.int8.widths);
        let width = widths.iter().copied().find(|&width| width >= rest).unwrap_or(MAX_BATCH);
        let source = Source {
            headers: passes.headers.pointer().offset(first),
            vectors,
            copied: DevicePointerMut::NULL,
        };
        let view = pass.view(quantised, width);
        let queries = QueriesView { vectors, ..view.queries };
        let params = ListTermsParams {
            pass: PassView { queries, ..view },
            found: passes.found.pointer_mut(),
            counts: passes.counts.pointer_mut(),
            capacity: capacity as u32,
            unused: 0,
        };
        let shape = Shape::grid(width, LISTING_PARTS).early(pass.early);
        // SAFETY: the caller's promise: the headers up to the width are queries of this table, or
        // zero.
        unsafe {
            pass.prepare(&kernels.plain, quantised, source, width, kernels.int8.form)?;
            pass.above_minimum(quantised, width, false)?;
            passes.list_terms.launch(&self.stream, shape, &params)
        }
    }
}
