//! Checks of a folder of changes with any log. The tests of the crate `changes` run the
//! seeds through the same check. It knows the format from docs/formats.md only.

use std::fs;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::{LazyLock, Mutex};

use changes::{Access, BatchBuilder, ChangeError, ChangeOptions, Changes, Durability, Upsert};
use model_store::attributes::Value;
use model_store::prepare::{AttributesFile, Input, PrepareOptions, prepare_folder};

/// Bytes of a log's header, of which 24 to 31 are its number at random.
const LOG_HEADER: usize = 128;
/// Bytes of a record's header.
const RECORD_HEADER: usize = 48;

/// A model folder with attributes of all types, and its log with two records.
struct Good {
    folder: PathBuf,
    log: Vec<u8>,
}

/// One at a time writes into the folder.
static GOOD: LazyLock<Mutex<Good>> = LazyLock::new(|| {
    let scratch = tempfile::tempdir().expect("a folder").keep();
    let (folder, attributes) = (scratch.join("model"), scratch.join("attributes.jsonl"));
    let line =
        r#"{"t": "x", "l": ["y"], "i": 1, "n": 0.5, "b": true, "d": "1970-01-01T00:00:00Z"}"#;
    fs::write(&attributes, format!("{line}\n{{}}\n")).expect("attributes");
    let attributes = Some(AttributesFile { path: attributes, ..Default::default() });
    let options = PrepareOptions { attributes, ..Default::default() };
    let input = Input::Bytes { name: "good", bytes: b"the 1 2\nof -1 0\n" };
    let go_on = &mut |_| ControlFlow::Continue(());
    prepare_folder(input, &folder, &options, go_on).expect("a good model");
    let changes = Changes::open(&folder, ChangeOptions::default()).expect("it opens");
    for key in ["of", "na\u{ef}ve"] {
        let mut batch = BatchBuilder::new(changes.schema());
        let attributes = [
            ("t", Value::Text("x".into())),
            ("l", Value::List(vec!["y".into(), "z".into()])),
            ("i", Value::Integer(-1)),
            ("b", Value::Boolean(false)),
        ];
        batch.upsert(Upsert { key, vector: &[0.5, 3.0], bias: None, attributes: &attributes });
        batch.delete("the");
        let batch = batch.finish().expect("good rows").expect("some rows");
        changes.commit(batch, Durability::Synced, Some(key)).expect("it commits");
    }
    drop(changes);
    let log = fs::read(folder.join("changes/00000001.log")).expect("a log");
    Mutex::new(Good { folder, log })
});

/// The log that the bytes stand for: with an even first byte, the rest is the payload of its only
/// record; otherwise they are changes of a good log, four bytes each.
fn log_of(bytes: &[u8], good: &[u8]) -> Vec<u8> {
    let (kind, rest) = bytes.split_first().unwrap_or((&0, &[]));
    if kind % 2 == 0 {
        let mut log = good[..LOG_HEADER].to_vec();
        let mut payload = rest.to_vec();
        payload.resize(payload.len().next_multiple_of(8), 0);
        log.extend_from_slice(b"KREC");
        log.extend_from_slice(&[1 + kind / 2 % 2, 0, 0, 0]);
        log.extend_from_slice(&good[24..32]);
        for field in [u64::from(kind % 4 == 0), payload.len() as u64, LOG_HEADER as u64] {
            log.extend_from_slice(&field.to_le_bytes());
        }
        log.extend_from_slice(&crc32fast::hash(&payload).to_le_bytes());
        let crc = crc32fast::hash(&log[LOG_HEADER..]);
        log.extend_from_slice(&crc.to_le_bytes());
        assert_eq!(log.len(), LOG_HEADER + RECORD_HEADER);
        log.extend_from_slice(&payload);
        return log;
    }
    let mut log = good.to_vec();
    for change in rest.chunks_exact(4) {
        let index = usize::from(u16::from_le_bytes([change[0], change[1]])) % (log.len() + 1);
        match (log.get_mut(index), change[2] % 4) {
            (Some(byte), 0 | 1) => *byte = change[3],
            (Some(_), 2) => log.truncate(index),
            _ => log.push(change[3]),
        }
    }
    log
}

/// Whatever the log is: the folder is refused with the file, or its rows are whole. Says whether it
/// was opened.
pub fn refused_or_applied(bytes: &[u8]) -> bool {
    let good = GOOD.lock().expect("nobody panicked with it");
    fs::write(good.folder.join("changes/00000001.log"), log_of(bytes, &good.log))
        .expect("the log is written");
    let options = ChangeOptions { access: Access::Read, ..Default::default() };
    let changes = match Changes::open(&good.folder, options) {
        Ok(changes) => changes,
        Err(ChangeError::Damaged { path, .. }) => {
            assert!(path.ends_with("changes/00000001.log"));
            return false;
        }
        Err(error) => panic!("{error}"),
    };
    let (columns, snapshot) = (&changes.schema().columns, changes.snapshot());
    let mut live = (0..2).filter(|&row| snapshot.is_live(contract::Row(row))).count();
    for part in snapshot.tail() {
        for row in (0..part.len()).map(|place| part.row(place)) {
            assert!(row.vector.iter().all(|component| component.is_finite()));
            assert_eq!(row.norm.to_bits(), contract::score::norm(row.vector).to_bits());
            assert_eq!(row.attributes.len(), columns.len());
            for (value, (_, kind)) in row.attributes.iter().zip(columns) {
                assert!(value.as_ref().is_none_or(|value| value.kind() == *kind));
            }
            let is_live = snapshot.is_live(row.row);
            assert_eq!(snapshot.row_of(row.key) == Some(row.row), is_live);
            live += usize::from(is_live);
        }
    }
    assert_eq!(snapshot.live_rows(), live);
    true
}
