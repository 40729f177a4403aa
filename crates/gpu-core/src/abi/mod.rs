//! Declares once, with [`abi!`], what Rust and CUDA share: constants, structures, kernels, and the
//! files that kernels are compiled from.
//!
//! The library gets Rust items. The build script compiles the same declarations, writes a header
//! for nvcc (`abi/NAME.cuh`, beside the compiled kernels) and checks the kernels against them.
//! Sizes, alignments and offsets are asserted in both languages.

mod describe;
mod pointer;

use std::marker::PhantomData;

#[allow(unused_imports)]
pub(crate) use describe::{
    CConstant, Constant, DeclaredKernel, Enum, Field, File, Interface, Record, Target,
};
pub(crate) use pointer::{CType, DevicePointer, DevicePointerMut};

/// The type of a kernel's only parameter.
///
/// # Safety
/// - The type has the layout of the structure of the same name in the generated header.
#[allow(unsafe_code)]
pub(crate) unsafe trait Params: CType {}

/// A kernel's name, its file and its parameter type. Only [`abi!`] makes entries.
#[derive(Debug)]
pub(crate) struct Entry<P> {
    /// As in [`File::stem`].
    pub(crate) file: &'static str,
    pub(crate) name: &'static str,
    /// Threads per block; for kernels that work with fewer, the maximum.
    pub(crate) threads: u32,
    params: PhantomData<fn(P)>,
}

impl<P> Entry<P> {
    pub(crate) const fn new(file: &'static str, name: &'static str, threads: u32) -> Self {
        Self { file, name, threads, params: PhantomData }
    }
}

impl<P> Clone for Entry<P> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<P> Copy for Entry<P> {}

/// Declares an interface between Rust and CUDA. The sections are in this order; each may be empty.
///
/// - `constants`: `NAME: type = value;`. A `usize` is an `int` in CUDA.
/// - `enums`: over `i32`.
/// - `data`: structures in device memory. They have no padding.
/// - `unions`: unions of such structures, all of the same size.
/// - `params`: the parameter structures of kernels, and structures in them.
/// - `files`: `"folder" / file for Target { (threads) kernel, kernel: Params; }`. The numbers in
///   parentheses become `__launch_bounds__`.
macro_rules! abi {
    (
        name: $interface:literal;
        uses: [$($uses:literal),*];
        constants { $($(#[doc = $cdoc:literal])* $cname:ident: $cty:ty = $cvalue:expr;)* }
        enums { $($(#[doc = $edoc:literal])* enum $ename:ident {
            $($(#[doc = $vdoc:literal])* $vname:ident = $vvalue:literal,)+
        })* }
        data { $($(#[doc = $ddoc:literal])* struct $dname:ident {
            $($(#[doc = $dfdoc:literal])* $dfield:ident: $dfty:ty,)+
        })* }
        unions { $($(#[doc = $udoc:literal])* union $uname:ident {
            $($ufield:ident: $ufty:ident,)+
        })* }
        params { $($(#[doc = $pdoc:literal])* struct $pname:ident {
            $($(#[doc = $pfdoc:literal])* $pfield:ident: $pfty:ty,)+
        })* }
        files { $($folder:literal / $file:ident for $target:ident {
            $($bounds:tt $($kernel:ident),+ : $kparams:ident;)+
        })* }
    ) => {
        // Not dead code: the other language may use what this one does not.
        $($(#[doc = $cdoc])* #[allow(dead_code)] pub(crate) const $cname: $cty = $cvalue;)*

        $($(#[doc = $edoc])*
        #[allow(dead_code)]
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[repr(i32)]
        pub(crate) enum $ename { $($(#[doc = $vdoc])* $vname = $vvalue,)+ }

        impl $crate::abi::CType for $ename {
            fn c_type() -> String {
                stringify!($ename).to_owned()
            }
        })*

        $($(#[doc = $ddoc])*
        #[allow(dead_code)]
        #[derive(Debug, Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
        #[repr(C)]
        pub(crate) struct $dname { $($(#[doc = $dfdoc])* pub(crate) $dfield: $dfty,)+ }

        impl $crate::abi::CType for $dname {
            fn c_type() -> String {
                stringify!($dname).to_owned()
            }
        })*

        $($(#[doc = $udoc])*
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
        };

        impl $crate::abi::CType for $uname {
            fn c_type() -> String {
                stringify!($uname).to_owned()
            }
        })*

        $($(#[doc = $pdoc])*
        #[allow(dead_code)]
        #[derive(Debug, Clone, Copy)]
        #[repr(C)]
        pub(crate) struct $pname { $($(#[doc = $pfdoc])* pub(crate) $pfield: $pfty,)+ }

        impl $crate::abi::CType for $pname {
            fn c_type() -> String {
                stringify!($pname).to_owned()
            }
        }

        // SAFETY: the header is written from this declaration, and both sides assert the layout.
        #[allow(unsafe_code)]
        unsafe impl $crate::abi::Params for $pname {})*

        /// The kernels, by file.
        #[allow(non_upper_case_globals, unused_imports)]
        pub(crate) mod entries {
            $(pub(crate) mod $file {
                $($(pub(crate) const $kernel: $crate::abi::Entry<super::super::$kparams> =
                    $crate::abi::Entry::new(
                        stringify!($file), stringify!($kernel), abi!(@threads $bounds));)+)+
            })*
        }

        /// The whole interface, for the build script.
        #[allow(dead_code)]
        pub(crate) fn interface() -> $crate::abi::Interface {
            #[allow(unused_imports)]
            use $crate::abi::{CConstant, CType, Constant, DeclaredKernel, Enum, Field, File, Record};
            $crate::abi::Interface {
                name: $interface,
                uses: vec![$($uses),*],
                constants: vec![$(Constant {
                    doc: &[$($cdoc),*],
                    name: stringify!($cname),
                    c_type: <$cty as CConstant>::C_TYPE,
                    value: $cname.c_value(),
                }),*],
                enums: vec![$(Enum {
                    doc: &[$($edoc),*],
                    name: stringify!($ename),
                    variants: vec![$((&[$($vdoc),*], stringify!($vname), $vvalue)),+],
                }),*],
                records: vec![
                    $(abi!(@record "struct", [$($ddoc),*], $dname, $([$($dfdoc),*] $dfield: $dfty,)+),)*
                    $(abi!(@record "union", [$($udoc),*], $uname, $([] $ufield: $ufty,)+),)*
                    $(abi!(@record "struct", [$($pdoc),*], $pname, $([$($pfdoc),*] $pfield: $pfty,)+),)*
                ],
                files: vec![$(File {
                    stem: stringify!($file),
                    folder: $folder,
                    target: $crate::abi::Target::$target,
                    kernels: vec![$($(DeclaredKernel {
                        name: stringify!($kernel),
                        params: stringify!($kparams),
                        bounds: abi!(@bounds $bounds),
                    },)+)+],
                }),*],
            }
        }
    };
    (@threads ($threads:literal $(, $blocks:literal)?)) => { $threads };
    (@bounds ($($bound:literal),+)) => { &[$($bound),+] };
    (@record $keyword:literal, [$($doc:literal),*], $name:ident,
        $([$($fdoc:literal),*] $field:ident: $ty:ty,)+) => {
        Record {
            keyword: $keyword,
            doc: &[$($doc),*],
            name: stringify!($name),
            size: size_of::<$name>(),
            align: align_of::<$name>(),
            fields: vec![$(Field {
                doc: &[$($fdoc),*],
                name: stringify!($field),
                c_type: <$ty as CType>::c_type(),
                offset: std::mem::offset_of!($name, $field),
            }),+],
        }
    };
}
