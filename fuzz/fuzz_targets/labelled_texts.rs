//! A file of texts with labels, in any format: it is refused, or each text has labels; skipping bad lines never refuses what can be read.
#![no_main]

use kindred::heads::{Format, Texts};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(content) = std::str::from_utf8(bytes) else { return };
    let formats = Format::ALL.into_iter().map(Some).chain([None]);
    for format in formats {
        let strict = Texts::parse("fuzzed", content, format, false);
        let lenient = Texts::parse("fuzzed", content, format, true);
        if let Ok(texts) = &strict {
            assert!(texts.texts.iter().all(|text| !text.labels.is_empty()));
            let lenient = lenient.expect("what is read strictly is read leniently");
            assert_eq!(lenient.texts.len(), texts.texts.len());
        }
    }
});
