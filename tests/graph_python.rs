//! A graph in NumPy and SciPy: what docs/graph.md shows loads what the program wrote, and a plain
//! product of matrices finds the same neighbours.
//!
//! Without a Python that has both (TEST_NUMPY, or python3), these tests are reported as ignored.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::support::{kindred, python, top};
use libtest_mimic::{Failed, Trial};

/// Compares with the first rows by float64, by the vectors alone.
const COMPARE: &str = r#"
assert (n, k) == (30000, 6) and matrix.nnz == n * k, (n, k, matrix.nnz)
assert indices.dtype == np.int64 and scores.dtype == np.float64
assert str(graph["model"]) == "demo" and str(graph["metric"]) == "cosine" and int(graph["k"]) == k
assert np.array_equal(graph["indices"], indices) and np.array_equal(graph["scores"], scores)
assert indices.ctypes.data % 64 == 0 and scores.ctypes.data % 64 == 0
vectors = np.load("demo.npy").astype(np.float64)
vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
some = np.arange(0, n, 97)
cosines = vectors[some] @ vectors.T
cosines[np.arange(len(some)), some] = -2
best = np.sort(cosines, axis=1)[:, ::-1][:, :k]
assert np.abs(best - scores[some]).max() < 1e-12
assert np.abs(np.take_along_axis(cosines, indices[some], 1) - scores[some]).max() < 1e-12
print("compared", len(some))
"#;

pub(crate) fn trials() -> Vec<Trial> {
    let needs = ("TEST_NUMPY", "numpy, scipy.sparse", "numpy and scipy");
    python::trial("graph_python::numpy_and_scipy_load_the_graph_as_the_page_says", needs, load)
}

/// The blocks of Python that need no more than NumPy and SciPy: the first two.
fn shown() -> Result<String, Failed> {
    let page = fs::read_to_string(top().join("docs/graph.md"))?;
    let blocks = page.split("```python\n").skip(1).take(2);
    Ok(blocks.filter_map(|block| block.split("```").next()).collect())
}

fn load(python: &Path) -> Result<(), Failed> {
    let scratch = tempfile::tempdir()?;
    let run = |command: &mut Command| {
        let output = command.current_dir(scratch.path()).output()?;
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        if output.status.success() { Ok(output.stdout) } else { Err(Failed::from(said)) }
    };
    run(&mut kindred(&["graph", "--device", "cpu", "-k", "6", "--out", "demo.npz"]))?;
    let vectors = top().join("models/demo/demo-100d.txt.gz");
    run(kindred(&["prepare", "--out", "demo"]).arg(vectors))?;
    let export = ["export", "demo", "--format", "npy", "--out", "demo.npy", "--words", "words.txt"];
    run(&mut kindred(&export))?;
    let script = shown()? + COMPARE;
    let printed = run(Command::new(python).args(["-c", &script]))?;
    assert_eq!(String::from_utf8_lossy(&printed).trim(), "compared 310");
    Ok(())
}
