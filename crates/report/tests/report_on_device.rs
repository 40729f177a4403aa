//! Tests on a real device that the 2020 report's versions give the reference's rows in the same
//! order, except where scores are closer than 1e-6. Without a device the test is listed as ignored.

#[allow(dead_code)]
#[path = "../../gpu-core/tests/on_device/support.rs"]
mod support;

use contract::{Filter, Query, QueryVector, Row};
use libtest_mimic::{Arguments, Trial};
use report::{Report, Version};
use support::{Numbers, model, reference};

fn main() {
    let arguments = Arguments::from_args();
    let device = gpu_core::driver::Gpu::open(None);
    if let Err(reason) = &device {
        println!("ignored: {reason}");
    }
    let missing = device.is_err();
    drop(device);
    let test = Trial::test("report_versions_rank_like_the_reference", || {
        report_versions_rank_like_the_reference();
        Ok(())
    });
    libtest_mimic::run(&arguments, vec![test.with_ignored_flag(missing)]).exit();
}

fn report_versions_rank_like_the_reference() {
    let mut numbers = Numbers::new(2020);
    for (rows, dim) in
        [(1, 3), (2, 300), (9, 50), (10, 7), (11, 50), (257, 33), (2561, 300), (20_000, 100)]
    {
        let vectors: Vec<Vec<f32>> = (0..rows)
            .map(|row| if row % 7 == 5 { vec![0.0; dim] } else { numbers.vector(dim) })
            .collect();
        let model = model(dim, &vectors);
        let table = model.table();
        for k in [1, 10, 32] {
            for version in Version::ALL {
                let mut report = Report::new(&model, version, k).unwrap();
                for _ in 0..3 {
                    let row = Row((numbers.below(rows) / 7 * 7) as u32);
                    let query =
                        Query::new(&table, QueryVector::Row(row), k, Filter::default()).unwrap();
                    let expected = &reference(&model, &[query])[0];
                    let (found, _) = report.search(row).unwrap();
                    let what = format!("{version:?}, {rows} rows x {dim}, k = {k}, row {row:?}");
                    assert_eq!(found.len(), expected.len(), "{what}");
                    for ((found, ranked_by), (expected, bits)) in found.iter().zip(expected) {
                        let score = table.score(table.row(row), table.norm(row), *found).unwrap();
                        let close = (score - f64::from_bits(*bits)).abs() < 1e-6;
                        assert!(found.0 == *expected || close, "{what}: {found:?}, not {expected}");
                        assert!((f64::from(*ranked_by) - score).abs() < 1e-6, "{what}");
                    }
                }
            }
        }
    }
}
