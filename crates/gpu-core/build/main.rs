//! With the feature `cuda`: compiles the kernels, and functions that look the driver's functions up
//! at run time.
//!
//! `kernels/` compiles kernels from the declarations of `src/*/abi.rs`. The build script of
//! `crates/report` uses it, too.

#[cfg(feature = "cuda")]
mod kernels;

// The library's own declarations, compiled here a second time.
#[cfg(feature = "cuda")]
#[allow(dead_code, unreachable_pub)]
#[macro_use]
#[path = "../src/abi/mod.rs"]
mod abi;
#[cfg(feature = "cuda")]
#[allow(dead_code, unreachable_pub)]
#[path = "../src/formulas/abi.rs"]
mod formulas;
#[cfg(feature = "cuda")]
#[allow(dead_code, unreachable_pub)]
#[path = "../src/full_pass/abi.rs"]
mod full_pass;
#[cfg(feature = "cuda")]
#[allow(dead_code, unreachable_pub)]
#[path = "../src/heads/abi.rs"]
mod heads;
#[cfg(feature = "cuda")]
#[allow(dead_code, unreachable_pub)]
#[path = "../src/heads/expand/abi.rs"]
mod heads_expand;
#[cfg(feature = "cuda")]
#[allow(dead_code, unreachable_pub)]
#[path = "../src/ranks/abi.rs"]
mod ranks;
// Of a benchmark.
#[cfg(feature = "cuda")]
#[allow(dead_code, unreachable_pub)]
#[path = "../benches/read_table/abi.rs"]
mod read_table;
#[cfg(feature = "cuda")]
#[allow(dead_code, unreachable_pub)]
#[path = "../src/resident/abi.rs"]
mod resident;
#[cfg(feature = "cuda")]
#[allow(dead_code, unreachable_pub)]
#[path = "../src/search/abi.rs"]
mod search;
#[cfg(feature = "cuda")]
#[allow(dead_code, unreachable_pub)]
#[path = "../src/search/expand/abi.rs"]
mod search_expand;
#[cfg(feature = "cuda")]
#[allow(dead_code, unreachable_pub)]
#[path = "../src/sets/abi.rs"]
mod sets;

fn main() {
    for path in [
        "benches/read_table/abi.rs",
        "build",
        "src/abi",
        "src/formulas/abi.rs",
        "src/full_pass/abi.rs",
        "src/heads/abi.rs",
        "src/heads/expand/abi.rs",
        "src/ranks/abi.rs",
        "src/resident/abi.rs",
        "src/search/abi.rs",
        "src/search/expand/abi.rs",
        "src/sets/abi.rs",
    ] {
        println!("cargo:rerun-if-changed={path}");
    }
    #[cfg(feature = "cuda")]
    {
        driver::functions();
        let interfaces = vec![
            resident::interface(),
            formulas::interface(),
            full_pass::interface(),
            heads::interface(),
            heads_expand::interface(),
            ranks::interface(),
            sets::interface(),
            search::interface(),
            search_expand::interface(),
            read_table::interface(),
        ];
        kernels::build(&kernels::workspace().join("kernels"), interfaces);
    }
}

#[cfg(feature = "cuda")]
mod driver {
    use std::fs;

    use crate::kernels::out_dir;

    /// Builds a static library with the driver's functions, and a `libcuda` for the `-lcuda` that
    /// cust requests.
    pub(crate) fn functions() {
        println!("cargo:rerun-if-changed=driver");
        let names = fs::read_to_string("driver/functions.txt").expect("driver/functions.txt");
        let mut include = String::new();
        for (index, name) in names.lines().enumerate() {
            let form = match name {
                "cuGetErrorName" | "cuGetErrorString" => "ERROR_TEXT",
                _ => "FUNCTION",
            };
            include.push_str(&format!("{form}({index}, {name})\n"));
        }
        let out = out_dir();
        fs::write(out.join("functions.inc"), include).expect("OUT_DIR can be written");
        cc::Build::new()
            .file("driver/trampolines.c")
            .include(&out)
            .flag_if_supported("-Wno-unused-parameter")
            .cargo_metadata(false)
            .compile("cuda_trampolines");
        // A copy called libcuda satisfies cust's own -lcuda, wherever that is on the command line.
        fs::copy(out.join("libcuda_trampolines.a"), out.join("libcuda.a"))
            .expect("OUT_DIR can be written");
        println!("cargo:rustc-link-search=native={}", out.display());
        println!("cargo:rustc-link-lib=static:+whole-archive=cuda_trampolines");
        println!("cargo:rustc-link-lib=dylib=dl");
    }
}
