//! Parquet of bulk work in pyarrow: what it writes is answered, and what is written it reads, with
//! the values of JSON lines.
//!
//! Without a Python that has pyarrow (TEST_PYARROW, or python3), this test is reported as ignored.

use std::path::Path;
use std::process::Command;

use crate::support::{kindred, python};
use libtest_mimic::{Failed, Trial};

/// A table in each compression that is read, with what pandas and Spark would add.
const MAKE: &str = r#"
import datetime, pyarrow as pa, pyarrow.parquet as pq

rows = 5000
words = ["good film", "a moving and funny film", "bad", "zzqqx", None, "the worst of all"]
table = pa.table({
    "when": pa.array([datetime.datetime(2020, 1, 1)] * rows, pa.timestamp("us")),
    "text": pa.array([words[n % 6] for n in range(rows)], pa.large_string()),
    "tags": pa.array([["a", "b"]] * rows),
    "key": pa.array([n * 10 ** 12 if n % 7 else None for n in range(rows)], pa.int64()),
})
for codec in ["none", "snappy", "zstd", "gzip", "lz4"]:
    pq.write_table(table, codec + ".parquet", compression=codec, row_group_size=1700, data_page_version="2.0")
dictionary = table.set_column(1, "text", table["text"].dictionary_encode())
pq.write_table(dictionary, "dictionary.parquet", compression="zstd", use_dictionary=["text"])
"#;

const COMPARE: &str = r#"
import json, sys, pyarrow as pa, pyarrow.parquet as pq

table = pq.read_table(sys.argv[1])
labels = pa.list_(pa.field("element", pa.struct([
    pa.field("label", pa.string(), False), pa.field("probability", pa.float64(), False),
    pa.field("score", pa.float64(), False)]), False))
assert table.schema.field("id").type == pa.string(), table.schema
assert table.schema.field("labels").type == labels, table.schema
assert table.schema.field("unknown").type == pa.list_(pa.field("element", pa.string(), False)), table.schema
assert table.schema.field("cut").type == pa.bool_(), table.schema
found = [{k: v for k, v in row.items() if v is not None or k == "id"} for row in table.to_pylist()]
expected = [json.loads(line) for line in open(sys.argv[2])]
assert found == expected, [pair for pair in zip(found, expected) if pair[0] != pair[1]][:3]
assert len(found) == 5000 and pq.ParquetFile(sys.argv[1]).metadata.metadata[b"kindred.model"] == b"demo"
source = pq.read_table("none.parquet")["key"].to_pylist()
assert [row["id"] for row in found] == [None if key is None else str(key) for key in source]
print("compared", len(found), sum("error" in row for row in found))
"#;

pub(crate) fn trials() -> Vec<Trial> {
    let needs = ("TEST_PYARROW", "pyarrow.parquet", "pyarrow");
    python::trial("bulk_python::pyarrow_writes_what_is_read_and_reads_what_is_written", needs, run)
}

fn run(python: &Path) -> Result<(), Failed> {
    let scratch = tempfile::tempdir()?;
    let run = |command: &mut Command| {
        let output = command.current_dir(scratch.path()).output()?;
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        if output.status.success() { Ok(output.stdout) } else { Err(Failed::from(said)) }
    };
    run(Command::new(python).args(["-c", MAKE]))?;
    for input in ["none", "snappy", "zstd", "gzip", "lz4", "dictionary"] {
        for out in ["out.parquet", "out.jsonl"] {
            let input = format!("{input}.parquet");
            let files = ["--in", &input, "--out", out, "--id", "key", "--replace"];
            run(kindred(&["bulk", "classify", "--device", "cpu"]).args(files))?;
        }
        let printed = run(Command::new(python).args(["-c", COMPARE, "out.parquet", "out.jsonl"]))?;
        // A third of the texts is null, or has no known word.
        assert_eq!(String::from_utf8_lossy(&printed).trim(), "compared 5000 1666", "{input}");
    }
    Ok(())
}
