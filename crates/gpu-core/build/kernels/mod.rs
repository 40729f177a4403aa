//! Compiles kernels from their declarations, for the build script of each crate that has some. Each
//! file is declared in one `abi.rs` of the crate, and has exactly the kernels that are declared
//! there.
//!
//! - `describe.rs`: describes the declarations;
//! - `header.rs`: writes them as headers for nvcc and as assertions for rustc;
//! - `nvcc.rs`: finds and runs the compiler.

mod describe;
mod header;
mod nvcc;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::{env, fs};

// Some declarations have no constants, or no structures.
#[allow(unused_imports)]
pub(crate) use describe::{
    CConstant, CType, Constant, DeclaredKernel, Enum, Field, File, Interface, Record, Target,
};
use nvcc::Nvcc;

/// The folder in which cargo keeps what this build script writes.
pub(crate) fn out_dir() -> PathBuf {
    PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"))
}

/// The folder of the crate that is built.
pub(crate) fn crate_folder() -> PathBuf {
    PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it"))
}

/// The top of the workspace.
pub(crate) fn workspace() -> PathBuf {
    crate_folder().ancestors().nth(2).expect("the crate is in crates/").to_owned()
}

/// Writes the headers of these interfaces, and compiles all kernel files of a folder, which the
/// interfaces declare.
pub(crate) fn build(folder: &Path, interfaces: Vec<Interface>) {
    header::write(&interfaces);
    compile(folder, interfaces.into_iter().flat_map(|interface| interface.files).collect());
}

/// Compiles every declared file to `STEM.fatbin`, which the library embeds.
fn compile(folder: &Path, declared: Vec<File>) {
    for name in ["NVCC", "CUDA_HOME", "CUDA_PATH", "CUDA_ARCHITECTURES", nvcc::OPTIMISATION] {
        println!("cargo:rerun-if-env-changed={name}");
    }
    println!("cargo:rerun-if-changed={}", folder.display());
    let nvcc = Nvcc::find(&workspace());
    println!("cargo:rerun-if-changed={}", nvcc.path().display());
    println!("cargo:rustc-env=KINDRED_CUDA_MAJOR={}", nvcc.major_version());

    let sources: BTreeSet<PathBuf> = declared.iter().map(|file| source(folder, file)).collect();
    let folders: BTreeSet<&Path> = sources.iter().filter_map(|source| source.parent()).collect();
    for found in folders.into_iter().flat_map(cu_files) {
        assert!(
            sources.contains(&found),
            "{}: not declared; add it to `files` in an abi.rs of this crate",
            found.display()
        );
    }

    let includes = [folder.join("include"), out_dir()];
    let jobs = env::var("NUM_JOBS").ok().and_then(|n| n.parse().ok()).unwrap_or(1);
    let queue = Mutex::new(declared);
    std::thread::scope(|scope| {
        for _ in 0..jobs {
            scope.spawn(|| {
                loop {
                    let next = queue.lock().expect("no thread panics while it holds this").pop();
                    let Some(file) = next else { return };
                    let source = source(folder, &file);
                    let to = out_dir().join(format!("{}.fatbin", file.stem));
                    check_text(&source);
                    let kernels = nvcc.compile(&source, &includes, file.target, &to);
                    check_kernels(&source, &file, &kernels);
                }
            });
        }
    });
}

fn source(folder: &Path, file: &File) -> PathBuf {
    folder.join(file.folder).join(format!("{}.cu", file.stem))
}

fn cu_files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let paths = entries.filter_map(|entry| entry.ok().map(|entry| entry.path()));
    paths.filter(|path| path.extension().is_some_and(|e| e == "cu")).collect()
}

/// Launch bounds in a definition would silently override those of the declaration.
fn check_text(source: &Path) {
    let text = fs::read_to_string(source).unwrap_or_else(|e| {
        panic!("{}: {e}; it is declared in an abi.rs of this crate", source.display())
    });
    assert!(
        !text.contains("__launch_bounds__"),
        "{}: threads per block are declared in an abi.rs of this crate, not here",
        source.display()
    );
}

fn check_kernels(source: &Path, file: &File, found: &BTreeSet<String>) {
    let declared: BTreeSet<String> =
        file.kernels.iter().map(|kernel| kernel.name.to_owned()).collect();
    let missing: Vec<_> = declared.difference(found).collect();
    let undeclared: Vec<_> = found.difference(&declared).collect();
    assert!(
        missing.is_empty(),
        "{}: lacks kernels that an abi.rs of this crate declares: {missing:?}",
        source.display()
    );
    assert!(
        undeclared.is_empty(),
        "{}: has kernels that are not declared: {undeclared:?}; add them to `files` in \
         an abi.rs of this crate",
        source.display()
    );
}
