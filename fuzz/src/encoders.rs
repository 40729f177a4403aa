//! What must hold of any bytes that are taken for an encoder's file. The tests of the crate
//! `encoders` run the seeds through the same checks. Each says whether the bytes were accepted.

use std::path::Path;

use encoders::FastText;
use model_store::MappedMut;

/// Words to ask for: known ones of the seeds, none, other scripts, and bytes of no script.
const ASKED: [&[u8]; 6] = [b"the", b"</s>", b"", "naïve".as_bytes(), b"\x80\xff", b"a b"];

/// A fastText model. If it is not refused, each word has the vector of its parts.
pub fn refused_or_a_fasttext_model(bytes: &[u8]) -> bool {
    let mut copy = MappedMut::zeroed(bytes.len()).expect("memory");
    copy.copy_from_slice(bytes);
    let file = copy.freeze().expect("memory");
    let Ok(model) = FastText::from_mapped(Path::new("fuzzed.bin"), file) else { return false };
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
