//! The instruction sets of the machine (AMX, AVX-512 VNNI, AVX-512, AVX-VNNI, AVX2, or none of
//! these), and how a function is chosen by them: [`dispatched`] makes one function from its
//! versions.

use std::fmt;
#[cfg(target_arch = "x86_64")]
use std::sync::OnceLock;

/// An instruction set that this machine has; a value of this type is the proof.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InstructionSet(Kind);

/// The instruction set that an [`InstructionSet`] stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
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
            let avx2 = is_x86_feature_detected!("avx2")
                && is_x86_feature_detected!("fma")
                && is_x86_feature_detected!("f16c");
            let avx512 = avx2
                && is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512vl")
                && is_x86_feature_detected!("avx512bw")
                && is_x86_feature_detected!("avx512dq");
            let avx512vnni = avx512 && is_x86_feature_detected!("avx512vnni");
            let has = [
                (Kind::Amx, avx512vnni && amx_is_available()),
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

    /// Which set it is.
    pub(crate) fn kind(self) -> Kind {
        self.0
    }

    /// Whether it converts float16 to float32.
    pub(crate) fn has_float16(self) -> bool {
        self.0 != Kind::Portable
    }

    /// The best instruction set of this machine.
    pub fn best() -> Self {
        Self::available()[0]
    }

    /// Beyond this many queries, larger batches gain nothing: the arithmetic takes the time, not
    /// the table.
    pub(crate) fn preferred_batch(self) -> usize {
        match self.0 {
            #[cfg(target_arch = "x86_64")]
            Kind::Amx => 256,
            _ => 64,
        }
    }

    /// Products of a component and a query per thread before another thread is woken: about a third
    /// of a millisecond. Waking and waiting costs a tenth of that, and takes a core from the HTTP
    /// threads.
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
}

/// Whether the processor has AMX and the system lets this process use it.
#[cfg(target_arch = "x86_64")]
fn amx_is_available() -> bool {
    static AVAILABLE: OnceLock<bool> = OnceLock::new();
    *AVAILABLE.get_or_init(|| processor_has_amx() && system_permits_amx())
}

#[cfg(target_arch = "x86_64")]
fn processor_has_amx() -> bool {
    use std::arch::x86_64::{__cpuid, __cpuid_count};
    const TILE: u32 = 1 << 24;
    const INT8: u32 = 1 << 25;
    __cpuid(0).eax >= 7 && __cpuid_count(7, 0).edx & (TILE | INT8) == TILE | INT8
}

/// The system must save 8 kB of tile registers per thread, so a process must request them (Linux
/// 5.16 or later).
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
#[allow(unsafe_code)]
fn system_permits_amx() -> bool {
    const ARCH_REQ_XCOMP_PERM: libc::c_long = 0x1023;
    const TILE_DATA: libc::c_long = 18;
    // SAFETY: this call takes two numbers and touches no memory of ours.
    unsafe { libc::syscall(libc::SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, TILE_DATA) == 0 }
}

#[cfg(all(target_arch = "x86_64", not(target_os = "linux")))]
fn system_permits_amx() -> bool {
    false
}

/// Functions with versions for some of the sets, as methods of [`InstructionSet`]. Each arm names
/// the version for a set; or one function, which must be `#[inline(always)]`, and the features that
/// it is compiled for.
macro_rules! dispatched {
    ($(
        $(#[$meta:meta])*
        fn $name:ident($($argument:ident: $type:ty),* $(,)?) =
            amx $amx:path, vnni512 $vnni512:path, avx512 $avx512:path, vnni $vnni:path, avx2 $avx2:path, portable $portable:path;
    )*) => {
        impl $crate::instruction_set::InstructionSet {
            $(
                $(#[$meta])*
                #[allow(unsafe_code)]
                pub(crate) fn $name(self, $($argument: $type),*) {
                    use $crate::instruction_set::Kind;
                    match self.kind() {
                        // SAFETY: only `available` creates such a value, after it has detected all
                        // features that the version is compiled for.
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
    ($(
        $(#[$meta:meta])*
        fn $name:ident($($argument:ident: $type:ty),* $(,)?) =
            $portable:path, compiled for avx512 $features512:literal, avx2 $features2:literal;
    )*) => {
        impl $crate::instruction_set::InstructionSet {
            $(
                $(#[$meta])*
                #[allow(unsafe_code)]
                pub(crate) fn $name(self, $($argument: $type),*) {
                    use $crate::instruction_set::Kind;

                    #[cfg(target_arch = "x86_64")]
                    #[target_feature(enable = $features512)]
                    fn with_avx512($($argument: $type),*) {
                        $portable($($argument),*);
                    }

                    #[cfg(target_arch = "x86_64")]
                    #[target_feature(enable = $features2)]
                    fn with_avx2($($argument: $type),*) {
                        $portable($($argument),*);
                    }

                    match self.kind() {
                        // SAFETY: only `available` creates such a value, after it has detected all
                        // features that the version is compiled for.
                        #[cfg(target_arch = "x86_64")]
                        Kind::Amx | Kind::Avx512Vnni | Kind::Avx512 => unsafe {
                            with_avx512($($argument),*);
                        },
                        // SAFETY: as above.
                        #[cfg(target_arch = "x86_64")]
                        Kind::AvxVnni | Kind::Avx2 => unsafe { with_avx2($($argument),*) },
                        Kind::Portable => $portable($($argument),*),
                    }
                }
            )*
        }
    };
}

pub(crate) use dispatched;

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
