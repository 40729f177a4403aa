//! Checks of any row that is an object of JSON. The tests of the crate `changes` run the
//! seeds through the same check.

use std::borrow::Cow;
use std::fs;
use std::ops::ControlFlow;
use std::sync::{LazyLock, Mutex};

use changes::{BatchBuilder, ChangeOptions, Changes, Durability, RowJson, TailRow};
use contract::{Metric, Row};
use model_store::prepare::{AttributesFile, Input, PrepareOptions, prepare_folder};

/// Rows of a table before another takes its place, so that it stays small.
const MOST_ROWS: usize = 4096;

/// Tables with attributes of all types, one of each metric.
static TABLES: LazyLock<Mutex<[Table; 2]>> =
    LazyLock::new(|| Mutex::new([Metric::Cosine, Metric::Dot].map(Table::new)));

struct Table {
    metric: Metric,
    changes: Changes,
    // Removed after the changes are closed.
    _scratch: tempfile::TempDir,
}

impl Table {
    fn new(metric: Metric) -> Self {
        let scratch = tempfile::tempdir().expect("a folder");
        let attributes = scratch.path().join("attributes.jsonl");
        let line =
            r#"{"t": "x", "l": ["y"], "i": 1, "n": 0.5, "b": true, "d": "1970-01-01T00:00:00Z"}"#;
        fs::write(&attributes, format!("{line}\n{{}}\n")).expect("attributes");
        let attributes = Some(AttributesFile { path: attributes, ..Default::default() });
        let options = PrepareOptions { attributes, metric, ..Default::default() };
        let input = Input::Bytes { name: "good", bytes: b"the 1 2\nof -1 0\n" };
        let (folder, go_on) = (scratch.path().join("model"), &mut |_| ControlFlow::Continue(()));
        prepare_folder(input, &folder, &options, go_on).expect("a good model");
        let changes = Changes::open(&folder, ChangeOptions::default()).expect("it opens");
        Self { metric, changes, _scratch: scratch }
    }

    /// Puts a row, and returns what `look` makes of it; `None` if it is refused.
    fn put<T>(&self, json: &str, look: impl FnOnce(TailRow<'_>) -> T) -> Option<T> {
        let mut batch = BatchBuilder::new(self.changes.schema());
        batch.upsert_json(json);
        let batch = match batch.finish() {
            Ok(batch) => batch.expect("a row"),
            Err(bad) => {
                assert_eq!(bad.0.len(), 1, "{bad}");
                return None;
            }
        };
        self.changes.commit(batch, Durability::None, None).expect("it commits");
        let snapshot = self.changes.snapshot();
        let row = Row(snapshot.rows() as u32 - 1);
        let found = snapshot.tail_row(row).expect("it is the last row");
        assert_eq!(snapshot.row_of(found.key), Some(row));
        Some(look(found))
    }

    /// The row as JSON.
    fn written(&self, row: TailRow<'_>) -> String {
        let columns = &self.changes.schema().columns;
        assert_eq!((row.vector.len(), row.attributes.len()), (2, columns.len()));
        assert!(row.vector.iter().chain(&row.bias).all(|number| number.is_finite()));
        assert_eq!(row.bias.is_some(), self.metric == Metric::Dot);
        let attributes = columns.iter().zip(row.attributes).map(|((name, kind), value)| {
            assert!(value.as_ref().is_none_or(|value| value.kind() == *kind));
            (name.as_str(), value.as_ref().map(Cow::Borrowed))
        });
        let json = RowJson::new(row.key, row.vector, row.bias, attributes);
        serde_json::to_string(&json).expect("rows become JSON")
    }
}

/// Whatever the bytes are: they are refused, or become a row that is written as JSON, which becomes
/// the same row. Says whether a table took them.
pub fn refused_or_a_row(bytes: &[u8]) -> bool {
    let Ok(json) = std::str::from_utf8(bytes) else { return false };
    let mut is_taken = false;
    for table in TABLES.lock().expect("nobody panicked with them").iter_mut() {
        if table.changes.snapshot().rows() > MOST_ROWS {
            *table = Table::new(table.metric);
        }
        let Some(written) = table.put(json, |row| table.written(row)) else { continue };
        let again = table.put(&written, |row| table.written(row));
        assert_eq!(again.as_deref(), Some(&*written));
        is_taken = true;
    }
    is_taken
}
