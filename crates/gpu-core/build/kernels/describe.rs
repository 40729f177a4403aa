//! Describes declarations as values, from which headers are written.

// Each build script uses some of it.
#![allow(dead_code)]

use crate::abi::{DevicePointer, DevicePointerMut};

/// What a kernel file is compiled for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Target {
    /// Every architecture of the build.
    Every,
    /// Compute capability 9.0 alone, with the instructions that exist only there.
    Sm90a,
}

/// The declarations of one [`abi!`], for the build script.
#[derive(Debug)]
pub(crate) struct Interface {
    /// The header is `abi/NAME.cuh`.
    pub(crate) name: &'static str,
    /// The headers that it includes.
    pub(crate) uses: Vec<&'static str>,
    pub(crate) constants: Vec<Constant>,
    pub(crate) enums: Vec<Enum>,
    pub(crate) records: Vec<Record>,
    pub(crate) files: Vec<File>,
}

/// A constant with its type and value in C.
#[derive(Debug)]
pub(crate) struct Constant {
    pub(crate) doc: &'static [&'static str],
    pub(crate) name: &'static str,
    pub(crate) c_type: &'static str,
    pub(crate) value: String,
}

/// An `enum class` over int.
#[derive(Debug)]
pub(crate) struct Enum {
    pub(crate) doc: &'static [&'static str],
    pub(crate) name: &'static str,
    pub(crate) variants: Vec<(&'static [&'static str], &'static str, i32)>,
}

/// A structure or a union.
#[derive(Debug)]
pub(crate) struct Record {
    pub(crate) keyword: &'static str,
    pub(crate) doc: &'static [&'static str],
    pub(crate) name: &'static str,
    pub(crate) size: usize,
    pub(crate) align: usize,
    pub(crate) fields: Vec<Field>,
}

/// A field of a [`Record`].
#[derive(Debug)]
pub(crate) struct Field {
    pub(crate) doc: &'static [&'static str],
    pub(crate) name: &'static str,
    pub(crate) c_type: String,
    pub(crate) offset: usize,
}

/// A source file under `kernels/`.
#[derive(Debug, Clone)]
pub(crate) struct File {
    /// The file's name without folder and extension.
    pub(crate) stem: &'static str,
    /// The folder in `kernels/`; empty for `kernels/` itself.
    pub(crate) folder: &'static str,
    pub(crate) target: Target,
    pub(crate) kernels: Vec<DeclaredKernel>,
}

/// A kernel of a [`File`].
#[derive(Debug, Clone)]
pub(crate) struct DeclaredKernel {
    pub(crate) name: &'static str,
    pub(crate) params: &'static str,
    /// The arguments of `__launch_bounds__`.
    pub(crate) bounds: &'static [u32],
}

/// A constant's type and value in C.
pub(crate) trait CConstant {
    const C_TYPE: &'static str;
    fn c_value(self) -> String;
}

macro_rules! c_constants {
    ($($rust:ty, $c:literal, $form:literal;)+) => {
        $(impl CConstant for $rust {
            const C_TYPE: &'static str = $c;
            fn c_value(self) -> String {
                format!($form, self)
            }
        })+
    };
}

// `{:e}` writes enough digits to read back the same value.
c_constants! {
    usize, "int", "{}";
    u32, "uint32_t", "{:#x}u";
    f32, "float", "{:e}f";
    f64, "double", "{:e}";
}

/// A type that CUDA has too.
pub(crate) trait CType {
    /// Its name in CUDA.
    fn c_type() -> String;
}

macro_rules! c_types {
    ($($rust:ty, $c:literal;)+) => {
        $(impl CType for $rust {
            fn c_type() -> String {
                $c.to_owned()
            }
        })+
    };
}

c_types! {
    u8, "uint8_t";
    i32, "int";
    u32, "uint32_t";
    u64, "unsigned long long";
    f32, "float";
    f64, "double";
    [u32; 4], "uint4";
}

impl<T: CType> CType for DevicePointer<T> {
    fn c_type() -> String {
        format!("const {}*", T::c_type())
    }
}

impl<T: CType> CType for DevicePointerMut<T> {
    fn c_type() -> String {
        format!("{}*", T::c_type())
    }
}

/// Makes a function `interface`, which describes what `abi!` declares.
#[macro_export]
macro_rules! kernel_files {
    (
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
        files { $($folder:literal / $file:ident for $target:ident {
            $($bounds:tt $($kernel:ident),+ : $kparams:ident;)+
        })* }
    ) => {
        $crate::kernel_files!(@names $($($ename)*)? $($($dname)*)? $($($uname)*)? $($($pname)*)?);

        /// The whole interface.
        pub(crate) fn interface() -> $crate::kernels::Interface {
            #[allow(unused_imports)]
            use $crate::kernels::{
                CConstant, CType, Constant, DeclaredKernel, Enum, Field, File, Record,
            };
            $crate::kernels::Interface {
                name: $interface,
                uses: vec![$($uses),*],
                constants: vec![$($(Constant {
                    doc: &[$($cdoc),*],
                    name: stringify!($cname),
                    c_type: <$cty as CConstant>::C_TYPE,
                    value: $cname.c_value(),
                }),*)?],
                enums: vec![$($(Enum {
                    doc: &[$($edoc),*],
                    name: stringify!($ename),
                    variants: vec![$((&[$($vdoc),*], stringify!($vname), $vvalue)),+],
                }),*)?],
                records: vec![
                    $($($crate::kernel_files!(
                        @record "struct", [$($ddoc),*], $dname, $([$($dfdoc),*] $dfield: $dfty,)+
                    ),)*)?
                    $($($crate::kernel_files!(
                        @record "union", [$($udoc),*], $uname, $([] $ufield: $ufty,)+
                    ),)*)?
                    $($($crate::kernel_files!(
                        @record "struct", [$($pdoc),*], $pname, $([$($pfdoc),*] $pfield: $pfty,)+
                    ),)*)?
                ],
                files: vec![$(File {
                    stem: stringify!($file),
                    folder: $folder,
                    target: $crate::kernels::Target::$target,
                    kernels: vec![$($(DeclaredKernel {
                        name: stringify!($kernel),
                        params: stringify!($kparams),
                        bounds: $crate::kernel_files!(@bounds $bounds),
                    },)+)+],
                }),*],
            }
        }
    };
    (@names $($name:ident)*) => {
        $(impl $crate::kernels::CType for $name {
            fn c_type() -> String {
                stringify!($name).to_owned()
            }
        })*
    };
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
