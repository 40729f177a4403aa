//! Arrays over HTTP in NumPy: what docs/http.md shows prints what it says, and a plain product of
//! matrices finds the same neighbours.
//!
//! Without a Python that has NumPy (TEST_NUMPY, or python3), this test is reported as ignored.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::support::{Service, python, top};
use libtest_mimic::{Failed, Trial};

/// Compares with all rows by float64, and with the vectors that come with the neighbours.
const COMPARE: &str = r#"
def get(path):
    request = urllib.request.Request(address + path, headers={"Accept": "application/x-npy"})
    with urllib.request.urlopen(request) as answer:
        return np.load(io.BytesIO(answer.read()))

frog = get("/words/frog")
assert frog.dtype == np.float32 and frog.shape == (100,), (frog.dtype, frog.shape)
one = nearest(frog, "2&exclude=frog")
assert one.shape == (2,) and one["row"].tolist() == [10925, 12073], one
queries = np.random.default_rng(7).normal(size=(50, 100))
found = nearest(queries, "400&with_vectors=true&min_score=0.1&vocab_limit=2000")
assert found.shape == (50, 400) and found.dtype["vector"].shape == (100,), (found.shape, found.dtype)
assert found.dtype["row"] == np.int64 and found.dtype["score"] == np.float64
filled = found["row"] < 0
assert filled.any() and not filled.all()
assert (found["row"][filled] == -1).all() and np.isnan(found["score"][filled]).all()
assert np.isnan(found["vector"][filled]).all()
vectors = found["vector"].astype(np.float64)
unit = queries.astype(np.float32).astype(np.float64)
cosines = np.einsum("qkd,qd->qk", vectors, unit)
cosines /= np.linalg.norm(vectors, axis=2) * np.linalg.norm(unit, axis=1)[:, None]
assert np.abs(cosines - found["score"])[~filled].max() < 1e-12
print("compared", (~filled).sum() > 0)
"#;

pub(crate) fn trials() -> Vec<Trial> {
    let needs = ("TEST_NUMPY", "numpy", "numpy");
    python::trial("arrays_python::numpy_reads_and_writes_what_the_page_shows", needs, run)
}

fn run(python: &Path) -> Result<(), Failed> {
    let page = fs::read_to_string(top().join("docs/http.md"))?;
    let block = page.split("```python\n").nth(1).and_then(|rest| rest.split("```").next());
    let block = block.ok_or("the page shows no Python")?;
    let expected = block.lines().filter_map(|line| line.strip_prefix("# ")).collect::<Vec<_>>();
    let service = Service::with_default_model();
    let script = block.replace("127.0.0.1:8080", &service.address) + COMPARE;
    let output = Command::new(python).args(["-c", &script]).output()?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned().into());
    }
    let printed = String::from_utf8(output.stdout)?;
    let printed: Vec<&str> = printed.lines().collect();
    assert_eq!(printed, [&expected[..], &["compared True"]].concat());
    Ok(())
}
