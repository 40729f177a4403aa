//! Tests the CUDA engine on a real device against the plain reference on the CPU: the same rows and
//! the same score bits. Without a device every test is listed as ignored, by name.

mod adversarial;
mod append;
mod dot;
mod expand;
mod failures;
mod formulas;
mod full_pass;
mod heads;
mod overlap;
mod ranks;
mod row_sets;
mod shards;
mod staging;
mod support;
mod tables;
mod training;

use libtest_mimic::{Arguments, Trial};

fn main() {
    let mut arguments = Arguments::from_args();
    let device = gpu_core::driver::Gpu::open(None);
    if let Err(reason) = &device {
        println!("ignored, all of them: {reason}");
    }
    // One test at a time, because all tests share the device's context and its free memory.
    arguments.test_threads.get_or_insert(1);
    let missing = device.is_err();
    drop(device);
    let mut trials = Vec::new();
    trials.extend(tables::tests());
    trials.extend(adversarial::tests());
    trials.extend(append::tests());
    trials.extend(dot::tests());
    trials.extend(expand::tests());
    trials.extend(formulas::tests());
    trials.extend(overlap::tests());
    trials.extend(heads::tests());
    trials.extend(ranks::tests());
    trials.extend(full_pass::tests());
    trials.extend(row_sets::tests());
    trials.extend(training::tests());
    trials.extend(shards::tests());
    trials.extend(staging::tests());
    // Last, because what is left of a failed context would be in the way.
    trials.extend(failures::tests());
    let trials = trials
        .into_iter()
        .map(|(name, test): (&'static str, fn())| {
            Trial::test(name, move || {
                test();
                Ok(())
            })
            .with_ignored_flag(missing)
        })
        .collect();
    libtest_mimic::run(&arguments, trials).exit();
}
