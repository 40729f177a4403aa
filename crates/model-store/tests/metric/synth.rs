//! Synthetic models under the dot product.

use contract::Metric;
use model_store::ModelStore;
use model_store::synth::{SynthOptions, synth_in_memory};

fn model(metric: Metric, seed: u64) -> ModelStore {
    let options = SynthOptions { rows: 500, dim: 20, seed, metric, ..Default::default() };
    let files = synth_in_memory(options).unwrap();
    let model = ModelStore::from_memory("synth", &files).unwrap();
    model.verify(|_| ()).unwrap();
    model
}

#[test]
fn the_seed_decides_vectors_and_biases() {
    let a = model(Metric::Dot, 3);
    assert_eq!(a.metric(), Metric::Dot);
    assert_eq!(a.version(), model(Metric::Dot, 3).version());
    let b = model(Metric::Dot, 4);
    assert_ne!(a.table().components(), b.table().components());
    assert_ne!(a.table().biases().unwrap(), b.table().biases().unwrap());
    assert_eq!(a.header().provenance.source, "synth --rows 500 --dim 20 --seed 3 --metric dot");
}

#[test]
fn cosine_models_stay_as_they_were() {
    let options = SynthOptions { rows: 500, dim: 20, seed: 3, ..Default::default() };
    let files = synth_in_memory(options).unwrap();
    let cosine = ModelStore::from_memory("synth", &files).unwrap();
    assert_eq!((cosine.metric(), cosine.table().biases()), (Metric::Cosine, None));
    assert_eq!(cosine.header().provenance.source, "synth --rows 500 --dim 20 --seed 3");
    assert_eq!(cosine.version(), model(Metric::Cosine, 3).version());
}
