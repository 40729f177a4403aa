//! The passes of the search: which kernels run in which order. Certified passes are recorded once
//! as graphs.

#![allow(unsafe_code)]

use cust::stream::Stream;

use super::abi::Layout;
use super::kernels::{Int4Kernels, Kernels, Scan};
use super::plan::{Class, Phases, few_and_rest};
use super::workspace::{Exchange, Workspace};
use crate::GpuError;
use crate::abi::DevicePointerMut;
use crate::driver::{start_clearing, start_download, start_upload};
use crate::resident::{CHUNK4, Int4, Quantised, Resident};

/// The rows of the float32 table that a pass reads.
#[derive(Debug, Clone, Copy)]
pub(crate) enum RowsToRead {
    All,
    /// Those of the queries' sets, which all of them have; at most so many of a query.
    Members(usize),
}

/// What a pass needs of the engine.
///
/// Its functions only start work. They are sound if their caller keeps one promise, called the
/// promise of a pass, from the call (for recorded work: from each launch of the graph) until the
/// stream has been synchronised:
///
/// - tables, workspace and kernels stay alive, only this pass uses its exchange, and only passes in
///   the same stream use the rest of the workspace;
/// - the exchange's headers up to the pass's width are queries of this table that `upload_queries`
///   wrote, or zero; they name rows, vectors and lists that exist, and ask for no more hits than
///   the class has room for.
#[derive(Clone, Copy)]
pub(crate) struct Pass<'a> {
    pub(crate) resident: &'a Resident,
    pub(crate) kernels: &'a Kernels,
    pub(crate) workspace: &'a Workspace,
    /// One of the engine's.
    pub(crate) exchange: &'a Exchange,
    pub(crate) stream: &'a Stream,
    /// Whether kernels may start before the previous one has ended.
    pub(crate) early: bool,
}

impl Pass<'_> {
    /// One query over the first `tiles` tiles of the 4-bit table: upload, search, download.
    ///
    /// # Safety
    /// - The promise of a [pass](Pass).
    pub(crate) unsafe fn int4(
        &self,
        quantised: &Quantised,
        int4: &Int4,
        kernels: &Int4Kernels,
        tiles: usize,
    ) -> Result<(), GpuError> {
        let form = (self.resident.dim.next_multiple_of(CHUNK4), Layout::Plain);
        // SAFETY: the caller's promise. Each kernel reads what those before it in the stream wrote.
        unsafe {
            self.prepare(&self.kernels.plain, quantised, self.uploaded(1)?, 1, form)?;
            self.int4_scan(quantised, int4, kernels, tiles)?;
            self.int4_threshold(quantised, tiles)?;
            self.int4_rescore(quantised, int4, kernels, tiles)
        }
    }

    /// The sample and the phases of a pass over the first `tiles` tiles of the 8-bit table.
    fn phases(&self, width: usize, class: Class, tiles: usize) -> Phases {
        let max_sample = self.workspace.max_groups(width) / self.kernels.int8.groups_per_tile;
        Phases::new(class, width, tiles, max_sample, self.multiprocessors())
    }

    /// A batch of this width over the first `tiles` tiles of the 8-bit table: upload, search,
    /// download. `formulas` and `sets` if some of the queries have them.
    ///
    /// # Safety
    /// - The promise of a [pass](Pass).
    pub(crate) unsafe fn int8(
        &self,
        quantised: &Quantised,
        width: usize,
        class: Class,
        (formulas, sets): (bool, bool),
        tiles: usize,
    ) -> Result<(), GpuError> {
        let Phases { sample, scans } = self.phases(width, class, tiles);
        let kernels = if formulas { &self.kernels.formulas } else { &self.kernels.plain };
        // SAFETY: the caller's promise. Each kernel reads what those before it in the stream wrote;
        // all phases are within the table's tiles.
        unsafe {
            let form = self.kernels.int8.form;
            self.prepare(kernels, quantised, self.uploaded(width)?, width, form)?;
            self.int8_scan(quantised, width, sample, Scan { sampling: true, sets })?;
            self.first_thresholds(kernels, quantised, width, sample)?;
            for (i, scan) in scans.into_iter().enumerate() {
                if i > 0 {
                    self.raise_thresholds(kernels, quantised, width)?;
                }
                self.int8_scan(quantised, width, scan, Scan { sampling: false, sets })?;
            }
            self.rescore(kernels, quantised, width, class)?;
            if !Self::in_place(width, class) {
                self.download(width, class.stride())?;
            }
        }
        Ok(())
    }

    /// A batch of queries for every row from their minimum score on, over the 8-bit table: upload,
    /// search, download.
    ///
    /// # Safety
    /// - The promise of a [pass](Pass), but for the number of hits: there may be any number.
    pub(crate) unsafe fn every_hit(
        &self,
        quantised: &Quantised,
        width: usize,
        sets: bool,
    ) -> Result<(), GpuError> {
        let (count, host_count) = (&self.workspace.listed_count, &self.exchange.listed_count);
        // SAFETY: the caller's promise. Each kernel reads what those before it in the stream wrote.
        unsafe {
            start_clearing(count, 1, self.stream)?;
            self.upload_vectors(width)?;
            let (kernels, form) = (&self.kernels.plain, self.kernels.int8.form);
            self.prepare(kernels, quantised, self.uploaded(width)?, width, form)?;
            self.above_minimum(quantised, width, sets)?;
            self.list_hits(quantised, width)?;
            start_download(count, host_count, 1, self.stream)
        }
    }

    /// The scans for the candidates of prepared queries that want every row from their minimum
    /// score on.
    ///
    /// # Safety
    /// - The promise of a [pass](Pass).
    pub(super) unsafe fn above_minimum(
        &self,
        quantised: &Quantised,
        width: usize,
        sets: bool,
    ) -> Result<(), GpuError> {
        let scans = few_and_rest(quantised.tiles(), self.multiprocessors());
        // SAFETY: the caller's promise. The scans have only tiles of the table.
        unsafe {
            self.minimum_thresholds(quantised, width)?;
            for (i, scan) in scans.into_iter().enumerate() {
                if i > 0 {
                    self.stop_queries(quantised, width)?;
                }
                self.int8_scan(quantised, width, scan, Scan { sampling: false, sets })?;
            }
        }
        Ok(())
    }

    /// A batch over these rows of the float32 table: upload, search, download. Scores every one by
    /// the formula or, with `float32_first`, only rows that their float32 scores do not rule out.
    ///
    /// # Safety
    /// - The promise of a [pass](Pass).
    pub(crate) unsafe fn exact(
        &self,
        batch: usize,
        class: Class,
        rows: RowsToRead,
        float32_first: bool,
    ) -> Result<(), GpuError> {
        let Workspace { headers, excluded, vectors, scan_floors, .. } = self.workspace;
        let (host, uploads) = (self.exchange, self.exchange.uploads);
        debug_assert!(host.staged.is_none(), "only wide certified passes take staged vectors");
        // SAFETY: the caller's promise: the host's side stays as it is until the pass has ended.
        // Each kernel reads what those before it in the stream wrote.
        unsafe {
            start_upload(&host.headers[..batch], headers, self.stream)?;
            if uploads.components > 0 {
                start_upload(&host.vectors[..uploads.components], vectors, self.stream)?;
            }
            if uploads.listed > 0 {
                start_upload(&host.excluded[..uploads.listed], excluded, self.stream)?;
            }
            start_clearing(scan_floors, batch, self.stream)?;
            let parts = self.scan_parts(batch, class.stride(), rows, float32_first)?;
            self.merge_parts(batch, class.stride(), parts)?;
            self.download(batch, class.stride())
        }
    }

    /// Whether the vectors of a certified pass are copied to the device before it begins: so that
    /// they may come from memory that callers fill. For few, reading them from the host's memory
    /// takes less time than starting a copy.
    pub(super) fn copies_vectors(width: usize) -> bool {
        width >= 256
    }

    /// Starts copying the vectors of a certified pass of this width to the device, if there are any
    /// and they are copied. Everything else is read from the host's memory.
    ///
    /// # Safety
    /// - The promise of a [pass](Pass): the host's side stays as it is until the pass has ended.
    /// - Staged vectors are in registered memory, as `upload_queries` has seen, and the exchange
    ///   keeps them.
    pub(crate) unsafe fn upload_vectors(&self, width: usize) -> Result<(), GpuError> {
        let Exchange { vectors, staged, uploads, .. } = self.exchange;
        let (count, to) = (uploads.components, &self.workspace.vectors);
        if !Self::copies_vectors(width) || count == 0 {
            return Ok(());
        }
        match staged {
            // SAFETY: the host's vectors stay as they are until the pass has ended: the caller's
            // promise.
            None => unsafe { start_upload(&vectors[..count], to, self.stream) },
            // SAFETY: the staged vectors are in registered memory and stay there until the pass has
            // ended: the caller's promise.
            Some(first) => unsafe { start_upload(first.and_after(count), to, self.stream) },
        }
    }

    pub(super) fn multiprocessors(&self) -> usize {
        self.resident.gpu.multiprocessors as usize
    }

    /// Whether the last kernel writes the answers directly to host memory. For few queries, that
    /// takes less time than starting a copy.
    fn in_place(width: usize, class: Class) -> bool {
        width <= 128 && class == Class::Small
    }

    /// Where the last kernel of a certified pass writes the answers.
    pub(super) fn answers(
        &self,
        width: usize,
        class: Class,
    ) -> Result<DevicePointerMut<super::abi::Answer>, GpuError> {
        if Self::in_place(width, class) {
            self.exchange.answers.pointer_mut()
        } else {
            Ok(self.workspace.answers.pointer_mut())
        }
    }

    /// # Safety
    /// - The promise of a [pass](Pass).
    unsafe fn download(&self, batch: usize, stride: usize) -> Result<(), GpuError> {
        let (answers, host) = (&self.workspace.answers, &self.exchange.answers);
        // SAFETY: the caller's promise: answers are read after the stream has been synchronised.
        unsafe { start_download(answers, host, batch * (1 + stride), self.stream) }
    }
}
