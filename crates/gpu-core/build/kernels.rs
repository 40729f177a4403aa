//! Compiles the kernel files, each for its target. Each file is declared in one `src/*/abi.rs` and
//! has exactly the kernels that are declared there.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::{env, fs};

use crate::abi::File;
use crate::driver::out_dir;
use crate::nvcc::Nvcc;

/// Compiles every declared file, and writes `fatbins.rs`, which embeds the results.
pub(crate) fn compile(declared: Vec<File>) {
    for name in ["NVCC", "CUDA_HOME", "CUDA_PATH", "CUDA_ARCHITECTURES"] {
        println!("cargo:rerun-if-env-changed={name}");
    }
    let crate_folder = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    let workspace = crate_folder.ancestors().nth(2).expect("the crate is in crates/").to_owned();
    let folder = workspace.join("kernels");
    println!("cargo:rerun-if-changed={}", folder.display());
    let nvcc = Nvcc::find(&workspace);
    println!("cargo:rerun-if-changed={}", nvcc.path().display());
    println!("cargo:rustc-env=KINDRED_CUDA_MAJOR={}", nvcc.major_version());

    let sources: BTreeSet<PathBuf> = declared.iter().map(|file| source(&folder, file)).collect();
    for found in ["", "report"].iter().flat_map(|sub| cu_files(&folder.join(sub))) {
        assert!(
            sources.contains(&found),
            "{}: not declared; add it to `files` in one of crates/gpu-core/src/*/abi.rs",
            found.display()
        );
    }
    embed(&declared);

    let includes = [folder.join("include"), out_dir()];
    let jobs = env::var("NUM_JOBS").ok().and_then(|n| n.parse().ok()).unwrap_or(1);
    let queue = Mutex::new(declared);
    std::thread::scope(|scope| {
        for _ in 0..jobs {
            scope.spawn(|| {
                loop {
                    let next = queue.lock().expect("no thread panics while it holds this").pop();
                    let Some(file) = next else { return };
                    let source = source(&folder, &file);
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
        panic!("{}: {e}; it is declared in crates/gpu-core/src/*/abi.rs", source.display())
    });
    assert!(
        !text.contains("__launch_bounds__"),
        "{}: threads per block are declared in crates/gpu-core/src/*/abi.rs, not here",
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
        "{}: lacks kernels that crates/gpu-core/src/*/abi.rs declares: {missing:?}",
        source.display()
    );
    assert!(
        undeclared.is_empty(),
        "{}: has kernels that are not declared: {undeclared:?}; add them to `files` in \
         crates/gpu-core/src/*/abi.rs",
        source.display()
    );
}

fn embed(files: &[File]) {
    let arms: String = files
        .iter()
        .map(|File { stem, .. }| {
            format!("        {stem:?} => include_bytes!(concat!(env!(\"OUT_DIR\"), \"/{stem}.fatbin\")),\n")
        })
        .collect();
    let text = format!(
        "/// The machine code of a file of `kernels/`, by its name without folder and ending.\n\
         pub(crate) fn fatbin(file: &str) -> &'static [u8] {{\n    match file {{\n{arms}        \
         _ => unreachable!(\"every file that is declared is embedded\"),\n    }}\n}}\n"
    );
    fs::write(out_dir().join("fatbins.rs"), text).expect("OUT_DIR can be written");
}
