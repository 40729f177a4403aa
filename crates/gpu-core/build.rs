//! With the feature `cuda`: compiles the kernels, and the driver's functions that are found at run time.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::{env, fs};

use contract::certificate;

/// Shared with the kernels, to which they are passed by `-D`.
#[allow(dead_code)]
mod constants {
    include!("src/resident/constants.rs");
}

/// Machine code for the architectures that people own, and PTX for what comes.
const ARCHITECTURES: &str = "75,80,86,89,90,100,120";

/// Kernels of files that begin so use instructions of compute capability 9.0a.
const HOPPER_ONLY: &str = "hopper";

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    if env::var_os("CARGO_FEATURE_CUDA").is_none() {
        return;
    }
    driver_functions();
    kernels();
}

fn out_dir() -> PathBuf {
    PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"))
}

/// A static library with the driver's functions, and a `libcuda` for the `-lcuda` that cust asks for.
fn driver_functions() {
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
    // An empty archive called libcuda satisfies cust's own -lcuda wherever it stands on the line.
    fs::copy(out.join("libcuda_trampolines.a"), out.join("libcuda.a"))
        .expect("OUT_DIR can be written");
    println!("cargo:rustc-link-search=native={}", out.display());
    println!("cargo:rustc-link-lib=static:+whole-archive=cuda_trampolines");
    println!("cargo:rustc-link-lib=dylib=dl");
}

fn kernels() {
    for name in ["NVCC", "CUDA_HOME", "CUDA_PATH", "CUDA_ARCHITECTURES"] {
        println!("cargo:rerun-if-env-changed={name}");
    }
    let workspace =
        PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it")).join("../..");
    let folder = workspace.join("kernels");
    println!("cargo:rerun-if-changed={}", folder.display());
    println!("cargo:rerun-if-changed=src/resident/constants.rs");
    let nvcc = find_nvcc(&workspace);
    println!("cargo:rerun-if-changed={}", nvcc.display());
    println!("cargo:rustc-env=KINDRED_CUDA_MAJOR={}", major_version(&nvcc));

    let mut sources = files(&folder, "");
    sources.extend(files(&folder.join("report"), "report_"));
    let mut list = String::new();
    for (stem, _) in &sources {
        list.push_str(&format!(
            "pub(crate) static {}: &[u8] = include_bytes!(concat!(env!(\"OUT_DIR\"), \"/{stem}.fatbin\"));\n",
            stem.to_uppercase()
        ));
    }
    fs::write(out_dir().join("fatbins.rs"), list).expect("OUT_DIR can be written");

    let jobs = env::var("NUM_JOBS").ok().and_then(|n| n.parse().ok()).unwrap_or(1);
    let queue = Mutex::new(sources);
    std::thread::scope(|scope| {
        for _ in 0..jobs {
            scope.spawn(|| {
                loop {
                    let next = queue.lock().expect("no thread panics while it holds this").pop();
                    let Some((stem, source)) = next else { return };
                    compile(&nvcc, &folder, &stem, &source);
                }
            });
        }
    });
}

fn files(folder: &Path, prefix: &str) -> Vec<(String, PathBuf)> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let mut files: Vec<_> = entries
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .filter(|path| path.extension().is_some_and(|e| e == "cu"))
        .filter_map(|path| {
            let stem = format!("{prefix}{}", path.file_stem()?.to_str()?);
            Some((stem, path))
        })
        .collect();
    files.sort();
    files
}

fn compile(nvcc: &Path, folder: &Path, stem: &str, source: &Path) {
    let mut command = Command::new(nvcc);
    command.args(["-fatbin", "-O3", "-std=c++17", "-lineinfo", "-I"]).arg(folder.join("include"));
    command.arg(format!("-DSLACK={:e}f", certificate::SLACK));
    for (i, value) in certificate::ROTATION_HASH.iter().enumerate() {
        command.arg(format!("-DROTATION_HASH_{i}={value}u"));
    }
    for (name, value) in constants::FOR_KERNELS {
        command.arg(format!("-D{name}={value}"));
    }
    if stem.starts_with(HOPPER_ONLY) {
        command.arg("-gencode=arch=compute_90a,code=sm_90a");
    } else {
        let list = env::var("CUDA_ARCHITECTURES").unwrap_or_else(|_| ARCHITECTURES.to_owned());
        let list: Vec<&str> = list.split(',').map(str::trim).filter(|a| !a.is_empty()).collect();
        for architecture in &list {
            command.arg(format!("-gencode=arch=compute_{architecture},code=sm_{architecture}"));
        }
        // Of the last for what comes after it, and of Hopper for what is in between and has no code.
        for ptx in list.iter().filter(|a| **a == "90" || Some(*a) == list.last()) {
            command.arg(format!("-gencode=arch=compute_{ptx},code=compute_{ptx}"));
        }
    }
    command.arg(source).arg("-o").arg(out_dir().join(format!("{stem}.fatbin")));
    let output = command.output().unwrap_or_else(|e| panic!("{}: {e}", nvcc.display()));
    let messages = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}:\n{messages}", source.display());
}

/// Kernels run on drivers of the compiler's major version or a later one.
fn major_version(nvcc: &Path) -> u32 {
    let output = Command::new(nvcc).arg("--version").output();
    let output = output.unwrap_or_else(|e| panic!("{}: {e}", nvcc.display()));
    let said = String::from_utf8_lossy(&output.stdout);
    let major = said.split("release ").nth(1).and_then(|rest| rest.split('.').next());
    major
        .and_then(|major| major.parse().ok())
        .unwrap_or_else(|| panic!("{} --version names no release:\n{said}", nvcc.display()))
}

fn find_nvcc(workspace: &Path) -> PathBuf {
    if let Some(nvcc) = env::var_os("NVCC").filter(|path| !path.is_empty()) {
        return PathBuf::from(nvcc);
    }
    let mut places = Vec::new();
    // Where scripts/install-nvcc puts it: .tools/cuda/lib/pythonX.Y/site-packages/nvidia/cu13/bin/nvcc
    if let Ok(pythons) = fs::read_dir(workspace.join(".tools/cuda/lib")) {
        places.extend(
            pythons
                .filter_map(|p| p.ok())
                .map(|p| p.path().join("site-packages/nvidia/cu13/bin/nvcc")),
        );
    }
    for name in ["CUDA_HOME", "CUDA_PATH"] {
        places.extend(env::var_os(name).map(|home| PathBuf::from(home).join("bin/nvcc")));
    }
    places.push(PathBuf::from("/usr/local/cuda/bin/nvcc"));
    let path = env::var_os("PATH").unwrap_or_default();
    places.extend(env::split_paths(&path).map(|folder| folder.join("nvcc")));
    places.into_iter().find(|place| place.is_file()).unwrap_or_else(|| {
        panic!(
            "the feature `cuda` needs nvcc, CUDA's compiler, and there is none: run \
             scripts/install-nvcc (it needs Python and no root), or set NVCC or CUDA_HOME"
        )
    })
}
