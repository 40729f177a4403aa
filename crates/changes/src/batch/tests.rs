//! Batches: which rows are refused, and that good ones come back.

use contract::Metric;
use model_store::attributes::{AttributeType, Value};

use super::add_request;
use super::payload::PREFIX_BYTES;
use super::{BadRows, Batch, BatchBuilder, MAX_BATCH_BYTES, MAX_KEY_BYTES, Payload, Upsert};
use crate::fields::Aligned;
use crate::record::{self, HEADER_BYTES};
use crate::schema::Schema;

fn schema(metric: Metric) -> Schema {
    let columns =
        vec![("price".to_owned(), AttributeType::Number), ("tags".to_owned(), AttributeType::List)];
    Schema { dim: 2, metric, columns }
}

fn row<'a>(key: &'a str, vector: &'a [f32], attributes: &'a [(&'a str, Value<'a>)]) -> Upsert<'a> {
    Upsert { key, vector, bias: None, attributes }
}

fn finished(batch: BatchBuilder<'_>) -> Batch {
    batch.finish().unwrap().unwrap()
}

#[test]
fn every_bad_row_is_named_with_its_fault_and_the_batch_is_refused_whole() {
    let schema = schema(Metric::Cosine);
    let mut batch = BatchBuilder::new(&schema);
    let long = "x".repeat(MAX_KEY_BYTES + 1);
    let good = [1.0, 2.0];
    let bias = Upsert { bias: Some(1.0), ..row("k", &good, &[]) };
    let nan = [("price", Value::Number(f64::NAN))];
    let other = [("price", Value::Integer(1))];
    let unknown = [("colour", Value::Integer(1))];
    let twice = [("price", Value::Number(1.0)), ("price", Value::Number(2.0))];
    batch.upsert(row("first", &good, &[]));
    let bad = [
        (row("a", &[1.0], &[]), "has 1 component instead of 2"),
        (row("b", &[1.0, 2.0, 3.0], &[]), "has 3 components instead of 2"),
        (row("c", &[1.0, f32::NAN], &[]), "component 1 of its vector is not a finite float32"),
        (row("d", &[f32::INFINITY, 0.0], &[]), "component 0"),
        (row("", &good, &[]), "its key is empty"),
        (row(&long, &good, &[]), "longer than 4096 bytes"),
        (row("e\nf", &good, &[]), "has a line feed"),
        (row("first", &good, &[]), "row 0 has the same key; keep one of them"),
        (bias, "only tables under the metric `dot` have"),
        (row("g", &good, &nan), "its attribute `price` is not a finite number"),
        (row("h", &good, &other), "its attribute `price` is not a finite number"),
        (row("i", &good, &unknown), "no attribute `colour`; it has price, tags"),
        (row("j", &good, &twice), "`price` is there twice"),
    ];
    let expected: Vec<(usize, &str)> =
        bad.iter().enumerate().map(|(index, (_, fault))| (index + 1, *fault)).collect();
    for (row, _) in bad {
        batch.upsert(row);
    }
    batch.delete("first");
    batch.delete("");
    let BadRows(found) = batch.finish().unwrap_err();
    let expected = expected.into_iter().chain([(14, "same key"), (15, "is empty")]);
    assert_eq!(found.len(), expected.clone().count());
    for (row, (index, fault)) in found.iter().zip(expected) {
        assert!(row.index == index && row.reason.contains(fault), "{row}");
    }
    let text = BadRows(found).to_string();
    assert!(text.starts_with("15 of the batch's rows can't be taken: row 1 (\"a\"): its vector"));
}

#[test]
fn bad_rows_leave_nothing_of_theirs_behind() {
    let schema = schema(Metric::Dot);
    let (mut batch, mut expected) = (BatchBuilder::new(&schema), BatchBuilder::new(&schema));
    let tags = [("tags", Value::List(vec!["a".into()])), ("price", Value::Number(-0.0))];
    let good =
        [Upsert { bias: Some(2.5), ..row("é", &[1.0, -0.0], &tags) }, row("b", &[0.0; 2], &[])];
    for one in good {
        batch.upsert(one);
        batch.upsert(one);
        batch.upsert(Upsert { bias: Some(f32::NAN), ..row("c", &[1.0, 2.0], &tags) });
        batch.upsert(row("d", &[1.0, 2.0], &[tags[0].clone(), ("tags", Value::List(vec![]))]));
        expected.upsert(one);
    }
    // Their keys are free.
    for builder in [&mut batch, &mut expected] {
        builder.delete("c");
        builder.upsert(row("d", &[3.0, 4.0], &[]));
    }
    let (batch, bad) = batch.finish_without_bad();
    let (batch, expected) = (batch.unwrap(), finished(expected));
    assert_eq!((bad.len(), batch.upserts(), batch.deletes()), (6, 3, 1));
    assert_eq!(batch.record.bytes(), expected.record.bytes());

    let payload = Payload::read(&schema, &batch.record.bytes()[HEADER_BYTES..]).unwrap();
    assert!(payload.upserted().eq(["é", "b", "d"]) && payload.deleted().eq(["c"]));
    assert_eq!(payload.vectors(), [1.0, 0.0, 0.0, 0.0, 3.0, 4.0]);
    assert!(payload.vectors()[1].is_sign_negative(), "components keep their bits");
    assert_eq!(payload.biases(), [2.5, 0.0, 0.0]);
    assert!(payload.norms().eq([1.0, 0.0, 5.0]));
    let values = payload.values(&schema).unwrap();
    let tags = Some(Value::List(vec!["a".into()]));
    assert_eq!(*values[0], [Some(Value::Number(0.0)), tags]);
    assert_eq!((&*values[1], &*values[2]), (&[None, None][..], &[None, None][..]));
    assert_eq!(payload.request(), None);
}

#[test]
fn a_batch_without_rows_is_none_and_one_that_is_too_large_is_refused() {
    let schema = Schema { dim: 65_536, metric: Metric::Cosine, columns: Vec::new() };
    assert!(BatchBuilder::new(&schema).finish().unwrap().is_none());
    let vector = vec![1.0; schema.dim];
    let mut batch = BatchBuilder::new(&schema);
    let most = MAX_BATCH_BYTES / (schema.dim * size_of::<f32>());
    for number in 0..=most {
        batch.upsert(row(&number.to_string(), &vector, &[]));
    }
    assert!(batch.bytes() <= MAX_BATCH_BYTES);
    let BadRows(bad) = batch.finish().unwrap_err();
    assert_eq!(bad.len(), 2);
    assert!(bad.iter().all(|row| row.reason.ends_with("send it in parts")), "{bad:?}");
}

#[test]
fn an_idempotency_key_is_no_part_of_the_content() {
    let schema = schema(Metric::Dot);
    let build = |vector| {
        let mut batch = BatchBuilder::new(&schema);
        batch.upsert(row("a", vector, &[]));
        finished(batch).record
    };
    let with = |mut record: Aligned, key: &str| {
        if !key.is_empty() {
            add_request(&mut record, key, 17);
        }
        record::pad(&mut record);
        record
    };
    let records = [
        with(build(&[1.0, 2.0]), ""),
        with(build(&[1.0, 2.0]), "é"),
        with(build(&[1.0, 2.0]), "another"),
        with(build(&[1.0, 2.5]), "another"),
    ];
    let payloads =
        records.each_ref().map(|one| Payload::read(&schema, &one.bytes()[HEADER_BYTES..]).unwrap());
    let requests = payloads.map(|payload| payload.request().map(|one| (one.key, one.at)));
    let another = Some(("another", 17));
    assert_eq!(requests, [None, Some(("é", 17)), another, another]);
    let [first, second, third, other] = payloads.map(|payload| payload.content());
    assert!(first == second && first == third && first != other);
}

#[test]
fn bytes_that_are_no_batch_are_refused() {
    let schema = schema(Metric::Dot);
    let mut batch = BatchBuilder::new(&schema);
    batch.upsert(row("ab", &[1.0, 2.0], &[]));
    batch.delete("é");
    let mut record = finished(batch).record;
    add_request(&mut record, "key", 1);
    record::pad(&mut record);
    let good = record.bytes()[HEADER_BYTES..].to_vec();
    let read = |bytes: &[u8]| {
        let aligned = Aligned::of_parts(&[bytes]);
        Payload::read(&schema, aligned.bytes()).map(|_| ())
    };
    assert_eq!(read(&good), Ok(()));
    let text = good.len() - good.len() % 8;
    for length in 0..text - 8 {
        assert!(read(&good[..length]).is_err(), "{length}");
    }
    assert!(read(&[&good[..], &[0; 8]].concat()).is_err());
    let changed = |at: usize, bytes: &[u8]| {
        let mut changed = good.clone();
        changed[at..at + bytes.len()].copy_from_slice(bytes);
        read(&changed)
    };
    let ends = PREFIX_BYTES + 2 * 4 + 4;
    for (at, bytes) in [
        (0, &[0; 8][..]),
        (0, &[255; 4]),
        (4, &[255; 4]),
        (8, &[255; 8]),
        (16, &[255; 8]),
        (24, &[255; 4]),
        (28, &[1]),
        (PREFIX_BYTES, &f32::NAN.to_le_bytes()),
        (PREFIX_BYTES + 8, &f32::INFINITY.to_le_bytes()),
        (ends, &[5]),
        // In the middle of a letter, and a key without letters.
        (ends, &[3]),
        (ends, &[0]),
        (ends + 8, &[1]),
        (ends + 12, b"\n"),
        (ends + 12, &[0xff]),
    ] {
        assert!(changed(at, bytes).is_err(), "{bytes:?} at {at}");
    }
}
