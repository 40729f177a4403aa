//! The passes of the search: which kernels run in which order. Certified passes are recorded once as graphs.

#![allow(unsafe_code)]

use cust::stream::Stream;

use super::kernels::Kernels;
use super::plan::{Class, Phases};
use super::workspace::Workspace;
use crate::GpuError;
use crate::abi::DevicePointerMut;
use crate::driver::{start_clearing, start_download, start_upload};
use crate::resident::{Int4, Quantised, Resident};

/// What a pass needs of the engine.
///
/// Its functions only start work. They are sound if their caller keeps one promise, called the promise of a
/// pass, from the call (for recorded work: from each launch of the graph) until the stream has been
/// synchronised:
///
/// - tables, workspace and kernels stay alive, and only this pass uses the workspace;
/// - the pinned headers up to the pass's width are queries of this table that `upload_queries` wrote, or zero;
///   they name rows, vectors and lists that exist, and ask for no more hits than the class has room for.
#[derive(Clone, Copy)]
pub(crate) struct Pass<'a> {
    pub(crate) resident: &'a Resident,
    pub(crate) kernels: &'a Kernels,
    pub(crate) workspace: &'a Workspace,
    pub(crate) stream: &'a Stream,
    /// Whether kernels may start before the previous one has ended.
    pub(crate) early: bool,
}

impl Pass<'_> {
    /// One query over the 4-bit table: upload, search, download.
    ///
    /// # Safety
    /// The promise of a pass.
    pub(crate) unsafe fn int4(&self, quantised: &Quantised, int4: &Int4) -> Result<(), GpuError> {
        // SAFETY: the caller's promise. Each kernel reads what those before it in the stream wrote.
        unsafe {
            self.prepare_one_query()?;
            self.int4_scan(quantised, int4)?;
            self.int4_threshold(quantised)?;
            self.int4_rescore(quantised, int4)
        }
    }

    /// A batch of this width over the 8-bit table: upload, search, download.
    ///
    /// # Safety
    /// The promise of a pass.
    pub(crate) unsafe fn int8(
        &self,
        quantised: &Quantised,
        width: usize,
        class: Class,
        formulas: bool,
    ) -> Result<(), GpuError> {
        let groups_per_tile = self.kernels.int8.groups_per_tile;
        let phases = Phases::new(
            class,
            width,
            quantised.tiles,
            self.workspace.max_groups(width) / groups_per_tile,
            self.multiprocessors(),
        );
        let groups = phases.sample * groups_per_tile;
        // SAFETY: the caller's promise. Each kernel reads what those before it in the stream wrote; all phases
        // are within the table's tiles.
        unsafe {
            if formulas {
                self.prepare_formulas(width)?;
            }
            self.prepare_queries(width)?;
            self.int8_sample(quantised, width, groups, phases.sample)?;
            self.first_thresholds(width, groups)?;
            let mut begin = 0;
            for (i, &end) in phases.ends.iter().enumerate() {
                if i > 0 {
                    self.raise_thresholds(quantised, width, formulas, false)?;
                }
                self.int8_scan(quantised, width, groups, begin..end)?;
                begin = end;
            }
            if formulas {
                // Few of a formula's candidates can still reach the floor that all of them give.
                self.raise_thresholds(quantised, width, formulas, true)?;
            }
            self.rescore(quantised, width, class, formulas)?;
            if !Self::in_place(width, class) {
                self.download(width, class.stride())?;
            }
        }
        Ok(())
    }

    /// A batch over the float32 table: upload, search, download. Scores every row by the formula or, with
    /// `float32_first`, only rows that their float32 scores do not rule out.
    ///
    /// # Safety
    /// The promise of a pass.
    pub(crate) unsafe fn exact(
        &self,
        batch: usize,
        class: Class,
        float32_first: bool,
    ) -> Result<(), GpuError> {
        let Workspace { headers, scan_floors, .. } = self.workspace;
        // SAFETY: the caller's promise. Each kernel reads what those before it in the stream wrote.
        unsafe {
            start_upload(&headers.host, &headers.device, batch, self.stream)?;
            start_clearing(scan_floors, batch, self.stream)?;
            let parts = self.scan_parts(batch, class.stride(), float32_first)?;
            self.merge_parts(batch, class.stride(), parts)?;
            self.download(batch, class.stride())
        }
    }

    /// The scores of `count` rows from `first` for the first query, into the scratch.
    ///
    /// # Safety
    /// The promise of a pass.
    pub(crate) unsafe fn scores(&self, first: usize, count: usize) -> Result<(), GpuError> {
        let Workspace { headers, .. } = self.workspace;
        // SAFETY: the caller's promise.
        unsafe {
            start_upload(&headers.host, &headers.device, 1, self.stream)?;
            self.score_rows(first, count)
        }
    }

    pub(super) fn multiprocessors(&self) -> usize {
        self.resident.gpu.multiprocessors as usize
    }

    /// Whether the last kernel writes the answers directly to host memory. For few queries, that takes less
    /// time than starting a copy.
    fn in_place(width: usize, class: Class) -> bool {
        width <= 128 && class == Class::Small
    }

    /// Where the last kernel of a certified pass writes the answers.
    pub(super) fn answers(
        &self,
        width: usize,
        class: Class,
    ) -> Result<DevicePointerMut<super::abi::Answer>, GpuError> {
        let answers = &self.workspace.answers;
        if Self::in_place(width, class) {
            answers.host.pointer_mut()
        } else {
            Ok(answers.device.pointer_mut())
        }
    }

    /// # Safety
    /// The promise of a pass.
    unsafe fn download(&self, batch: usize, stride: usize) -> Result<(), GpuError> {
        let answers = &self.workspace.answers;
        // SAFETY: the caller's promise: answers are read after the stream has been synchronised.
        unsafe { start_download(&answers.device, &answers.host, batch * (1 + stride), self.stream) }
    }
}
