//! The content of `words.txt` and `words.fst`.

use contract::Row;
use rayon::slice::ParallelSliceMut;

/// The words, one per line, and where each line begins; the last offset is the end.
pub(crate) fn text_of<'a>(words: impl Iterator<Item = &'a str>) -> (Vec<u8>, Vec<u64>) {
    let mut text = Vec::new();
    let mut offsets = vec![0];
    for word in words {
        text.extend_from_slice(word.as_bytes());
        text.push(b'\n');
        offsets.push(text.len() as u64);
    }
    (text, offsets)
}

/// The map from words to rows.
///
/// # Errors
/// Two rows with the same word, the first of them first.
pub(crate) fn index_of<'a>(
    rows: usize,
    word: impl Fn(usize) -> &'a str + Sync,
) -> Result<Vec<u8>, (Row, Row)> {
    // The map needs its words in byte order.
    let mut sorted: Vec<Row> = (0..rows as u32).map(Row).collect();
    // Of rows with the same word, the first comes first.
    sorted.par_sort_unstable_by_key(|row| (word(row.index()), row.index()));
    let same = |pair: &&[Row]| word(pair[0].index()) == word(pair[1].index());
    if let Some(pair) = sorted.windows(2).find(same) {
        return Err((pair[0], pair[1]));
    }
    let mut map = fst::MapBuilder::memory();
    for row in sorted {
        map.insert(word(row.index()).as_bytes(), u64::from(row.0))
            .expect("sorted and without repetition, into memory");
    }
    Ok(map.into_inner().expect("into memory"))
}
