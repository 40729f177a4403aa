//! Declares once, with [`abi!`](crate::abi!), what Rust and CUDA share: constants, structures, kernels, and the
//! files that kernels are compiled from.
//!
//! The library gets Rust items. The build script compiles the same declarations, writes a header
//! for nvcc (`abi/NAME.cuh`, beside the compiled kernels) and checks the kernels against them.
//! Sizes, alignments and offsets are asserted in both languages.

mod pointer;

pub use pointer::{DevicePointer, DevicePointerMut};

/// The type of a kernel's only parameter.
///
/// # Safety
/// - The type has the layout of the structure of the same name in the generated header.
#[allow(unsafe_code)]
pub unsafe trait Params: Copy {}

/// Declares an interface between Rust and CUDA. The sections are in this order; each but the
/// last may be left out.
///
/// - `constants`: `NAME: type = value;`. A `usize` is an `int` in CUDA.
/// - `enums`: over `i32`.
/// - `data`: structures in device memory. They have no padding.
/// - `unions`: unions of such structures, all of the same size.
/// - `params`: the parameter structures of kernels, and structures in them.
/// - `files`: `"folder" / file for Target { (threads) kernel, kernel: Params; }`. The numbers in
///   parentheses become `__launch_bounds__`.
///
/// What is declared becomes items here. `kernel_files!` makes the rest of it: in the library, the
/// entries by which kernels are found; in a build script, a description.
#[doc(hidden)]
#[macro_export]
macro_rules! abi {
    (@items
        name: $interface:literal;
        uses: [$($uses:literal),*];
        $(constants { $($(#[doc = $cdoc:literal])* $cname:ident: $cty:ty = $cvalue:expr;)* })?
        $(enums { $($(#[doc = $edoc:literal])* enum $ename:ident {
            $($(#[doc = $vdoc:literal])* $vname:ident = $vvalue:literal,)+
        })* })?
        $(data { $($(#[doc = $ddoc:literal])* struct $dname:ident {
            $($(#[doc = $dfdoc:literal])* $dfield:ident: $dfty:ty,)+
        })* })?
        $(unions { $($(#[doc = $udoc:literal])* union $uname:ident {
            $($ufield:ident: $ufty:ident,)+
        })* })?
        $(params { $($(#[doc = $pdoc:literal])* struct $pname:ident {
            $($(#[doc = $pfdoc:literal])* $pfield:ident: $pfty:ty,)+
        })* })?
        files $files:tt
    ) => {
        // Not dead code: the other language may use what this one does not.
        $($($(#[doc = $cdoc])* #[allow(dead_code)] pub(crate) const $cname: $cty = $cvalue;)*)?

        $($($(#[doc = $edoc])*
        #[allow(dead_code)]
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[repr(i32)]
        pub(crate) enum $ename { $($(#[doc = $vdoc])* $vname = $vvalue,)+ })*)?

        $($($(#[doc = $ddoc])*
        #[allow(dead_code)]
        #[derive(Debug, Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
        #[repr(C)]
        pub(crate) struct $dname { $($(#[doc = $dfdoc])* pub(crate) $dfield: $dfty,)+ })*)?

        $($($(#[doc = $udoc])*
        #[allow(dead_code)]
        #[derive(Clone, Copy)]
        #[repr(C)]
        pub(crate) union $uname { $(pub(crate) $ufield: $ufty,)+ }

        impl std::fmt::Debug for $uname {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(stringify!($uname))
            }
        }

        // SAFETY: each member is plain data and as large as the union. So all bits are set, and any
        // bits are a valid value.
        #[allow(unsafe_code)]
        unsafe impl bytemuck::Zeroable for $uname {}
        // SAFETY: all bits are set and any bits are a valid value, because each member is plain
        // data and as large as the union; it is `Copy`, and `Debug` reads no member.
        #[allow(unsafe_code)]
        unsafe impl bytemuck::Pod for $uname {}
        const _: () = {
            const fn plain<T: bytemuck::Pod>() -> usize {
                size_of::<T>()
            }
            $(assert!(plain::<$ufty>() == size_of::<$uname>());)+
        };)*)?

        $($($(#[doc = $pdoc])*
        #[allow(dead_code)]
        #[derive(Debug, Clone, Copy)]
        #[repr(C)]
        pub(crate) struct $pname { $($(#[doc = $pfdoc])* pub(crate) $pfield: $pfty,)+ }

        // SAFETY: the header is written from this declaration, and both sides assert the layout.
        #[allow(unsafe_code)]
        unsafe impl $crate::abi::Params for $pname {})*)?
    };
    ($($all:tt)*) => {
        $crate::abi! { @items $($all)* }
        $crate::kernel_files! { $($all)* }
    };
}
