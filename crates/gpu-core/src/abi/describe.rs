//! Declarations as values, from which the build script writes headers. The library does not read
//! them.

#![allow(dead_code)]

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
