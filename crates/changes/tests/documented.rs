//! What docs/formats.md says of a fold's metadata is what is written.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use changes::{BatchBuilder, ChangeOptions, Changes, Durability, Schema, Upsert, create};
use safetensors::SafeTensors;

use crate::pages::{names, rows_below};

#[test]
fn the_base_of_a_fold_has_the_metadata_that_its_format_lists() {
    let scratch = tempfile::tempdir().unwrap();
    let folder = scratch.path().join("m");
    let schema = Schema { dim: 2, metric: contract::Metric::Cosine, columns: Vec::new() };
    create(&folder, &schema).unwrap();
    let keys = |file: &Path| -> BTreeSet<String> {
        let file = fs::read(file).unwrap();
        let (_, header) = SafeTensors::read_metadata(&file).unwrap();
        header.metadata().as_ref().unwrap().keys().cloned().collect()
    };
    let of_table = keys(&folder.join("vectors.safetensors"));
    let changes = Changes::open(&folder, ChangeOptions::default()).unwrap();
    let mut batch = BatchBuilder::new(changes.schema());
    batch.upsert(Upsert { key: "a", vector: &[1.0, 2.0], bias: None, attributes: &[] });
    let batch = batch.finish().unwrap().unwrap();
    changes.commit(batch, Durability::Synced, None).unwrap();
    changes.fold(&mut |_| std::ops::ControlFlow::Continue(())).unwrap();
    let pointer = keys(&folder.join("vectors.safetensors"));
    let expected = ["base", "checksum_header", "kindred_format"].map(str::to_owned);
    assert_eq!(pointer, expected.into());
    let names_of = |entry: fs::DirEntry| entry.file_name().into_string().unwrap();
    let mut files = fs::read_dir(&folder).unwrap().map(|entry| names_of(entry.unwrap()));
    let base = files.find(|name| name.starts_with("base-00000002-")).unwrap();
    let of_base = keys(&folder.join(base).join("vectors.safetensors"));
    let of_fold: BTreeSet<String> = of_base.difference(&of_table).cloned().collect();
    let rows = rows_below("Its metadata are those of a model's, and:");
    let documented: BTreeSet<String> =
        rows.iter().flat_map(|row| names(&row[0])).map(str::to_owned).collect();
    assert_eq!(of_fold, documented);
    let lost: Vec<&String> = of_table.difference(&of_base).collect();
    assert_eq!(lost, ["table_id"]);
}
