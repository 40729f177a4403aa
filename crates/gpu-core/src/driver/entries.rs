//! The entries by which kernels are found. They are made of the declarations of kernels' files.

#![allow(unsafe_code)]

use std::marker::PhantomData;

/// A kernel's name, its machine code and its parameter type. The macro `abi!` makes entries.
#[derive(Debug)]
pub struct Entry<P> {
    /// The file's name without folder and extension.
    pub(super) file: &'static str,
    /// The machine code of the file.
    pub(super) code: fn() -> &'static [u8],
    pub(super) name: &'static str,
    /// Threads per block; for kernels that work with fewer, the maximum.
    pub(super) threads: u32,
    params: PhantomData<fn(P)>,
}

impl<P> Entry<P> {
    /// An entry of a kernel that was compiled from its declaration.
    ///
    /// # Safety
    /// - The code has a kernel of this name.
    /// - Its only parameter is a `P`.
    /// - Its launch bounds allow this number of threads.
    pub const unsafe fn new(
        file: &'static str,
        code: fn() -> &'static [u8],
        name: &'static str,
        threads: u32,
    ) -> Self {
        Self { file, code, name, threads, params: PhantomData }
    }
}

impl<P> Clone for Entry<P> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<P> Copy for Entry<P> {}

/// Makes the entries of the files that `abi!` declares, and asserts that the structures have the
/// layouts that their kernels were compiled with.
#[doc(hidden)]
#[macro_export]
macro_rules! kernel_files {
    (
        name: $interface:literal;
        uses: $uses:tt;
        $(constants $constants:tt)?
        $(enums $enums:tt)?
        $(data $data:tt)?
        $(unions $unions:tt)?
        $(params $params:tt)?
        files { $($folder:literal / $file:ident for $target:ident {
            $($bounds:tt $($kernel:ident),+ : $kparams:ident;)+
        })* }
    ) => {
        const _: () = include!(concat!(env!("OUT_DIR"), "/abi/", $interface, ".rs"));

        /// The kernels, by file.
        #[allow(non_upper_case_globals, unused_imports, unsafe_code)]
        pub(crate) mod entries {
            $(pub(crate) mod $file {
                fn code() -> &'static [u8] {
                    include_bytes!(concat!(env!("OUT_DIR"), "/", stringify!($file), ".fatbin"))
                }
                $($(
                // SAFETY: the build script compiles the file with the header of this declaration,
                // and fails if the kernel is not there.
                pub(crate) const $kernel: $crate::driver::Entry<super::super::$kparams> = unsafe {
                    $crate::driver::Entry::new(
                        stringify!($file),
                        code,
                        stringify!($kernel),
                        $crate::kernel_files!(@threads $bounds),
                    )
                };)+)+
            })*
        }
    };
    (@threads ($threads:literal $(, $blocks:literal)?)) => { $threads };
}
