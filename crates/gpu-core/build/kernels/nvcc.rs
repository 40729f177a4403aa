//! Finds CUDA's compiler, reads its release, and runs it.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use super::describe::Target;

/// The architectures that people own get machine code; later ones use PTX.
const ARCHITECTURES: &str = "75,80,86,89,90,100,120";

/// The variable that says how much machine code is optimised, from 0 to 3: kernels that nobody runs
/// are compiled in a third of the time without.
pub(super) const OPTIMISATION: &str = "CUDA_OPTIMISATION";

pub(super) struct Nvcc(PathBuf);

impl Nvcc {
    pub(super) fn find(workspace: &Path) -> Self {
        if let Some(nvcc) = env::var_os("NVCC").filter(|path| !path.is_empty()) {
            return Self(PathBuf::from(nvcc));
        }
        let mut candidates = Vec::new();
        // Where scripts/install-nvcc installs it:
        // .tools/cuda/lib/pythonX.Y/site-packages/nvidia/cu13/bin/nvcc
        if let Ok(pythons) = fs::read_dir(workspace.join(".tools/cuda/lib")) {
            candidates.extend(
                pythons
                    .filter_map(|p| p.ok())
                    .map(|p| p.path().join("site-packages/nvidia/cu13/bin/nvcc")),
            );
        }
        for name in ["CUDA_HOME", "CUDA_PATH"] {
            candidates.extend(env::var_os(name).map(|home| PathBuf::from(home).join("bin/nvcc")));
        }
        candidates.push(PathBuf::from("/usr/local/cuda/bin/nvcc"));
        let path = env::var_os("PATH").unwrap_or_default();
        candidates.extend(env::split_paths(&path).map(|folder| folder.join("nvcc")));
        Self(candidates.into_iter().find(|path| path.is_file()).unwrap_or_else(|| {
            panic!(
                "the feature `cuda` needs nvcc, CUDA's compiler, and there is none: run \
                 scripts/install-nvcc (it needs Python and no root), or set NVCC or CUDA_HOME"
            )
        }))
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    /// The compiler's major version. Kernels run on drivers of this version or a later one.
    pub(super) fn major_version(&self) -> u32 {
        let nvcc = self.0.display();
        let output = Command::new(&self.0).arg("--version").output();
        let output = output.unwrap_or_else(|e| panic!("{nvcc}: {e}"));
        let said = String::from_utf8_lossy(&output.stdout);
        let major = said.split("release ").nth(1).and_then(|rest| rest.split('.').next());
        major
            .and_then(|major| major.parse().ok())
            .unwrap_or_else(|| panic!("{nvcc} --version names no release:\n{said}"))
    }

    /// Compiles one file and returns the names of its kernels.
    pub(super) fn compile(
        &self,
        source: &Path,
        includes: &[PathBuf],
        target: Target,
        to: &Path,
    ) -> BTreeSet<String> {
        let mut command = Command::new(&self.0);
        command.args(["-fatbin", "-O3", "-std=c++17", "-lineinfo", "-Xptxas=-v"]);
        for folder in includes {
            command.arg("-I").arg(folder);
        }
        if let Ok(level) = env::var(OPTIMISATION) {
            command.arg(format!("-Xptxas=-O{level}"));
        }
        command.args(architectures(target)).arg(source).arg("-o").arg(to);
        let output = command.output().unwrap_or_else(|e| panic!("{}: {e}", self.0.display()));
        let said = String::from_utf8_lossy(&output.stderr);
        if !output.status.success() {
            let told = said.lines().filter(|line| !line.starts_with("ptxas info"));
            panic!("{}:\n{}", source.display(), told.collect::<Vec<_>>().join("\n"));
        }
        let names = said.lines().filter_map(|line| {
            let (_, name) = line.split_once("Compiling entry function '")?;
            Some(name.split_once('\'')?.0.to_owned())
        });
        names.collect()
    }
}

fn architectures(target: Target) -> Vec<OsString> {
    if target == Target::Sm90a {
        return vec!["-gencode=arch=compute_90a,code=sm_90a".into()];
    }
    let list = env::var("CUDA_ARCHITECTURES").unwrap_or_else(|_| ARCHITECTURES.to_owned());
    let list: Vec<&str> = list.split(',').map(str::trim).filter(|a| !a.is_empty()).collect();
    let code = list.iter().map(|a| format!("-gencode=arch=compute_{a},code=sm_{a}").into());
    // PTX of the last architecture is for later ones, PTX of Hopper for those in between that have
    // no machine code.
    let ptx = list.iter().filter(|a| **a == "90" || Some(*a) == list.last());
    code.chain(ptx.map(|a| format!("-gencode=arch=compute_{a},code=compute_{a}").into())).collect()
}
