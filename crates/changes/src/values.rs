//! The attributes of a row, as records of changes have them.
//!
//! For each column, in the order of the schema, a byte: 0 if the value is missing, otherwise 1 and
//! the value. A text is its length (`u32`) and its bytes, a list its length and its texts, a number
//! of any type its eight bytes, a boolean one byte. All little-endian.

use std::borrow::Cow;

use model_store::attributes::{AttributeType, Value};

use super::fields::Fields;

/// The values of a row, in the order of the columns; `None` where one is missing.
pub(crate) type Values = Box<[Option<Value<'static>>]>;

/// Appends a value.
pub(crate) fn write(value: Option<&Value<'_>>, out: &mut Vec<u8>) {
    let Some(value) = value else { return out.push(0) };
    out.push(1);
    match value {
        Value::Text(text) => write_text(text, out),
        Value::List(texts) => {
            out.extend_from_slice(&count(texts.len()).to_le_bytes());
            texts.iter().for_each(|text| write_text(text, out));
        }
        Value::Integer(number) | Value::DateTime(number) => {
            out.extend_from_slice(&number.to_le_bytes());
        }
        // Both zeros are one value.
        Value::Number(number) => out.extend_from_slice(&(number + 0.0).to_le_bytes()),
        Value::Boolean(truth) => out.push(u8::from(*truth)),
    }
}

fn write_text(text: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(&count(text.len()).to_le_bytes());
    out.extend_from_slice(text.as_bytes());
}

fn count(number: usize) -> u32 {
    u32::try_from(number).expect("a batch is smaller than 4 GiB")
}

/// Reads the values of a row; `None` if the bytes are not those of these types.
pub(crate) fn read(columns: &[(String, AttributeType)], bytes: &[u8]) -> Option<Values> {
    let mut fields = Fields(bytes);
    let values: Option<Values> =
        columns.iter().map(|(_, kind)| read_one(*kind, &mut fields)).collect();
    values.filter(|_| fields.0.is_empty())
}

fn read_one(kind: AttributeType, fields: &mut Fields<'_>) -> Option<Option<Value<'static>>> {
    match fields.u8()? {
        0 => return Some(None),
        1 => (),
        _ => return None,
    }
    let text = |fields: &mut Fields<'_>| fields.text().map(|text| Cow::Owned(text.to_owned()));
    let value = match kind {
        AttributeType::Text | AttributeType::Stored => Value::Text(text(fields)?),
        AttributeType::List => {
            let texts = fields.u32()?;
            Value::List((0..texts).map(|_| text(fields)).collect::<Option<_>>()?)
        }
        AttributeType::Integer => Value::Integer(fields.u64()?.cast_signed()),
        AttributeType::DateTime => Value::DateTime(fields.u64()?.cast_signed()),
        AttributeType::Number => {
            let number = f64::from_bits(fields.u64()?);
            Value::Number(Some(number).filter(|number| number.is_finite())?)
        }
        AttributeType::Boolean => Value::Boolean(match fields.u8()? {
            0 => false,
            1 => true,
            _ => return None,
        }),
    };
    Some(Some(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn columns() -> Vec<(String, AttributeType)> {
        AttributeType::ALL.map(|kind| (kind.to_string(), kind)).into()
    }

    fn written(values: &[Option<Value<'_>>]) -> Vec<u8> {
        let mut bytes = Vec::new();
        values.iter().for_each(|value| write(value.as_ref(), &mut bytes));
        bytes
    }

    #[test]
    fn values_of_every_type_come_back() {
        let all = [
            Some(Value::Text("é\n".into())),
            Some(Value::List(vec!["".into(), "b".into()])),
            Some(Value::Integer(i64::MIN)),
            Some(Value::Number(0.1)),
            Some(Value::Boolean(true)),
            Some(Value::DateTime(-1)),
            Some(Value::Text("c".into())),
        ];
        assert_eq!(read(&columns(), &written(&all)).unwrap()[..], all);
        let none = [const { None }; 7];
        assert_eq!(read(&columns(), &written(&none)).unwrap()[..], none);
        let zero = [("n".to_owned(), AttributeType::Number)];
        let negative = written(&[Some(Value::Number(-0.0))]);
        assert_eq!(negative, written(&[Some(Value::Number(0.0))]));
        assert!(read(&zero, &negative).is_some());
    }

    #[test]
    fn bytes_that_are_no_values_are_refused() {
        let good = written(&[
            Some(Value::Text("ab".into())),
            Some(Value::List(vec!["c".into()])),
            Some(Value::Integer(1)),
            Some(Value::Number(2.0)),
            Some(Value::Boolean(false)),
            None,
            Some(Value::Text("d".into())),
        ]);
        for length in 0..good.len() {
            assert_eq!(read(&columns(), &good[..length]), None, "{length}");
        }
        assert_eq!(read(&columns(), &[&good[..], &[0]].concat()), None);
        let of = |kind, bytes: &[u8]| read(&[("a".to_owned(), kind)], bytes);
        assert_eq!(of(AttributeType::Boolean, &[1, 2]), None);
        assert_eq!(of(AttributeType::Boolean, &[2]), None);
        assert_eq!(of(AttributeType::Text, &[1, 1, 0, 0, 0, 0xff]), None);
        assert_eq!(of(AttributeType::List, &[1, 255, 255, 255, 255]), None);
        let nan = [&[1][..], &f64::NAN.to_le_bytes()].concat();
        assert_eq!(of(AttributeType::Number, &nan), None);
    }
}
