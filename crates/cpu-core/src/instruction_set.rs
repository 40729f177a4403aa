use std::fmt;

use contract::certificate::Rotation;

use crate::certified::kernels::{Asked, Block, Purpose, Space, Strips, portable};
#[cfg(target_arch = "x86_64")]
use crate::certified::kernels::{amx, x86};
use crate::certified::layout::{Line, Sums};
use crate::certified::quantise::{self, BlockSpace, Source};
use crate::certified::query::{self, Group};
use crate::full_scan::dots::{self, Chunk};

/// An instruction set that this machine has; a value of this type is the proof.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InstructionSet(Kind);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    #[cfg(target_arch = "x86_64")]
    Amx,
    #[cfg(target_arch = "x86_64")]
    Avx512Vnni,
    #[cfg(target_arch = "x86_64")]
    Avx512,
    #[cfg(target_arch = "x86_64")]
    AvxVnni,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    Portable,
}

impl InstructionSet {
    /// All instruction sets of this machine, best first. The last is portable and always available.
    pub fn available() -> Vec<Self> {
        let mut sets = Vec::new();
        #[cfg(target_arch = "x86_64")]
        {
            let avx2 = is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma");
            let avx512 = avx2 && is_x86_feature_detected!("avx512f");
            let avx512vnni = avx512
                && is_x86_feature_detected!("avx512bw")
                && is_x86_feature_detected!("avx512vnni");
            let has = [
                (Kind::Amx, avx512vnni && amx::is_available()),
                (Kind::Avx512Vnni, avx512vnni),
                (Kind::Avx512, avx512),
                (Kind::AvxVnni, avx2 && is_x86_feature_detected!("avxvnni")),
                (Kind::Avx2, avx2),
            ];
            sets.extend(has.into_iter().filter(|(_, has)| *has).map(|(kind, _)| Self(kind)));
        }
        sets.push(Self(Kind::Portable));
        sets
    }

    /// The best that this machine has.
    pub fn best() -> Self {
        Self::available()[0]
    }

    /// Beyond this many queries, larger batches gain nothing: the arithmetic takes the time, not the table.
    pub(crate) fn preferred_batch(self) -> usize {
        match self.0 {
            #[cfg(target_arch = "x86_64")]
            Kind::Amx => 256,
            _ => 64,
        }
    }

    /// Products of a component and a query per thread before another thread is woken: about a third of a millisecond.
    /// Waking and waiting costs a tenth of that, and takes a core from the HTTP threads.
    pub(crate) fn thread_share(self) -> usize {
        match self.0 {
            #[cfg(target_arch = "x86_64")]
            Kind::Amx | Kind::Avx512Vnni => 128_000_000,
            #[cfg(target_arch = "x86_64")]
            Kind::Avx512 | Kind::AvxVnni | Kind::Avx2 => 32_000_000,
            Kind::Portable => 8_000_000,
        }
    }

    /// Float64 multiply-adds per task of a full pass: about 40 microseconds of a thread.
    pub(crate) fn task_work(self) -> usize {
        match self.0 {
            #[cfg(target_arch = "x86_64")]
            Kind::Amx | Kind::Avx512Vnni | Kind::Avx512 => 800_000,
            #[cfg(target_arch = "x86_64")]
            Kind::AvxVnni | Kind::Avx2 => 200_000,
            Kind::Portable => 50_000,
        }
    }

    /// The largest level of a query's plane for which [`scan`](Self::scan) adds products exactly.
    pub(crate) fn largest_level(self) -> i32 {
        match self.0 {
            #[cfg(target_arch = "x86_64")]
            Kind::Avx512 | Kind::Avx2 => x86::LARGEST_LEVEL_AVX2,
            _ => 127,
        }
    }
}

/// Functions with versions for some of the sets. Each arm names the version for a set.
macro_rules! dispatched {
    ($(
        $(#[$meta:meta])*
        fn $name:ident($($argument:ident: $type:ty),* $(,)?) =
            amx $amx:path, vnni512 $vnni512:path, avx512 $avx512:path, vnni $vnni:path, avx2 $avx2:path, portable $portable:path;
    )*) => {
        impl InstructionSet {
            $(
                $(#[$meta])*
                #[allow(unsafe_code)]
                pub(crate) fn $name(self, $($argument: $type),*) {
                    match self.0 {
                        // SAFETY: only `available` creates such a value, after it has detected all features that
                        // the version is compiled for.
                        #[cfg(target_arch = "x86_64")]
                        Kind::Amx => unsafe { $amx($($argument),*) },
                        // SAFETY: as above.
                        #[cfg(target_arch = "x86_64")]
                        Kind::Avx512Vnni => unsafe { $vnni512($($argument),*) },
                        // SAFETY: as above.
                        #[cfg(target_arch = "x86_64")]
                        Kind::Avx512 => unsafe { $avx512($($argument),*) },
                        // SAFETY: as above.
                        #[cfg(target_arch = "x86_64")]
                        Kind::AvxVnni => unsafe { $vnni($($argument),*) },
                        // SAFETY: as above.
                        #[cfg(target_arch = "x86_64")]
                        Kind::Avx2 => unsafe { $avx2($($argument),*) },
                        Kind::Portable => $portable($($argument),*),
                    }
                }
            )*
        }
    };
}

dispatched! {
    /// The dot products `[rows, queries]` of `rows` and `queries`, each `[_, chunks]`.
    fn dots(rows: &[Chunk], queries: &[Chunk], chunks: usize, dots: &mut [f64]) =
        amx dots::avx512::dots, vnni512 dots::avx512::dots, avx512 dots::avx512::dots,
        vnni dots::avx2::dots, avx2 dots::avx2::dots, portable dots::portable;

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

impl fmt::Display for InstructionSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            #[cfg(target_arch = "x86_64")]
            Kind::Amx => "AMX",
            #[cfg(target_arch = "x86_64")]
            Kind::Avx512Vnni => "AVX-512 VNNI",
            #[cfg(target_arch = "x86_64")]
            Kind::Avx512 => "AVX-512",
            #[cfg(target_arch = "x86_64")]
            Kind::AvxVnni => "AVX-VNNI",
            #[cfg(target_arch = "x86_64")]
            Kind::Avx2 => "AVX2",
            Kind::Portable => "portable",
        })
    }
}
