//! What must hold of any bytes that are taken for an encoder's file. The tests of the crate
//! `encoders` run the seeds through the same checks. Each says whether the bytes were accepted.

use std::path::Path;

use encoders::{FastText, FastTextClassifier};
use model_store::{Mapped, MappedMut};

/// Words to ask for: known ones of the seeds, none, other scripts, and bytes of no script.
const ASKED: [&[u8]; 6] = [b"the", b"</s>", b"", "naïve".as_bytes(), b"\x80\xff", b"a b"];

fn mapped(bytes: &[u8]) -> Mapped {
    let mut copy = MappedMut::zeroed(bytes.len()).expect("memory");
    copy.copy_from_slice(bytes);
    copy.freeze().expect("memory")
}

/// A model of fastText: of words, or a classifier; none is both.
pub fn refused_or_a_fasttext_model(bytes: &[u8]) -> bool {
    let [words, labels] = [refused_or_words(bytes), refused_or_labels(bytes)];
    assert!(!(words && labels), "a model of words and a classifier");
    words || labels
}

/// A classifier. If it is not refused, all texts have all labels, and shares add up to their score.
fn refused_or_labels(bytes: &[u8]) -> bool {
    let path = Path::new("fuzzed.bin");
    let Ok(model) = FastTextClassifier::from_mapped(path, mapped(bytes)) else { return false };
    for text in [&[][..], &ASKED, &ASKED[..1]] {
        let read = model.read(text, ASKED.len(), || true);
        assert!(read.unknown.len() <= text.len() && read.vector.len() == model.dim());
        let products = model.products(&read.vector);
        assert_eq!(model.scored(&products).len(), model.labels().len());
        let shares = model.shares(text, 0, || true);
        assert!(shares.spans.iter().all(|&(first, last, _)| first <= last && last < text.len()));
    }
    true
}

/// A word model. If it is not refused, each word has the vector of its parts.
fn refused_or_words(bytes: &[u8]) -> bool {
    let path = Path::new("fuzzed.bin");
    let Ok(model) = FastText::from_mapped(path, mapped(bytes)) else { return false };
    let rows = u64::from(model.words()) + u64::from(model.training().bucket);
    let mut vector = vec![0.0; model.dim()];
    for row in 0..model.words() {
        let word = model.word(row);
        model.count(row);
        assert!(model.find(word).expect("it is known") <= row, "the first of equals is found");
    }
    let own = (0..model.words()).map(|row| model.word(row));
    for word in own.take(4).chain(ASKED) {
        let parts = model.subwords(word);
        assert!(parts.iter().all(|part| u64::from(part.row) < rows), "each part has a row");
        assert_eq!(model.vector(word, &mut vector), parts.len());
        assert!(!parts.is_empty() || vector.iter().all(|component| *component == 0.0));
    }
    true
}
