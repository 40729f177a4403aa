//! The instruction sets of CPUs, and one trait for all of them.
//!
//! An algorithm is a [`Kernel`]: one function, generic over the set that it runs with. A set is a
//! token that implements [`Vectors`]. Having one proves that the machine has the instructions, so
//! its operations are safe. [`InstructionSet::run`] chooses the set at run time:
//!
//! ```text
//! InstructionSet::run(kernel) ─▶ set.run(kernel) ─▶ fn inner, with the set's target features
//!                                                       kernel.run(set)      #[inline(always)]
//!                                                           set.add(a, b)    #[inline(always)]
//! ```
//!
//! Only `inner` has target features. So all that stands between it and an operation must be
//! `#[inline(always)]`, and loops are `for` and `while`, never closures: a closure that a library
//! function calls is not always inlined, and is without the features then. A kernel may run
//! another by its set; that is a function of its own, with registers of its own.
//!
//! A set has a file, which is all that must be written for it, and a line in the table below.

mod lines;
#[macro_use]
mod operations;

#[cfg(target_arch = "x86_64")]
mod amx;
#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(target_arch = "x86_64")]
mod avx512vnni;
#[cfg(target_arch = "x86_64")]
mod avxvnni;
#[cfg(target_arch = "aarch64")]
mod neon;
#[cfg(target_arch = "aarch64")]
mod neon_dotprod;
#[cfg(target_arch = "aarch64")]
mod neon_i8mm;
mod portable;
#[cfg(target_arch = "x86_64")]
mod sse2;
#[cfg(test)]
mod tests;
mod vectors;

use std::fmt;

pub(crate) use lines::{BLOCK_ROWS, Line, STRIP_BLOCKS, Sums};
pub(crate) use vectors::{About, Kernel, Matrices, NoMatrices, Vectors, Work};

/// Makes [`InstructionSet`] from the table of sets.
macro_rules! instruction_sets {
    ($($architecture:meta: $module:ident::$set:ident;)*) => {
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        enum Set {
            $(#[cfg($architecture)] $set($module::$set),)*
        }

        impl InstructionSet {
            /// All instruction sets of this machine, best first. The last is portable and always
            /// available.
            pub fn available() -> Vec<Self> {
                let mut sets = Vec::new();
                $(
                    #[cfg($architecture)]
                    sets.extend($module::$set::detect().map(|set| Self(Set::$set(set))));
                )*
                sets
            }

            /// Runs an algorithm with these instructions.
            #[inline]
            pub(crate) fn run<K: Kernel>(self, kernel: K) -> K::Output {
                match self.0 {
                    $(#[cfg($architecture)] Set::$set(set) => set.run(kernel),)*
                }
            }

            fn about(self) -> About {
                match self.0 {
                    $(#[cfg($architecture)] Set::$set(_) => $module::$set::ABOUT,)*
                }
            }
        }
    };
}

// Best first.
instruction_sets! {
    target_arch = "x86_64": amx::Amx;
    target_arch = "x86_64": avx512vnni::Avx512Vnni;
    target_arch = "x86_64": avx512::Avx512;
    target_arch = "x86_64": avxvnni::AvxVnni;
    target_arch = "x86_64": avx2::Avx2;
    target_arch = "x86_64": sse2::Sse2;
    target_arch = "aarch64": neon_i8mm::NeonI8mm;
    target_arch = "aarch64": neon_dotprod::NeonDotprod;
    target_arch = "aarch64": neon::Neon;
    all(): portable::Portable;
}

/// An instruction set that this machine has; a value of this type is the proof.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InstructionSet(Set);

/// The time of a [thread's share](InstructionSet::thread_share).
const THREAD_SHARE_NANOSECONDS: f64 = 1e6 / 3.0;

impl InstructionSet {
    /// The best instruction set of this machine.
    pub fn best() -> Self {
        Self::available()[0]
    }

    /// Whether it converts float16 to float32.
    pub(crate) fn has_float16(self) -> bool {
        self.about().has_float16
    }

    /// The largest level of a query's plane for which sums are exact.
    pub(crate) fn largest_level(self) -> i32 {
        self.about().largest_level
    }

    /// Beyond this many queries, larger batches gain nothing: the arithmetic takes the time, not
    /// the table.
    pub(crate) fn preferred_batch(self) -> usize {
        self.about().preferred_batch
    }

    /// Products of a component and a query per thread before another thread is woken: about a third
    /// of a millisecond. Waking and waiting costs a tenth of that, and takes a core from the HTTP
    /// threads.
    pub(crate) fn thread_share(self) -> usize {
        self.about().thread_share
    }

    /// Products of a component and a query that a thread computes in a nanosecond.
    pub(crate) fn products_per_nanosecond(self) -> f64 {
        self.about().thread_share as f64 / THREAD_SHARE_NANOSECONDS
    }

    /// Float64 multiply-adds per task of a full pass: about 40 microseconds of a thread.
    pub(crate) fn task_work(self) -> usize {
        self.about().task_work
    }
}

impl fmt::Display for InstructionSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.about().name)
    }
}
