//! Times a classifier of fastText: texts a second of one core, of the labels of each line of a file.
//!
//!     cargo run --release -p encoders --example time_labels -- lid.176.ftz texts.txt

use std::path::Path;
use std::time::Instant;

use encoders::FastTextClassifier;

fn main() {
    let [_, model, texts] = &std::env::args().collect::<Vec<_>>()[..] else {
        panic!("give a classifier of fastText and a file of texts");
    };
    let model = FastTextClassifier::open(Path::new(model)).expect("a classifier");
    let texts = std::fs::read_to_string(texts).expect("a file of texts");
    let texts: Vec<&str> = texts.lines().collect();
    for _ in 0..5 {
        let (started, mut best) = (Instant::now(), 0);
        for text in &texts {
            let (ranges, _) = FastTextClassifier::words_of(text);
            let words: Vec<&[u8]> = ranges.into_iter().map(|at| &text.as_bytes()[at]).collect();
            let scored = model.scored(&model.products(&model.read(&words, 0, || true).vector));
            let labels = scored.iter().enumerate();
            let label = labels.max_by(|a, b| a.1.probability.total_cmp(&b.1.probability));
            best += label.map_or(0, |(label, _)| label);
        }
        let rate = texts.len() as f64 / started.elapsed().as_secs_f64();
        println!("{rate:.0} texts/s (sum of labels {best})");
    }
}
