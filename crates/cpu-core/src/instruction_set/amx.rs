//! AMX: for large batches, one instruction multiplies 64 components of 16 queries by those of 16
//! rows. All else is AVX-512 VNNI's.
//!
//! The standard library has no stable functions for these instructions, so this file uses inline
//! assembly.

use std::arch::asm;
use std::arch::x86_64::*;
use std::marker::PhantomData;
use std::sync::OnceLock;

use super::avx512::with_64_bytes;
use super::avx512vnni::Avx512Vnni;
use super::{About, BLOCK_ROWS, Line, Matrices, STRIP_BLOCKS, Sums, Vectors};

/// Queries of a tile register.
const TILE_QUERIES: usize = 16;

/// Queries that are multiplied together.
const GROUP_QUERIES: usize = 2 * TILE_QUERIES;

/// AMX with 8-bit integers, and AVX-512 VNNI.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Amx {
    avx512vnni: Avx512Vnni,
}

impl Vectors for Amx {
    const ABOUT: About = About { name: "AMX", preferred_batch: 256, ..Avx512Vnni::ABOUT };

    type Matrices<'a> = Tiles<'a>;

    fn detect() -> Option<Self> {
        let avx512vnni = Avx512Vnni::detect()?;
        is_available().then_some(Self { avx512vnni })
    }

    runs! {
        with "avx512f,avx512vl,avx512bw,avx512dq,avx512vnni,f16c",
        only Products, else avx512vnni
    }

    with_64_bytes! {
        accumulate |sums, rows, levels| _mm512_dpbusd_epi32(sums, rows, levels)
    }

    #[inline(always)]
    fn matrices<'a>(
        self,
        queries: &'a [Line],
        query_lines: usize,
        _: usize,
        _: &'a mut Vec<Line>,
    ) -> Option<Tiles<'a>> {
        Some(Tiles::configure(self, queries, query_lines))
    }
}

/// Whether the processor has AMX and the system lets this process use it.
fn is_available() -> bool {
    static AVAILABLE: OnceLock<bool> = OnceLock::new();
    *AVAILABLE.get_or_init(|| processor_has_amx() && system_permits_amx())
}

fn processor_has_amx() -> bool {
    const TILE: u32 = 1 << 24;
    const INT8: u32 = 1 << 25;
    __cpuid(0).eax >= 7 && __cpuid_count(7, 0).edx & (TILE | INT8) == TILE | INT8
}

/// The system must save 8 kB of tile registers per thread, so a process must request them (Linux
/// 5.16 or later).
#[cfg(target_os = "linux")]
#[allow(unsafe_code)]
fn system_permits_amx() -> bool {
    const ARCH_REQ_XCOMP_PERM: libc::c_long = 0x1023;
    const TILE_DATA: libc::c_long = 18;
    // SAFETY: this call takes two numbers and touches no memory of ours.
    unsafe { libc::syscall(libc::SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, TILE_DATA) == 0 }
}

#[cfg(not(target_os = "linux"))]
fn system_permits_amx() -> bool {
    false
}

/// This thread's configured tile registers: eight, of 16 rows of 64 bytes. Not for other threads.
pub(crate) struct Tiles<'a> {
    /// `[queries, query_lines]`.
    queries: &'a [Line],
    query_lines: usize,
    of_thread: PhantomData<*const ()>,
}

/// The operand of `ldtilecfg` (Intel's Software Developer's Manual, volume 1, chapter 18).
#[repr(C, align(64))]
struct Configuration {
    palette: u8,
    start_row: u8,
    reserved: [u8; 14],
    bytes_in_row: [u16; 16],
    rows: [u8; 16],
}

impl<'a> Tiles<'a> {
    /// The set is the proof that the machine has the instructions.
    #[allow(unsafe_code)]
    fn configure(_: Amx, queries: &'a [Line], query_lines: usize) -> Self {
        let mut configuration = Configuration {
            palette: 1,
            start_row: 0,
            reserved: [0; 14],
            bytes_in_row: [0; 16],
            rows: [0; 16],
        };
        configuration.bytes_in_row[..8].fill(64);
        configuration.rows[..8].fill(BLOCK_ROWS as u8);
        // SAFETY: reads 64 bytes, the size of a `Configuration`. `detect` has detected the
        // instructions and the system's permission before it made the set that leads here; nothing
        // else in this program uses tile registers.
        unsafe {
            asm!("ldtilecfg [{}]", in(reg) &raw const configuration, options(readonly, nostack));
        }
        Self { queries, query_lines, of_thread: PhantomData }
    }
}

impl Matrices for Tiles<'_> {
    const QUERIES: usize = GROUP_QUERIES;

    #[allow(unsafe_code)]
    fn multiply(&self, blocks: [&[Line]; STRIP_BLOCKS], group: usize, sums: &mut [Sums]) {
        let query_lines = self.query_lines;
        let group_lines = GROUP_QUERIES * query_lines;
        let queries = &self.queries[group * group_lines..][..group_lines];
        let [first, second] = blocks;
        assert!(query_lines > 0 && sums.len() >= GROUP_QUERIES * STRIP_BLOCKS);
        assert!(first.len() == BLOCK_ROWS * query_lines && second.len() == first.len());
        let query_bytes = query_lines * size_of::<Line>();
        // SAFETY: each of `query_lines` steps reads the next 16 lines of either block, which have
        // 16 times `query_lines`; and a line of each of 2 times 16 queries, `query_bytes` apart.
        // The stores write 4 times 16 `Sums`, those of one tile two apart, beginning with the first
        // two of each half: 64 of `sums`, which has as many. `self` proves that the tile registers
        // are set up on this thread.
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
impl Drop for Tiles<'_> {
    #[allow(unsafe_code)]
    fn drop(&mut self) {
        // SAFETY: puts the tile registers of this thread back to how `configure` found them.
        unsafe { asm!("tilerelease", options(nomem, nostack)) };
    }
}
