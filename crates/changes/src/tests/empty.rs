//! Tables that begin without rows, in real folders.

use contract::{Metric, Row};
use model_store::attributes::AttributeType;
use model_store::format::VECTORS_FILE;
use model_store::prepare::MAX_DIM;
use model_store::{ModelError, ModelStore};

use crate::{BatchBuilder, ChangeOptions, Changes, Durability, Schema, Upsert, create};

fn schema(dim: usize, metric: Metric, names: &[&str]) -> Schema {
    let kinds = AttributeType::ALL.into_iter().cycle();
    let columns = names.iter().zip(kinds).map(|(name, kind)| ((*name).to_owned(), kind));
    Schema { dim, metric, columns: columns.collect() }
}

#[test]
fn an_empty_table_of_every_shape_opens_verifies_and_takes_rows() {
    let scratch = tempfile::tempdir().unwrap();
    let names = ["t", "l", "i", "n", "b", "d"];
    for (number, dim) in [1, 2, 3, MAX_DIM].into_iter().enumerate() {
        for metric in Metric::ALL {
            for names in [&[][..], &names] {
                let name = format!("{number}-{}-{}", metric.name(), names.len());
                let folder = scratch.path().join(&name);
                let schema = schema(dim, metric, names);
                create(&folder, &schema).unwrap();
                let model = ModelStore::open(&folder).unwrap();
                assert_eq!((model.rows(), model.dim(), model.metric()), (0, dim, metric));
                assert_eq!((model.name(), model.words().len()), (&*name, 0));
                assert_eq!(model.words().row("a"), None);
                assert!(model.words().is_empty() && model.words().suggestions("a").is_empty());
                assert_eq!(Schema::of(&model), schema);
                model.verify(|_| ()).unwrap();

                let changes = Changes::open(&folder, ChangeOptions::default()).unwrap();
                let mut batch = BatchBuilder::new(changes.schema());
                let vector = &vec![0.5; dim][..];
                batch.upsert(Upsert { key: "a", vector, bias: None, attributes: &[] });
                let batch = batch.finish().unwrap().unwrap();
                changes.commit(batch, Durability::Synced, None).unwrap();
                drop(changes);
                assert!(matches!(ModelStore::open(&folder), Err(ModelError::HasChanges { .. })));
                let again = Changes::open(&folder, ChangeOptions::default()).unwrap();
                assert_eq!(again.snapshot().row_of("a"), Some(Row(0)));
            }
        }
    }
}

#[test]
fn each_empty_table_has_a_version_of_its_own() {
    let scratch = tempfile::tempdir().unwrap();
    let version = |name: &str| {
        let folder = scratch.path().join(name);
        create(&folder, &schema(2, Metric::Cosine, &["t"])).unwrap();
        ModelStore::open(&folder).unwrap().version().to_owned()
    };
    let (one, other) = (version("one"), version("other"));
    assert_ne!(one, other);
    // The logs of one are not those of the other.
    let changes = |name: &str| Changes::open(&scratch.path().join(name), ChangeOptions::default());
    let table = changes("one").unwrap();
    let mut batch = BatchBuilder::new(table.schema());
    batch.upsert(Upsert { key: "a", vector: &[1.0, 2.0], bias: None, attributes: &[] });
    table.commit(batch.finish().unwrap().unwrap(), Durability::Synced, None).unwrap();
    drop(table);
    let [one, other] = ["one", "other"].map(|name| scratch.path().join(name).join("changes"));
    std::fs::rename(one, other).unwrap();
    let error = changes("other").unwrap_err().to_string();
    assert!(error.contains("it belongs to the base"), "{error}");
}

#[test]
fn impossible_tables_are_refused_and_leave_nothing() {
    let scratch = tempfile::tempdir().unwrap();
    let folder = scratch.path().join("m");
    for (schema, part) in [
        (schema(0, Metric::Cosine, &[]), "1 to 65536 components"),
        (schema(MAX_DIM + 1, Metric::Cosine, &[]), "1 to 65536 components"),
        (schema(2, Metric::Dot, &["a", "a"]), "two attributes have the name `a`"),
        (schema(2, Metric::Dot, &["key"]), "the word of a row"),
    ] {
        let error = create(&folder, &schema).unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
        assert_eq!(std::fs::read_dir(scratch.path()).unwrap().count(), 0);
    }
    create(&folder, &schema(2, Metric::Cosine, &[])).unwrap();
    let error = create(&folder, &schema(2, Metric::Cosine, &[])).unwrap_err();
    assert!(matches!(error, ModelError::OutputInTheWay { .. }), "{error}");
}

#[test]
fn damage_of_an_empty_table_is_found_as_that_of_any_other() {
    let scratch = tempfile::tempdir().unwrap();
    let folder = scratch.path().join("m");
    create(&folder, &schema(3, Metric::Cosine, &[])).unwrap();
    let path = folder.join(VECTORS_FILE);
    let good = std::fs::read(&path).unwrap();
    for byte in (0..good.len()).step_by(7) {
        let mut changed = good.clone();
        changed[byte] ^= 1;
        std::fs::write(&path, &changed).unwrap();
        let opened = ModelStore::open(&folder).and_then(|model| model.verify(|_| ()));
        assert!(opened.is_err(), "byte {byte}");
    }
}
