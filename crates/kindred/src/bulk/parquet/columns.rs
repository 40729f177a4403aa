//! The fields of a schema, and the columns below them.

use std::ops::Range;

use parquet::basic::{ConvertedType, Repetition, Type as Physical};
use parquet::data_type::ByteArray;
use parquet::schema::types::Type;

/// A column: values that are there, and levels of those that are not as well.
#[derive(Debug)]
pub(super) struct Leaf {
    pub(super) values: Values,
    pub(super) defined: Vec<i16>,
    pub(super) repeated: Vec<i16>,
}

#[derive(Debug)]
pub(super) enum Values {
    Strings(Vec<ByteArray>),
    Doubles(Vec<f64>),
    Floats(Vec<f32>),
    Whole(Vec<i64>),
    Switches(Vec<bool>),
}

/// A field of the schema.
pub(super) struct Field {
    pub(super) name: String,
    /// The definition level of a value that is there, and whether it may be null.
    pub(super) defined: i16,
    pub(super) is_optional: bool,
    /// The columns below it.
    pub(super) leaves: Range<usize>,
    pub(super) kind: Kind,
}

pub(super) enum Kind {
    Leaf(Physical),
    Group(Vec<Field>),
    /// With the repetition level of all elements but the first.
    List(Box<Field>, i16),
    /// Keys and values.
    Map(Box<[Field; 2]>, i16),
}

impl Leaf {
    fn new(of: Physical) -> Self {
        let values = match of {
            Physical::DOUBLE => Values::Doubles(Vec::new()),
            Physical::FLOAT => Values::Floats(Vec::new()),
            Physical::INT64 => Values::Whole(Vec::new()),
            Physical::BOOLEAN => Values::Switches(Vec::new()),
            _ => Values::Strings(Vec::new()),
        };
        Self { values, defined: Vec::new(), repeated: Vec::new() }
    }

    pub(super) fn empty(&self) -> Self {
        let values = match &self.values {
            Values::Strings(_) => Values::Strings(Vec::new()),
            Values::Doubles(_) => Values::Doubles(Vec::new()),
            Values::Floats(_) => Values::Floats(Vec::new()),
            Values::Whole(_) => Values::Whole(Vec::new()),
            Values::Switches(_) => Values::Switches(Vec::new()),
        };
        Self { values, defined: Vec::new(), repeated: Vec::new() }
    }
}

impl Field {
    /// `above` has the levels of what is above it.
    fn new(schema: &Type, above: (i16, i16), leaves: &mut Vec<Leaf>) -> Self {
        let is_optional = schema.get_basic_info().repetition() == Repetition::OPTIONAL;
        let (defined, repeated) = (above.0 + i16::from(is_optional), above.1);
        let field = Self::group(schema, (defined, repeated), leaves);
        Self { is_optional, ..field }
    }

    pub(super) fn group(
        schema: &Type,
        (defined, repeated): (i16, i16),
        leaves: &mut Vec<Leaf>,
    ) -> Self {
        let first = leaves.len();
        // The repeated group in a list or a map has a level of each kind.
        let below = (defined + 1, repeated + 1);
        let kind = if schema.is_primitive() {
            leaves.push(Leaf::new(schema.get_physical_type()));
            Kind::Leaf(schema.get_physical_type())
        } else {
            let fields = schema.get_fields();
            match schema.get_basic_info().converted_type() {
                ConvertedType::LIST => {
                    let element = Self::new(&fields[0].get_fields()[0], below, leaves);
                    Kind::List(Box::new(element), below.1)
                }
                ConvertedType::MAP => {
                    let both = fields[0].get_fields();
                    let both = [0, 1].map(|at| Self::new(&both[at], below, leaves));
                    Kind::Map(Box::new(both), below.1)
                }
                _ => {
                    let fields = fields.iter();
                    let above = (defined, repeated);
                    Kind::Group(fields.map(|field| Self::new(field, above, leaves)).collect())
                }
            }
        };
        let name = schema.name().to_owned();
        Self { name, defined, is_optional: false, leaves: first..leaves.len(), kind }
    }
}
