//! The same rows in every format, written by hand, without the crate's code.

use model_store::prepare::VectorsFormat;

use super::support::{ROWS, components};

/// A file, whether its words are in another file, and the model's description of it.
pub(crate) struct Example {
    pub(crate) name: &'static str,
    pub(crate) content: Vec<u8>,
    pub(crate) has_words: bool,
    /// The format, if the first bytes do not tell.
    pub(crate) format: Option<VectorsFormat>,
    pub(crate) described: &'static str,
}

/// Every format.
pub(crate) fn examples() -> Vec<Example> {
    let example = |name, described, content: Vec<u8>| Example {
        name,
        content,
        has_words: false,
        format: None,
        described,
    };
    let numbers = |name, described, content: Vec<u8>| Example {
        name,
        content,
        has_words: true,
        format: None,
        described,
    };
    vec![
        example("GloVe text", "glove text", glove(" ", "\n").into()),
        example("GloVe text, CRLF", "glove text", glove(" ", "\r\n").into()),
        example(
            "GloVe text, byte order mark",
            "glove text",
            format!("\u{feff}{}", glove(" ", "\n")).into(),
        ),
        example("word2vec text", "word2vec text", format!("4 3\n{}", glove(" ", "\n")).into()),
        example("fastText .vec", "word2vec text", format!("4 3\n{}", glove(" ", " \n")).into()),
        example("word2vec binary, line feeds", "word2vec binary", word2vec_binary(b"\n")),
        example("word2vec binary, none", "word2vec binary", word2vec_binary(b"")),
        Example {
            format: Some(VectorsFormat::GloveNorm),
            ..example("GloVe text with norms", "glove text with norms", glove_with_norms().into())
        },
        numbers("norms and components", "norms and components, float32", with_norms()),
        numbers("npy float32", "npy float32", npy("<f4", "False", "(4, 3)", &components())),
        numbers("npy float64", "npy float64", npy("<f8", "False", "(4, 3)", &as_f64())),
        numbers("npy float16", "npy float16", npy("<f2", "False", "(4, 3)", &as_f16())),
        numbers("safetensors F32", "safetensors float32", safetensors("F32", &components())),
        numbers("safetensors F64", "safetensors float64", safetensors("F64", &as_f64())),
        numbers("safetensors F16", "safetensors float16", safetensors("F16", &as_f16())),
        numbers("safetensors BF16", "safetensors bfloat16", safetensors("BF16", &as_bf16())),
    ]
}

pub(crate) fn glove(space: &str, end: &str) -> String {
    let line = |(word, row): &(&str, [f32; 3])| {
        row.iter().fold(word.to_string(), |line, x| line + space + &x.to_string()) + end
    };
    ROWS.iter().map(line).collect()
}

pub(crate) fn glove_with_norms() -> String {
    ROWS.iter()
        .map(|(word, row)| format!("{word} {:.5} {} {} {}\n", norm(row), row[0], row[1], row[2]))
        .collect()
}

fn norm(row: &[f32; 3]) -> f32 {
    row.iter().map(|x| x * x).sum::<f32>().sqrt()
}

pub(crate) fn with_norms() -> Vec<u8> {
    ROWS.iter()
        .flat_map(|(_, row)| [norm(row), row[0], row[1], row[2]])
        .flat_map(f32::to_le_bytes)
        .collect()
}

pub(crate) fn word2vec_binary(end: &[u8]) -> Vec<u8> {
    let mut bytes = b"4 3\n".to_vec();
    for (word, row) in ROWS {
        bytes.extend(word.as_bytes());
        bytes.push(b' ');
        row.iter().for_each(|x| bytes.extend(x.to_le_bytes()));
        bytes.extend(end);
    }
    bytes
}

pub(crate) fn npy(descr: &str, fortran: &str, shape: &str, data: &[u8]) -> Vec<u8> {
    let text = format!("{{'descr': '{descr}', 'fortran_order': {fortran}, 'shape': {shape}, }}");
    let text = format!("{text:<117}\n");
    [b"\x93NUMPY\x01\x00", &(text.len() as u16).to_le_bytes()[..], text.as_bytes(), data].concat()
}

fn all() -> impl Iterator<Item = f32> {
    ROWS.iter().flat_map(|(_, row)| *row)
}

pub(crate) fn as_f64() -> Vec<u8> {
    all().flat_map(|x| f64::from(x).to_le_bytes()).collect()
}

/// The float16 nearest to a number in its range, ties to even; and its value.
pub(crate) fn to_f16(x: f32) -> (u16, f32) {
    let value = |bits: u16| match (i32::from(bits >> 10), f32::from(bits & 0x3ff) / 1024.0) {
        (0, fraction) => fraction * 2f32.powi(-14),
        (exponent, fraction) => (1.0 + fraction) * 2f32.powi(exponent - 15),
    };
    let distance = |bits: &u16| ((value(*bits) - x.abs()).abs(), bits & 1);
    let nearest = (0..0x7c00).min_by(|a, b| distance(a).partial_cmp(&distance(b)).unwrap());
    let (bits, sign) = (nearest.unwrap(), u16::from(x.is_sign_negative()) << 15);
    (bits | sign, value(bits).copysign(x))
}

/// The bfloat16 nearest to a finite number, ties to even; and its value.
pub(crate) fn to_bf16(x: f32) -> (u16, f32) {
    let (bits, half) = (x.to_bits() >> 16, x.to_bits() & 0xffff);
    let bits = bits + u32::from(half > 0x8000 || half == 0x8000 && bits & 1 == 1);
    (bits as u16, f32::from_bits(bits << 16))
}

pub(crate) fn as_f16() -> Vec<u8> {
    all().flat_map(|x| to_f16(x).0.to_le_bytes()).collect()
}

pub(crate) fn as_bf16() -> Vec<u8> {
    all().flat_map(|x| to_bf16(x).0.to_le_bytes()).collect()
}

/// The table between two other tensors.
pub(crate) fn safetensors(dtype: &str, data: &[u8]) -> Vec<u8> {
    let (start, end) = (8, 8 + data.len());
    let header = format!(
        r#"{{"bias":{{"dtype":"F32","shape":[2],"data_offsets":[0,8]}},
            "table":{{"dtype":"{dtype}","shape":[4,3],"data_offsets":[{start},{end}]}},
            "last":{{"dtype":"U8","shape":[5],"data_offsets":[{end},{}]}}}}"#,
        end + 5
    );
    let length = (header.len() as u64).to_le_bytes();
    [&length[..], header.as_bytes(), &[0xff; 8], data, &[0xff; 5]].concat()
}
