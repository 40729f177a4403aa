//! Attributes of synthetic models.

use model_store::ModelStore;
use model_store::attributes::AttributeType::{Integer, Text};
use model_store::synth::{SynthOptions, synth_in_memory};

fn model(attributes: bool, seed: u64) -> ModelStore {
    let options = SynthOptions { rows: 500, dim: 8, seed, attributes, ..Default::default() };
    ModelStore::from_memory("synth", &synth_in_memory(options).unwrap()).unwrap()
}

#[test]
fn they_are_those_of_a_model_that_was_prepared() {
    let (with, without) = (model(true, 3), model(false, 3));
    with.verify(|_| ()).unwrap();
    assert_eq!(with.table().components(), without.table().components());
    assert_ne!(with.version(), without.version());
    assert_eq!(with.version(), model(true, 3).version());
    assert_eq!(with.header().provenance.source, "synth --rows 500 --dim 8 --seed 3 --attributes");
    let attributes = with.attributes().unwrap();
    assert_eq!(attributes.rows(), 500);
    let found: Vec<_> =
        attributes.descriptions().map(|one| (&*one.name, one.kind, one.missing)).collect();
    assert_eq!(found, [("a", Integer, 0), ("keyword", Text, 0)]);
    assert!(without.attributes().is_none());
}
