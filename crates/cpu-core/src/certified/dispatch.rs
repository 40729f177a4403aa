//! Which version of each function of a certified pass a machine runs.

use contract::certificate::Rotation;

use super::kernels::{Asked, Block, Purpose, Space, Strips, portable};
#[cfg(target_arch = "x86_64")]
use super::kernels::{amx, x86};
use super::layout::{Line, Sums};
use super::quantise::{self, BlockSpace, Source};
use super::query::{self, Group};
use crate::instruction_set::{InstructionSet, Kind, dispatched};

impl InstructionSet {
    /// The largest level of a query's plane whose products [`scan`](Self::scan) adds without loss.
    pub(crate) fn largest_level(self) -> i32 {
        match self.kind() {
            #[cfg(target_arch = "x86_64")]
            Kind::Avx512 | Kind::Avx2 => x86::LARGEST_LEVEL_AVX2,
            _ => 127,
        }
    }
}

dispatched! {
    /// See [`portable::scan`].
    fn scan(strips: Strips<'_>, asked: Asked<'_>, space: &mut Space, purpose: Purpose<'_>) =
        amx amx::scan, vnni512 x86::avx512vnni::scan, avx512 x86::avx2::scan, vnni x86::avxvnni::scan,
        avx2 x86::avx2::scan, portable portable::scan;

    /// See [`portable::both_planes`].
    fn both_planes(block: Block<'_>, planes: &[Line], space: &mut Space, sums: &mut [Sums; 2]) =
        amx x86::avx512vnni::both_planes, vnni512 x86::avx512vnni::both_planes, avx512 x86::avx2::both_planes,
        vnni x86::avxvnni::both_planes, avx2 x86::avx2::both_planes, portable portable::both_planes;

    /// See [`query::portable`].
    fn prepare_queries(rotation: &Rotation, largest_level: i32, group: &mut Group) =
        amx query::avx2, vnni512 query::avx2, avx512 query::avx2, vnni query::avx2, avx2 query::avx2,
        portable query::portable;

    /// See [`quantise::portable`].
    fn quantise_block(
        of: Source<'_>, first: usize, space: &mut BlockSpace, to: [&mut [Line]; 2],
    ) =
        amx quantise::avx2, vnni512 quantise::avx2, avx512 quantise::avx2, vnni quantise::avx2, avx2 quantise::avx2,
        portable quantise::portable;
}
