//! Small fastText files, made byte by byte, with any fault.

use std::path::Path;

use encoders::{EncoderError, FastText, FastTextClassifier};
use model_store::{Mapped, MappedMut};

/// The fields of a file. The default has three words of two components and five buckets.
#[derive(Debug, Clone)]
pub(crate) struct File {
    pub(crate) magic: i32,
    pub(crate) version: i32,
    pub(crate) dim: i32,
    pub(crate) word_ngrams: i32,
    pub(crate) loss: i32,
    pub(crate) model: i32,
    pub(crate) bucket: i32,
    pub(crate) minn: i32,
    pub(crate) maxn: i32,
    /// The words and labels with their kinds.
    pub(crate) entries: Vec<(Vec<u8>, i64, i8)>,
    /// Entries, words, labels; `None`: as many as there are.
    pub(crate) counts: Option<[i32; 3]>,
    /// The number of pairs; -1 for none.
    pub(crate) pruned: i64,
    pub(crate) pairs: Vec<[i32; 2]>,
    pub(crate) is_quantised: i8,
    /// Rows and components of the rows' matrix; `None`: as many as there should be.
    pub(crate) rows: Option<[i64; 2]>,
    pub(crate) output: Option<[i64; 2]>,
    /// A component by its place in the rows.
    pub(crate) component: fn(usize) -> f32,
    pub(crate) behind: Vec<u8>,
}

impl Default for File {
    fn default() -> Self {
        Self {
            magic: 793_712_314,
            version: 12,
            dim: 2,
            word_ngrams: 1,
            loss: 2,
            model: 2,
            bucket: 5,
            minn: 2,
            maxn: 3,
            entries: words(&[b"</s>", b"the", b"a"]),
            counts: None,
            pruned: -1,
            pairs: Vec::new(),
            is_quantised: 0,
            rows: None,
            output: None,
            component,
            behind: Vec::new(),
        }
    }
}

/// Entries that are words; the first is the most frequent.
pub(crate) fn words(words: &[&[u8]]) -> Vec<(Vec<u8>, i64, i8)> {
    words.iter().enumerate().map(|(at, word)| (word.to_vec(), 100 - at as i64, 0)).collect()
}

impl File {
    fn of_kind(&self, kind: i8) -> usize {
        self.entries.iter().filter(|entry| entry.2 == kind).count()
    }

    /// Where the number of entries stands.
    pub(crate) const COUNTS_AT: u64 = 2 * 4 + 12 * 4 + 8;

    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let ints = |bytes: &mut Vec<u8>, ints: &[i32]| {
            bytes.extend(ints.iter().flat_map(|int| int.to_le_bytes()));
        };
        ints(&mut bytes, &[self.magic, self.version]);
        ints(&mut bytes, &[self.dim, 5, 5, 1, 5, self.word_ngrams, self.loss]);
        ints(&mut bytes, &[self.model, self.bucket]);
        ints(&mut bytes, &[self.minn, self.maxn, 100]);
        bytes.extend(1e-4f64.to_le_bytes());
        let (entries, own) = (self.entries.len(), self.of_kind(0));
        let counts = [entries as i32, own as i32, (entries - own) as i32];
        ints(&mut bytes, &self.counts.unwrap_or(counts));
        bytes.extend(1_000i64.to_le_bytes());
        bytes.extend(self.pruned.to_le_bytes());
        for (word, count, kind) in &self.entries {
            bytes.extend(word);
            bytes.push(0);
            bytes.extend(count.to_le_bytes());
            bytes.push(kind.cast_unsigned());
        }
        ints(&mut bytes, self.pairs.as_flattened());
        bytes.push(self.is_quantised.cast_unsigned());
        let dim = i64::from(self.dim);
        let mut matrix = |[rows, components]: [i64; 2]| {
            bytes.extend(rows.to_le_bytes());
            bytes.extend(components.to_le_bytes());
            if (0..10_000).contains(&rows) && (0..1_000).contains(&components) {
                for at in 0..rows * components {
                    bytes.extend((self.component)(at as usize).to_le_bytes());
                }
            }
            bytes.push(0);
        };
        matrix(self.rows.unwrap_or([own as i64 + i64::from(self.bucket), dim]));
        let outputs = if self.model == 3 { entries - own } else { own };
        matrix(self.output.unwrap_or([outputs as i64, dim]));
        // The output matrix has nothing behind it.
        bytes.pop();
        bytes.extend(&self.behind);
        bytes
    }

    pub(crate) fn model(&self) -> Result<FastText, EncoderError> {
        model(&self.bytes())
    }
}

/// A classifier with three words and two labels.
pub(crate) fn classifier() -> File {
    let mut entries = words(&[b"</s>", b"good", b"bad"]);
    entries.push((b"__label__up".to_vec(), 7, 1));
    entries.push((b"__label__down".to_vec(), 5, 1));
    File { model: 3, loss: 3, word_ngrams: 2, entries, component: mixed, ..File::default() }
}

/// Components without a pattern, of both signs.
pub(crate) fn mixed(at: usize) -> f32 {
    let mixed = (at as u64).wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
    mixed as f32 / (1 << 23) as f32 - 1.0
}

/// A component by its place in the rows. Sums of them are rounded.
pub(crate) fn component(at: usize) -> f32 {
    (at as f32 + 1.0) / 7.0
}

/// The model that these bytes are.
pub(crate) fn model(bytes: &[u8]) -> Result<FastText, EncoderError> {
    FastText::from_mapped(Path::new("small.bin"), mapped(bytes))
}

/// The classifier that these bytes are.
pub(crate) fn classifier_of(bytes: &[u8]) -> Result<FastTextClassifier, EncoderError> {
    FastTextClassifier::from_mapped(Path::new("small.bin"), mapped(bytes))
}

fn mapped(bytes: &[u8]) -> Mapped {
    let mut copy = MappedMut::zeroed(bytes.len()).expect("memory");
    copy.copy_from_slice(bytes);
    copy.freeze().expect("memory")
}
