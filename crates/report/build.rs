//! With the feature `cuda`: compiles the report's kernels, as gpu-core's build script does its own.

#[cfg(feature = "cuda")]
#[path = "../gpu-core/build/kernels/mod.rs"]
mod kernels;

// The library's own declarations, compiled here a second time.
#[cfg(feature = "cuda")]
#[allow(dead_code, unreachable_pub)]
#[path = "../gpu-core/src/abi/mod.rs"]
mod abi;
#[cfg(feature = "cuda")]
#[allow(dead_code, unreachable_pub)]
#[path = "src/versions/abi.rs"]
mod versions;

fn main() {
    for path in
        ["build.rs", "src/versions/abi.rs", "../gpu-core/build/kernels", "../gpu-core/src/abi"]
    {
        println!("cargo:rerun-if-changed={path}");
    }
    #[cfg(feature = "cuda")]
    kernels::build(&kernels::crate_folder().join("kernels"), vec![versions::interface()]);
}
