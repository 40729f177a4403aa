//! Launches, named like the kernels, and the three passes that they make.

use cust::stream::Stream;

use super::kernels::{Kernels, LIST_BYTES, Layout, Scans};
use super::plan::{Class, Phases};
use super::workspace::{MAX_BLOCKS4, PART_COUNTS, Workspace};
use crate::GpuError;
use crate::driver::{Shape, start_clearing, start_download, start_upload};
use crate::resident::constants::TILE_ROWS;
use crate::resident::{Int4, Quantised, Tables};

/// What a launch needs of the engine.
#[derive(Clone, Copy)]
pub(crate) struct Pass<'a> {
    pub(crate) tables: &'a Tables,
    pub(crate) kernels: &'a Kernels,
    pub(crate) workspace: &'a Workspace,
    pub(crate) stream: &'a Stream,
    pub(crate) multiprocessors: usize,
    /// Kernels may come to the device before the one before them has ended.
    pub(crate) early: bool,
}

impl Pass<'_> {
    /// One query over the 4-bit table: upload, search, download.
    pub(crate) fn int4(&self, quantised: &Quantised, int4: &Int4) -> Result<(), GpuError> {
        let padded = self.tables.dim.next_multiple_of(32);
        self.prepare_queries(1, padded, Layout::Plain)?;
        self.int4_scan(quantised, int4)?;
        self.int4_threshold(quantised)?;
        self.int4_rescore(quantised, int4)
    }

    /// Few queries and their answers cross the bus by the kernels' own loads and stores, which takes
    /// less time than starting two copies.
    fn in_place(width: usize, class: Class) -> bool {
        width <= 128 && class == Class::Small
    }

    /// Where the last kernel of a certified pass puts the answers.
    fn answers(&self, in_place: bool) -> Result<u64, GpuError> {
        let answers = &self.workspace.answers;
        if in_place { answers.host.device_address() } else { Ok(answers.device.address()) }
    }

    /// A batch of this width over the 8-bit table: upload, search, download.
    pub(crate) fn int8(
        &self,
        quantised: &Quantised,
        width: usize,
        class: Class,
    ) -> Result<(), GpuError> {
        let int8 = &self.kernels.int8;
        self.prepare_queries(width, int8.padded, int8.layout)?;
        let groups_per_tile = if int8.ring.is_some() { 4 } else { 8 };
        let phases = Phases::new(
            class,
            width,
            quantised.tiles,
            self.workspace.max_groups(width) / groups_per_tile,
            self.multiprocessors,
        );
        let groups = phases.sample * groups_per_tile;
        self.int8_scan(quantised, width, groups, (0, phases.sample), true)?;
        self.first_thresholds(width, groups)?;
        let mut begin = 0;
        for (i, &end) in phases.ends.iter().enumerate() {
            if i > 0 {
                self.raise_thresholds(quantised, width)?;
            }
            self.int8_scan(quantised, width, groups, (begin, end), false)?;
            begin = end;
        }
        self.rescore(quantised, width, class)?;
        if Self::in_place(width, class) { Ok(()) } else { self.download(width, class.stride()) }
    }

    /// A batch, every row by the formula, or those that its float32 score does not rule out: upload,
    /// search, download.
    pub(crate) fn exact(
        &self,
        batch: usize,
        class: Class,
        float32_first: bool,
    ) -> Result<(), GpuError> {
        let stride = class.stride();
        start_upload(
            &self.workspace.headers.host,
            &self.workspace.headers.device,
            batch,
            self.stream,
        )?;
        start_clearing(&self.workspace.scan_floors, batch, self.stream)?;
        let room = self.workspace.candidates.bytes() / 16;
        let kernels = self.kernels;
        let scan = if float32_first { kernels.float32_scan } else { kernels.exact_scan };
        // As many blocks as run at a time: a few more would run alone in the end.
        let blocks = self.multiprocessors * scan.resident_blocks(256, LIST_BYTES)?;
        let parts = (blocks / batch)
            .min(PART_COUNTS / batch)
            .min(room / (batch * stride))
            .min(self.tables.rows.div_ceil(64))
            .max(1);
        let (w, t) = (self.workspace, self.tables);
        let shape = |grid| Shape { grid, block: 256, shared: LIST_BYTES };
        scan.launch(
            self.stream,
            shape((batch as u32, parts as u32)),
            false,
            &[
                &t.components.address(),
                &t.norms.address(),
                &w.vectors.device.address(),
                &w.headers.device.address(),
                &w.excluded.device.address(),
                &(t.rows as u32),
                &(t.dim as i32),
                &(stride as i32),
                &w.scan_floors.address(),
                &w.candidates.address(),
                &w.part_counts.address(),
            ],
        )?;
        kernels.merge_parts.launch(
            self.stream,
            shape((batch as u32, 1)),
            false,
            &[
                &w.headers.device.address(),
                &w.candidates.address(),
                &w.part_counts.address(),
                &(parts as i32),
                &(stride as i32),
                &w.answers.device.address(),
            ],
        )?;
        self.download(batch, stride)
    }

    /// The scores of `count` rows from `first` for the first query, into the scratch.
    pub(crate) fn score_rows(&self, first: usize, count: usize) -> Result<(), GpuError> {
        let (w, t) = (self.workspace, self.tables);
        assert!(count <= w.scratch.len() && first + count <= t.rows);
        let shape = Shape { grid: (count.div_ceil(8) as u32, 1), block: 256, shared: 0 };
        self.kernels.score_rows.launch(
            self.stream,
            shape,
            false,
            &[
                &t.components.address(),
                &t.norms.address(),
                &w.vectors.device.address(),
                &w.headers.device.address(),
                &(first as u32),
                &(count as u32),
                &(t.dim as i32),
                &w.scratch.address(),
            ],
        )
    }

    fn prepare_queries(&self, batch: usize, padded: usize, layout: Layout) -> Result<(), GpuError> {
        let (w, t) = (self.workspace, self.tables);
        let headers = &w.headers;
        let uploaded = headers.host.device_address()?;
        assert!(batch * padded <= w.query_bytes.len());
        let shape = Shape { grid: (batch as u32, 1), block: 128, shared: 8 * t.dim };
        self.kernels.prepare_queries.launch(
            self.stream,
            shape,
            false,
            &[
                &t.components.address(),
                &w.vectors.device.address(),
                &uploaded,
                &headers.device.address(),
                &(t.dim as i32),
                &(padded as i32),
                &(layout as i32),
                &w.query_bytes.address(),
                &w.scales.address(),
                &w.thresholds.address(),
                &w.floors.address(),
                &w.candidate_counts.address(),
                &w.survivor_counts.address(),
                &w.tickets.address(),
            ],
        )
    }

    fn int8_scan(
        &self,
        quantised: &Quantised,
        width: usize,
        groups: usize,
        (begin, end): (usize, usize),
        sampling: bool,
    ) -> Result<(), GpuError> {
        let int8 = &self.kernels.int8;
        let Scans { queries, sample, scan } = int8
            .scans
            .iter()
            .copied()
            .rfind(|scans| width.is_multiple_of(scans.queries))
            .expect("every width is a multiple of the narrowest scan's");
        let query_groups = width / queries;
        let kernel = if sampling { sample } else { scan };
        let output = self.workspace.scan_output(width, groups);
        let chunks = self.tables.dim.div_ceil(16) as i32;
        let tiles = quantised.int8.address();
        let (scales, bytes) = (quantised.scales.address(), self.workspace.query_bytes.address());
        match int8.ring {
            Some(ring) => {
                let grid = (self.multiprocessors / query_groups).max(1) * query_groups;
                let block = if queries == 64 { 256 } else { 384 };
                kernel.launch(
                    self.stream,
                    Shape { grid: (grid as u32, 1), block, shared: ring.bytes },
                    self.early,
                    &[
                        &tiles,
                        &scales,
                        &bytes,
                        &chunks,
                        &(ring.stages as i32),
                        &(begin as u32),
                        &(end as u32),
                        &(query_groups as i32),
                        &output,
                    ],
                )
            }
            None => {
                // Four warps a block, two half tiles a tile; enough blocks to fill the device twice over.
                let warps = 2 * (end - begin);
                let blocks = (16 * self.multiprocessors / query_groups).clamp(1, warps.div_ceil(4));
                kernel.launch(
                    self.stream,
                    Shape { grid: (query_groups as u32, blocks as u32), block: 128, shared: 0 },
                    self.early,
                    &[&tiles, &scales, &bytes, &chunks, &(begin as u32), &(end as u32), &output],
                )
            }
        }
    }

    fn first_thresholds(&self, width: usize, groups: usize) -> Result<(), GpuError> {
        let w = self.workspace;
        self.kernels.first_thresholds.launch(
            self.stream,
            Shape { grid: (width as u32, 1), block: 256, shared: 0 },
            self.early,
            &[
                &w.headers.device.address(),
                &w.scales.address(),
                &w.scratch.address(),
                &(groups as u32),
                &w.floors.address(),
                &w.thresholds.address(),
            ],
        )
    }

    fn raise_thresholds(&self, quantised: &Quantised, width: usize) -> Result<(), GpuError> {
        let w = self.workspace;
        self.kernels.raise_thresholds.launch(
            self.stream,
            Shape { grid: (width as u32, 1), block: 256, shared: 0 },
            self.early,
            &[
                &w.headers.device.address(),
                &w.scales.address(),
                &quantised.scales.address(),
                &w.candidates.address(),
                &w.candidate_counts.address(),
                &((w.candidates.len() / width) as u32),
                &w.floors.address(),
                &w.thresholds.address(),
            ],
        )
    }

    fn rescore(&self, quantised: &Quantised, width: usize, class: Class) -> Result<(), GpuError> {
        let (w, t) = (self.workspace, self.tables);
        let grid = (width as u32, class.rescoring_parts(width) as u32);
        let answers = self.answers(Self::in_place(width, class))?;
        self.kernels.rescore.launch(
            self.stream,
            Shape { grid, block: 512, shared: LIST_BYTES },
            self.early,
            &[
                &t.components.address(),
                &t.norms.address(),
                &w.vectors.device.address(),
                &w.headers.device.address(),
                &w.excluded.device.address(),
                &w.scales.address(),
                &quantised.scales.address(),
                &quantised.slot_rows.address(),
                &w.candidates.address(),
                &w.candidate_counts.address(),
                &((w.candidates.len() / width) as u32),
                &w.floors.address(),
                &(t.dim as i32),
                &w.survivors.address(),
                &w.survivor_counts.address(),
                &((w.survivors.len() / width) as u32),
                &w.tickets.address(),
                &(class.stride() as i32),
                &answers,
            ],
        )
    }

    fn int4_scan(&self, quantised: &Quantised, int4: &Int4) -> Result<(), GpuError> {
        let w = self.workspace;
        let chunks = self.tables.dim.div_ceil(32);
        let blocks = self.int4_blocks(quantised);
        self.kernels.int4_scan.launch(
            self.stream,
            Shape { grid: (blocks as u32, 1), block: 128, shared: 32 * chunks },
            self.early,
            &[
                &int4.levels.address(),
                &w.query_bytes.address(),
                &w.scales.address(),
                &(chunks as i32),
                &(quantised.tiles as u32),
                &w.scratch.address(),
                &w.best_of_blocks.address(),
            ],
        )
    }

    fn int4_blocks(&self, quantised: &Quantised) -> usize {
        (12 * self.multiprocessors).min(quantised.tiles.div_ceil(4)).min(MAX_BLOCKS4)
    }

    fn int4_threshold(&self, quantised: &Quantised) -> Result<(), GpuError> {
        let (w, t) = (self.workspace, self.tables);
        self.kernels.int4_threshold.launch(
            self.stream,
            Shape { grid: (1, 1), block: 1024, shared: 0 },
            self.early,
            &[
                &t.components.address(),
                &t.norms.address(),
                &w.vectors.device.address(),
                &w.headers.device.address(),
                &w.excluded.device.address(),
                &(t.dim as i32),
                &quantised.slot_rows.address(),
                &w.best_of_blocks.address(),
                &(self.int4_blocks(quantised) as u32),
                &w.floors.address(),
            ],
        )
    }

    fn int4_rescore(&self, quantised: &Quantised, int4: &Int4) -> Result<(), GpuError> {
        let (w, t) = (self.workspace, self.tables);
        assert!(quantised.tiles * TILE_ROWS <= 2 * w.scratch.len());
        let blocks = (4 * self.multiprocessors).min(quantised.tiles);
        self.kernels.int4_rescore.launch(
            self.stream,
            Shape { grid: (blocks as u32, 1), block: 256, shared: LIST_BYTES },
            self.early,
            &[
                &t.components.address(),
                &t.norms.address(),
                &w.vectors.device.address(),
                &w.headers.device.address(),
                &w.excluded.device.address(),
                &(t.dim as i32),
                &w.scales.address(),
                &int4.residuals.address(),
                &int4.half_step,
                &quantised.slot_rows.address(),
                &w.scratch.address(),
                &(quantised.tiles as u32),
                &w.floors.address(),
                &w.candidate_counts.address(),
                &w.survivors.address(),
                &w.survivor_counts.address(),
                &(w.survivors.len().min(1 << 16) as u32),
                &w.tickets.address(),
                &(Class::Small.stride() as i32),
                &self.answers(Self::in_place(1, Class::Small))?,
            ],
        )
    }

    fn download(&self, batch: usize, stride: usize) -> Result<(), GpuError> {
        let answers = &self.workspace.answers;
        start_download(&answers.device, &answers.host, batch * (1 + stride), self.stream)
    }
}
