//! Takes JSON apart into columns, as the paper on Dremel describes (Melnik et al. 2010): beside a
//! value, a column has its definition level, how many of the optional and repeated fields above it
//! are there, and its repetition level, which of the lists above it goes on.

use std::fmt;
use std::io;

use parquet::basic::Type as Physical;
use parquet::data_type::ByteArray;
use parquet::schema::types::Type;
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};

use super::columns::{Field, Kind, Leaf, Values};

/// Takes lines of JSON apart.
pub(super) struct Shredder {
    root: Field,
    leaves: Vec<Leaf>,
}

impl Shredder {
    pub(super) fn new(schema: &Type) -> Self {
        let mut leaves = Vec::new();
        let root = Field::group(schema, (0, 0), &mut leaves);
        Self { root, leaves }
    }

    /// Adds a row.
    pub(super) fn add(&mut self, json: &[u8]) -> io::Result<()> {
        let mut json = serde_json::Deserializer::from_slice(json);
        let seed = Seed { field: &self.root, repeated: 0, leaves: &mut self.leaves };
        seed.deserialize(&mut json).map_err(io::Error::other)
    }

    /// The columns of the rows that were added. They are empty again afterwards.
    pub(super) fn take(&mut self) -> Vec<Leaf> {
        let empty: Vec<Leaf> = self.leaves.iter().map(Leaf::empty).collect();
        std::mem::replace(&mut self.leaves, empty)
    }
}

/// A value of a field that comes next.
struct Seed<'s> {
    field: &'s Field,
    repeated: i16,
    leaves: &'s mut Vec<Leaf>,
}

impl Seed<'_> {
    /// Nothing is there from this level on.
    fn nothing(self, defined: i16) {
        for leaf in &mut self.leaves[self.field.leaves.clone()] {
            leaf.defined.push(defined);
            leaf.repeated.push(self.repeated);
        }
    }

    fn value<E: Error>(self, put: impl FnOnce(&mut Values) -> bool) -> Result<(), E> {
        let Kind::Leaf(_) = self.field.kind else { return Err(self.other()) };
        if !put(&mut self.leaves[self.field.leaves.start].values) {
            return Err(self.other());
        }
        let defined = self.field.defined;
        self.nothing(defined);
        Ok(())
    }

    /// The value is not of the schema's type.
    fn other<E: Error>(&self) -> E {
        E::custom(format!("`{}` has a value of another type", self.field.name))
    }
}

impl<'de> DeserializeSeed<'de> for Seed<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<(), D::Error> {
        match self.field.kind {
            // Rounded once, from the text.
            Kind::Leaf(Physical::FLOAT) => json.deserialize_f32(self),
            _ => json.deserialize_any(self),
        }
    }
}

impl<'de> Visitor<'de> for Seed<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a value of `{}`", self.field.name)
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        if !self.field.is_optional {
            return Err(E::custom(format!("`{}` has no value", self.field.name)));
        }
        let defined = self.field.defined - 1;
        self.nothing(defined);
        Ok(())
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<(), E> {
        self.value(|values| {
            let Values::Switches(all) = values else { return false };
            all.push(value);
            true
        })
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<(), E> {
        self.value(|values| {
            let Values::Strings(all) = values else { return false };
            all.push(ByteArray::from(value));
            true
        })
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<(), E> {
        self.visit_i64(i64::try_from(value).map_err(E::custom)?)
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<(), E> {
        self.value(|values| {
            match values {
                Values::Whole(all) => all.push(value),
                Values::Doubles(all) => all.push(value as f64),
                Values::Floats(all) => all.push(value as f32),
                _ => return false,
            }
            true
        })
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<(), E> {
        self.value(|values| {
            match values {
                Values::Doubles(all) => all.push(value),
                Values::Floats(all) => all.push(value as f32),
                _ => return false,
            }
            true
        })
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<(), A::Error> {
        let Kind::List(element, again) = &self.field.kind else { return Err(self.other()) };
        let mut repeated = self.repeated;
        let mut is_empty = true;
        loop {
            let seed = Seed { field: element, repeated, leaves: &mut *self.leaves };
            if sequence.next_element_seed(seed)?.is_none() {
                break;
            }
            (repeated, is_empty) = (*again, false);
        }
        if is_empty {
            let defined = self.field.defined;
            self.nothing(defined);
        }
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        match &self.field.kind {
            Kind::Map(both, again) => {
                let [key, value] = &**both;
                let mut repeated = self.repeated;
                let mut is_empty = true;
                loop {
                    let seed = Seed { field: key, repeated, leaves: &mut *self.leaves };
                    if map.next_key_seed(seed)?.is_none() {
                        break;
                    }
                    map.next_value_seed(Seed {
                        field: value,
                        repeated,
                        leaves: &mut *self.leaves,
                    })?;
                    (repeated, is_empty) = (*again, false);
                }
                if is_empty {
                    let defined = self.field.defined;
                    self.nothing(defined);
                }
                Ok(())
            }
            Kind::Group(fields) => {
                let repeated = self.repeated;
                // A bit for each field.
                let mut found = 0_u64;
                while let Some(at) = map.next_key_seed(Name(fields))? {
                    found |= 1 << at;
                    let (field, leaves) = (&fields[at], &mut *self.leaves);
                    map.next_value_seed(Seed { field, repeated, leaves })?;
                }
                for (at, field) in fields.iter().enumerate() {
                    if found & 1 << at == 0 {
                        Seed { field, repeated, leaves: &mut *self.leaves }.visit_unit()?;
                    }
                }
                Ok(())
            }
            _ => Err(self.other()),
        }
    }
}

/// Finds a field by its name.
struct Name<'s>(&'s [Field]);

impl<'de> DeserializeSeed<'de> for Name<'_> {
    type Value = usize;

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<usize, D::Error> {
        json.deserialize_str(self)
    }
}

impl Visitor<'_> for Name<'_> {
    type Value = usize;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name of a column")
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<usize, E> {
        let at = self.0.iter().position(|field| field.name == name);
        at.ok_or_else(|| E::custom(format!("`{name}` is no column")))
    }
}

#[cfg(test)]
mod tests {
    use parquet::schema::parser::parse_message_type;

    use super::*;

    const SCHEMA: &str = "message m {
        OPTIONAL group a (LIST) { REPEATED group list { REQUIRED group element {
            REQUIRED DOUBLE x; OPTIONAL group b (LIST) { REPEATED group list { REQUIRED FLOAT element; } }
        } } }
        OPTIONAL group c (MAP) { REPEATED group key_value { REQUIRED BYTE_ARRAY key (UTF8); REQUIRED INT64 value; } }
        OPTIONAL BOOLEAN d;
    }";

    #[test]
    fn levels_say_what_is_null_what_is_empty_and_what_goes_on() {
        let mut shredder = Shredder::new(&parse_message_type(SCHEMA).unwrap());
        for row in [
            r#"{"a": [{"x": 1.5, "b": [0.1, 2]}, {"x": -0.0, "b": []}, {"x": 3e300}], "d": true}"#,
            r#"{"a": [], "c": {"k": 7, "": -8}}"#,
            r#"{"c": {}, "a": null}"#,
        ] {
            shredder.add(row.as_bytes()).unwrap();
        }
        let leaves = shredder.take();
        let levels: Vec<_> =
            leaves.iter().map(|leaf| (&leaf.defined[..], &leaf.repeated[..])).collect();
        let expected: [(&[i16], &[i16]); 5] = [
            (&[2, 2, 2, 1, 0], &[0, 1, 1, 0, 0]),
            (&[4, 4, 3, 2, 1, 0], &[0, 2, 1, 1, 0, 0]),
            (&[0, 2, 2, 1], &[0, 0, 1, 0]),
            (&[0, 2, 2, 1], &[0, 0, 1, 0]),
            (&[1, 0, 0], &[0, 0, 0]),
        ];
        assert_eq!(levels, expected);
        let Values::Floats(floats) = &leaves[1].values else { panic!("{:?}", leaves[1]) };
        assert_eq!(floats, &[0.1, 2.0]);
        let Values::Whole(numbers) = &leaves[3].values else { panic!("{:?}", leaves[3]) };
        assert_eq!(numbers, &[7, -8]);
        assert!(shredder.take().iter().all(|leaf| leaf.defined.is_empty()));
    }

    #[test]
    fn what_the_schema_does_not_have_is_refused() {
        for (row, part) in [
            (r#"{"e": 1}"#, "`e` is no column"),
            (r#"{"a": [{"b": []}]}"#, "`x` has no value"),
            (r#"{"d": "true"}"#, "`d` has a value of another type"),
            (r#"{"c": [1]}"#, "`c` has a value of another type"),
            (r#"{"c": {"a": 1.5}}"#, "`value` has a value of another type"),
        ] {
            let mut shredder = Shredder::new(&parse_message_type(SCHEMA).unwrap());
            let error = shredder.add(row.as_bytes()).unwrap_err().to_string();
            assert!(error.contains(part), "{row}: {error}");
        }
    }
}
