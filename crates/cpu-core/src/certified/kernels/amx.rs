//! Large batches with AMX: one instruction multiplies 64 components of 16 queries by those of 16
//! rows. The rest is in [`x86::avx512vnni`].
//!
//! The standard library has no stable functions for these instructions, so this file uses inline
//! assembly.

use std::arch::asm;
use std::marker::PhantomData;

use super::{Asked, FEW_QUERIES, GROUP_QUERIES, Purpose, Space, Strips, x86};
use crate::certified::layout::{BLOCK_ROWS, Line, STRIP_BLOCKS, Sums};

/// Queries of a tile register.
const TILE_QUERIES: usize = 16;

const _: () = assert!(GROUP_QUERIES == 2 * TILE_QUERIES);

/// As [`portable::scan`](super::portable::scan).
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
pub(crate) fn scan(
    strips: Strips<'_>,
    asked: Asked<'_>,
    space: &mut Space,
    mut purpose: Purpose<'_>,
) {
    let queries = asked.thresholds.len();
    if queries <= FEW_QUERIES {
        return x86::avx512vnni::scan(strips, asked, space, purpose);
    }
    let Space { unfolded, sums } = space;
    let (first, second) = unfolded.split_at_mut(strips.layout.unfolded_lines());
    let tiles = Tiles::configure();
    let groups = asked.queries.chunks_exact(GROUP_QUERIES * asked.query_lines);
    for (strip, blocks) in strips.iter().enumerate() {
        x86::avx512vnni::unfold(&blocks[0], first);
        x86::avx512vnni::unfold(&blocks[1], second);
        let sums_of_groups = sums.as_chunks_mut::<{ GROUP_QUERIES * STRIP_BLOCKS }>().0;
        for (g, (group, sums)) in groups.clone().zip(sums_of_groups).enumerate() {
            tiles.products(first, second, group, sums);
            strips.prefetch_next(strip, g..g + 1, groups.len());
        }
        let sums = &sums[..queries * STRIP_BLOCKS];
        x86::avx512vnni::fulfil(&mut purpose, strip, &blocks, sums, asked);
    }
}

/// This thread's configured tile registers: eight, of 16 rows of 64 bytes. Not for other threads.
struct Tiles(PhantomData<*const ()>);

/// The operand of `ldtilecfg` (Intel's Software Developer's Manual, volume 1, chapter 18).
#[repr(C, align(64))]
struct Configuration {
    palette: u8,
    start_row: u8,
    reserved: [u8; 14],
    bytes_in_row: [u16; 16],
    rows: [u8; 16],
}

impl Tiles {
    #[allow(unsafe_code)]
    fn configure() -> Self {
        let mut configuration = Configuration {
            palette: 1,
            start_row: 0,
            reserved: [0; 14],
            bytes_in_row: [0; 16],
            rows: [0; 16],
        };
        configuration.bytes_in_row[..8].fill(64);
        configuration.rows[..8].fill(BLOCK_ROWS as u8);
        // SAFETY: reads 64 bytes, the size of a `Configuration`. `InstructionSet::available`
        // detects the instructions and the system's permission before it makes the instruction set
        // that leads here; nothing else in this program uses tile registers.
        unsafe {
            asm!("ldtilecfg [{}]", in(reg) &raw const configuration, options(readonly, nostack));
        }
        Self(PhantomData)
    }

    /// Sums `[GROUP_QUERIES, STRIP_BLOCKS]` of a strip's unfolded blocks, `[16 · n]` lines each,
    /// with queries of `n` lines.
    #[allow(unsafe_code)]
    fn products(
        &self,
        first: &[Line],
        second: &[Line],
        queries: &[Line],
        sums: &mut [Sums; GROUP_QUERIES * STRIP_BLOCKS],
    ) {
        let query_lines = queries.len() / GROUP_QUERIES;
        assert!(query_lines > 0 && queries.len() == GROUP_QUERIES * query_lines);
        assert!(first.len() == BLOCK_ROWS * query_lines && second.len() == first.len());
        let query_bytes = query_lines * size_of::<Line>();
        // SAFETY: each of `query_lines` steps reads the next 16 lines of either block, which have
        // 16 times `query_lines`; and a line of each of 2 times 16 queries, `query_bytes` apart.
        // The stores write 4 times 16 `Sums`, those of one tile two apart, beginning with the first
        // two of each half: all of `sums`. `self` proves that the tile registers are set up on this
        // thread.
        unsafe {
            asm!(
                "tilezero tmm0",
                "tilezero tmm1",
                "tilezero tmm2",
                "tilezero tmm3",
                "2:",
                "tileloadd tmm6, [{first} + {line}]",
                "tileloadd tmm4, [{low} + {query_bytes}]",
                "tdpbsud tmm0, tmm4, tmm6",
                "tileloadd tmm7, [{second} + {line}]",
                "tdpbsud tmm1, tmm4, tmm7",
                "tileloadd tmm5, [{high} + {query_bytes}]",
                "tdpbsud tmm2, tmm5, tmm6",
                "tdpbsud tmm3, tmm5, tmm7",
                "add {first}, 1024",
                "add {second}, 1024",
                "add {low}, 64",
                "add {high}, 64",
                "dec {steps}",
                "jnz 2b",
                "add {line}, {line}",
                "tilestored [{sums} + {line}], tmm0",
                "tilestored [{sums} + {line} + 64], tmm1",
                "tilestored [{sums} + {line} + 2048], tmm2",
                "tilestored [{sums} + {line} + 2112], tmm3",
                first = inout(reg) first.as_ptr() => _,
                second = inout(reg) second.as_ptr() => _,
                low = inout(reg) queries.as_ptr() => _,
                high = inout(reg) queries[TILE_QUERIES * query_lines..].as_ptr() => _,
                query_bytes = in(reg) query_bytes,
                steps = inout(reg) query_lines => _,
                line = inout(reg) size_of::<Line>() => _,
                sums = in(reg) sums.as_mut_ptr(),
                out("tmm0") _, out("tmm1") _, out("tmm2") _, out("tmm3") _,
                out("tmm4") _, out("tmm5") _, out("tmm6") _, out("tmm7") _,
                options(nostack),
            );
        }
    }
}

/// Releases the tile registers, so that the system has less to save when this thread waits.
impl Drop for Tiles {
    #[allow(unsafe_code)]
    fn drop(&mut self) {
        // SAFETY: puts the tile registers of this thread back to how `configure` found them.
        unsafe { asm!("tilerelease", options(nomem, nostack)) };
    }
}
