//! Invalid files: each is refused with its position and the cure, and leaves nothing behind.

use std::num::NonZeroUsize;

use model_store::prepare::{PrepareOptions, VectorsFormat};

use super::files::{as_f64, glove, npy, safetensors, with_norms, word2vec_binary};
use super::support::{Packing, Scratch, components, words_text, zip};

fn refused(content: impl AsRef<[u8]>) -> String {
    Scratch::new().refused(content, &PrepareOptions::default())
}

fn refused_with_words(content: impl AsRef<[u8]>) -> String {
    let scratch = Scratch::new();
    let options = scratch.with_words(words_text());
    scratch.refused(content, &options)
}

#[track_caller]
fn says(said: &str, parts: &[&str]) {
    assert!(said.contains("vectors.any"), "the file is named: {said}");
    for part in parts {
        assert!(said.contains(part), "{part:?} is missing: {said}");
    }
}

#[test]
fn truncated_packings() {
    // Numbers that do not compress, so that a cut is in the middle of them.
    let text: String =
        (0..2000u32).map(|i| format!("w{i} {}\n", i.wrapping_mul(2_654_435_761))).collect();
    for (packing, name) in [
        (Packing::Gzip, "gzip"),
        (Packing::Bzip2, "bzip2"),
        (Packing::Zstd, "zstd"),
        (Packing::Xz, "xz"),
        (Packing::Zip, "zip"),
    ] {
        let whole = packing.pack(text.as_bytes());
        for cut in [whole.len() / 2, whole.len() - 1, 7] {
            let said = refused(&whole[..cut]);
            says(&said, &[name, "cut off or damaged", "download the file again"]);
        }
        let mut damaged = whole.clone();
        let middle = whole.len() / 2;
        damaged[middle..middle + 4].iter_mut().for_each(|b| *b ^= 0xff);
        // The damaged part may still decompress to text, but the damage is found in any case.
        let said = refused(&damaged);
        assert!(said.contains("damaged") || said.contains("line "), "{name}: {said}");
    }
}

#[test]
fn bombs() {
    // Four times the longest line.
    let bomb = vec![b'0'; 16 << 20];
    // More than is decompressed whatever the size of the file, and a hundred times that: short rows,
    // which compress best.
    let row = "a 1 1\n";
    let lines = row.repeat((80 << 20) / row.len());
    for packing in [Packing::Gzip, Packing::Zstd, Packing::Xz, Packing::Zip] {
        // An endless line.
        says(&refused(packing.pack(&bomb)), &["line 1"]);
        // Good lines, repeated, and a words file.
        let said = refused(packing.pack(lines.as_bytes()));
        says(&said, &["more than 100 times its size", "decompress it first"]);
        let few = packing.pack(row.repeat(100).as_bytes());
        Scratch::new().prepare(few, &PrepareOptions::default()).unwrap();
    }
    // A block of bzip2 has 900 kB at most.
    let blocks = |content: &[u8]| Packing::Bzip2.pack(content).repeat(100);
    says(&refused(blocks(&[b'0'; 900_000])), &["line 1"]);
    let said = refused(blocks(row.repeat(150_000).as_bytes()));
    says(&said, &["more than 100 times its size", "decompress it first"]);
    let scratch = Scratch::new();
    let lines = b"a\n".repeat(40 << 20);
    let options = scratch.with_words(Packing::Gzip.pack(&lines));
    let said = scratch.refused(npy("<f4", "False", "(4, 3)", &components()), &options);
    assert!(said.contains("words.any") && said.contains("100 times"), "{said}");
}

#[test]
fn packed_twice() {
    let once = Packing::Gzip.pack(glove(" ", "\n").as_bytes());
    says(
        &refused(zip(&[("a.gz", &once)])),
        &["compressed twice, inside as gzip", "decompress it once"],
    );
    says(&refused(zip(&[])), &["contains no file"]);
    let member = PrepareOptions { member: Some("a".into()), ..Default::default() };
    says(&Scratch::new().refused(&once, &member), &["not a zip archive"]);
}

#[test]
fn headers_that_lie() {
    let lines = glove(" ", "\n");
    let cure = "leave out the header: tail -n +2 FILE | kindred prepare - --format glove --dim 3";
    says(&refused(format!("6 3\n{lines}")), &["its header announces 6 rows, but it has 4", cure]);
    says(&refused(format!("2 3\n{lines}")), &["its header announces 2 rows, but it has 4", cure]);
    says(&refused("2 300\na 1\nb 2\n"), &["line 2: 1 component instead of 300", "--format glove"]);
    let dim = refused(format!("4 2\n{lines}"));
    says(&dim, &["line 2", "3 components instead of 2 (according to the header in line 1;"]);
    says(&refused(format!("4 4\n{lines}")), &["line 2", "3 components instead of 4"]);
    says(&refused(format!("4 0\n{lines}")), &["no components"]);
    says(&refused(format!("4 99999999\n{lines}")), &["too many", "65536"]);

    let binary = word2vec_binary(b"\n");
    let with = |header: &[u8]| [header, &binary[4..]].concat();
    says(
        &refused(with(b"6 3\n")),
        &[
            "row 4, byte",
            "the file ends here, but its header announces 6 rows",
            "(echo 4 3; tail -n +2 FILE) > WHOLE",
        ],
    );
    says(&refused(with(b"2 3\n")), &["byte", "more data after the 2 rows", "first line"]);
    for header in ["4 2\n", "4 4\n", "4 1\n", "1000000000000 1000\n", "4 65536\n"] {
        let said = refused(with(header.as_bytes()));
        says(&said, &["byte "]);
    }
    says(&refused(with(b"4 70000\n")), &["too many"]);

    let data = components();
    for (shape, said) in [
        ("(5, 3)", "it has 5 rows, but words.any has 4 words"),
        ("(12,)", "1 dimensions instead of 2 (rows × components); save it with numpy.save"),
        ("(2, 2, 3)", "numpy.save(path, array.reshape(len(array), -1))"),
        ("(4, 4)", "row 3, byte 176: the file ends here"),
        ("(4, 2)", "byte 160: the file has more data after its 4 rows"),
        ("(4, 0)", "no components"),
    ] {
        says(&refused_with_words(npy("<f4", "False", shape, &data)), &[said]);
    }
    let mut tensors = safetensors("F32", &data);
    tensors[0] = tensors[0].wrapping_add(40);
    says(&refused_with_words(&tensors), &["safetensors header"]);
    says(
        &refused_with_words(safetensors("F64", &data)),
        &["safetensors header can't be read (invalid shape"],
    );
}

#[test]
fn other_kinds_of_numbers() {
    let data = components();
    says(
        &refused_with_words(npy("<f4", "True", "(4, 3)", &data)),
        &["Fortran", "ascontiguousarray"],
    );
    for (descr, expected) in [("|O", "pickled"), ("<U7", "--words"), ("|S9", "fmt='%s'")] {
        says(&refused_with_words(npy(descr, "False", "(4, 3)", &data)), &["its array", expected]);
    }
    says(
        &refused_with_words(npy("|V2", "False", "(4, 3)", &data)),
        &["as NumPy calls bfloat16", "view(ml_dtypes.bfloat16).astype('<f4')"],
    );
    for descr in [">f4", "<i4", "|u1", "<c8"] {
        says(
            &refused_with_words(npy(descr, "False", "(4, 3)", &data)),
            &["have the type", "astype"],
        );
    }
    says(&refused_with_words(safetensors("I32", &data)), &["`table` has the type I32"]);
    let mut huge = as_f64();
    huge[16..24].copy_from_slice(&1e300f64.to_le_bytes());
    let said = refused_with_words(npy("<f8", "False", "(4, 3)", &huge));
    says(&said, &["row 0, byte 128", "component 3 is not a finite float32", "--skip-bad-rows"]);
}

#[test]
fn binary_files_cut_in_the_middle_of_a_row() {
    let binary = word2vec_binary(b"\n");
    says(&refused(&binary[..binary.len() - 3]), &["row 3, byte", "ends inside this row"]);
    says(&refused(&binary[..9]), &["row 0, byte 4", "ends inside this row"]);
    let array = npy("<f4", "False", "(4, 3)", &components());
    says(&refused_with_words(&array[..array.len() - 1]), &["row 3, byte 164", "inside this row"]);
    says(&refused_with_words(&array[..40]), &["npy header"]);
    let tensors = safetensors("F32", &components());
    says(&refused_with_words(&tensors[..tensors.len() - 7]), &["row 3, byte", "inside this row"]);
    says(&refused_with_words(&tensors[..90]), &["safetensors header"]);
    let norms = with_norms();
    says(
        &refused_with_words(&norms[..norms.len() - 5]),
        &["do not divide into rows of float32", "words.any"],
    );
}

#[test]
fn the_dimension_changes() {
    says(&refused("a 1 2 3\nb 1 2 3\nc 1 2\n"), &["line 3: 2 components instead of 3"]);
    says(&refused("a 1 2 3\nb 1 2 3 4\n"), &["line 2: 4 components instead of 3"]);
    let options = PrepareOptions { dim: NonZeroUsize::new(2), ..Default::default() };
    let said = Scratch::new().refused("a 1 2 3\nb 1 2 3\n", &options);
    says(&said, &["line 1: 3 components instead of 2", "--dim is wrong"]);
}

#[test]
fn numbers_that_are_not_finite() {
    says(
        &refused("a 1 2\nb nan 1\n"),
        &["line 2: component 1 is not finite: nan", "--skip-bad-rows"],
    );
    says(&refused("a 1 2\nb 1 -Infinity\n"), &["line 2: component 2 is not finite"]);
    let mut binary = word2vec_binary(b"");
    let last = binary.len() - 4;
    binary[last..].copy_from_slice(&f32::INFINITY.to_le_bytes());
    says(&refused(&binary), &["row 3, byte", "component 3 is not a finite", "--skip-bad-rows"]);
    let skipping = PrepareOptions { skip_bad_rows: true, ..Default::default() };
    let scratch = Scratch::new();
    let summary = scratch.prepare(&binary, &skipping).unwrap();
    assert_eq!((summary.rows, summary.provenance.bad_rows_skipped), (3, 1));
    assert!(summary.first_bad_row.unwrap().starts_with("row 3: component 3"));
    let mut norms = with_norms();
    norms[0..4].copy_from_slice(&1.0f32.to_le_bytes());
    says(
        &refused_with_words(&norms),
        &["row 0, byte 0", "the stored norm is 1, but the components have the norm"],
    );
}

#[test]
fn big_endian_components_are_refused_even_if_bad_rows_may_be_skipped() {
    let file = |bytes: fn(f32) -> [u8; 4]| {
        let mut file = b"20 50\n".to_vec();
        for row in 0..20u16 {
            file.extend(format!("w{row} ").bytes());
            file.extend((0..50u16).flat_map(|i| bytes((f32::from(row * 50 + i) * 0.731).sin())));
            file.push(b'\n');
        }
        file
    };
    let skipping = PrepareOptions { skip_bad_rows: true, ..Default::default() };
    for options in [PrepareOptions::default(), skipping] {
        let said = Scratch::new().refused(file(f32::to_be_bytes), &options);
        says(&said, &["big-endian", "astype('<f4')"]);
        Scratch::new().prepare(file(f32::to_le_bytes), &options).unwrap();
    }
}

#[test]
fn empty_files_and_only_headers() {
    for packing in Packing::ALL {
        says(&refused(packing.pack(b"")), &["the file is empty"]);
    }
    for format in VectorsFormat::ALL {
        let options = PrepareOptions { format: Some(format), ..Default::default() };
        says(&Scratch::new().refused(b"", &options), &["the file is empty"]);
    }
    says(&refused("4 3\n"), &["only a header, which announces 4 rows of 3 components"]);
    says(&refused("\n"), &["line 1 is empty"]);
    says(
        &refused_with_words(npy("<f4", "False", "(4, 3)", b"")),
        &["row 0, byte 128: the file ends here"],
    );
}

#[test]
fn a_line_without_an_end() {
    let long = vec![b'7'; 100 << 20];
    says(&refused(&long), &["line 1"]);
    says(&refused([b"a 1\nb 2\n", &long[..]].concat()), &["line 3: the line is longer than 4 MiB"]);
    let binary = [b"4 3\n", &long[..]].concat();
    let options =
        PrepareOptions { format: Some(VectorsFormat::Word2vecBinary), ..Default::default() };
    says(
        &Scratch::new().refused(binary, &options),
        &["row 0, byte 4", "a word of at most 4096 bytes"],
    );
}

#[test]
fn tabs_and_spaces_where_none_belong() {
    says(&refused("a\t1\t2\nb\t1\t2\n"), &["line 1 has no space", "single spaces"]);
    says(&refused("a 1 2\nb\t1 2\n"), &["line 2", "the line has tabs"]);
    // The dimension comes from the first line, so no number of it may end up in the word.
    says(&refused("a\t1 2 3\nb\t1 2 3\n"), &["line 1", "the line has tabs"]);
    says(&refused("a 1 2\nb  1 2\n"), &["line 2: there is more than one space"]);
    says(
        &refused("a 1 2\n b 1 2\n"),
        &["line 2: there is more than one space between two fields, or a space at the start"],
    );
}

#[test]
fn words_that_are_not_utf8() {
    says(&refused(b"a 1 2\nb\xff 1 2\n"), &["line 2: the word is not valid UTF-8 (byte 2)"]);
    let mut binary = word2vec_binary(b"\n");
    binary[4] = 0xff;
    says(&refused(&binary), &["row 0, byte 4: the word is not valid UTF-8 (byte 1)"]);
    // A word with a space misplaces all following data: nothing after it may be trusted or skipped.
    let numbers = [0.5f32, 2.0].map(f32::to_le_bytes).concat();
    let rows = [&b"new york "[..], b"the ", b"of "].map(|word| [word, &numbers].concat()).concat();
    let spaced = [b"3 2\n", &rows[..]].concat();
    let skipping = PrepareOptions { skip_bad_rows: true, ..Default::default() };
    let said = Scratch::new().refused(&spaced, &skipping);
    says(&said, &["row ", "byte ", "contains a space"]);
    assert!(!said.contains("--skip-bad-rows"), "{said}");
    let scratch = Scratch::new();
    let options = scratch.with_words(b"the\nna\xefve\nzero\nZ\n");
    let said = scratch.refused(npy("<f4", "False", "(4, 3)", &components()), &options);
    assert!(said.contains("words.any: line 2") && said.contains("byte 3"), "{said}");
}

#[test]
fn utf16_is_refused_with_or_without_its_mark() {
    says(&refused(b"\xff\xfea\0 \x001\0\n\0"), &["UTF-16", "iconv"]);
    let utf32: Vec<u8> = "\u{feff}a 1\n".chars().flat_map(|c| u32::from(c).to_le_bytes()).collect();
    says(&refused(&utf32), &["UTF-32 text", "iconv -f UTF-32"]);
    assert!(!refused(&utf32).contains("--encoding"));
    let little = |text: &str| text.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<u8>>();
    let big = |text: &str| text.encode_utf16().flat_map(u16::to_be_bytes).collect::<Vec<u8>>();
    let vectors = glove(" ", "\r\n");
    let headed = format!("4 3\n{vectors}");
    for (bytes, name) in [
        (little(&vectors), "-f UTF-16LE"),
        (big(&vectors), "-f UTF-16BE"),
        (little(&format!("\u{feff}{vectors}")), "-f UTF-16 "),
        (big(&format!("\u{feff}{headed}")), "-f UTF-16 "),
        (little(&headed), "-f UTF-16LE"),
        (big(&headed), "-f UTF-16BE"),
    ] {
        for packing in [Packing::Plain, Packing::Gzip] {
            says(&refused(packing.pack(&bytes)), &["UTF-16 text", "iconv", name]);
            // Neither rows of norms and components.
            says(&refused_with_words(packing.pack(&bytes)), &["UTF-16 text", "iconv", name]);
        }
    }
    let array = npy("<f4", "False", "(4, 3)", &components());
    let words = words_text();
    for bytes in [little(&words), big(&words), little(&format!("\u{feff}{words}"))] {
        let scratch = Scratch::new();
        let options = scratch.with_words(bytes);
        let said = scratch.refused(&array, &options);
        assert!(said.contains("words.any: it is UTF-16 text") && said.contains("iconv"), "{said}");
    }
}

#[test]
fn words_of_another_file() {
    let array = npy("<f4", "False", "(4, 3)", &components());
    says(&refused(&array), &["npy holds no words", "--words"]);
    let scratch = Scratch::new();
    let options = scratch.with_words("one\ntwo\n");
    says(
        &scratch.refused(&array, &options),
        &["it has 4 rows, but words.any has 2 words; give one word for each row"],
    );
    let options = scratch.with_words(format!("word\n{}", words_text()));
    let said = scratch.refused(&array, &options);
    says(&said, &["words.any has 5 words", "if its first line is a heading, leave it out: tail"]);
    let options = scratch.with_words("one\n\nthree\nfour\n");
    let said = scratch.refused(&array, &options);
    assert!(said.contains("words.any: line 2: it is empty"), "{said}");
    let options = scratch.with_words(vec![b'x'; 8 << 20]);
    let said = scratch.refused(&array, &options);
    assert!(said.contains("words.any: line 1: the line is longer than 4096 bytes"), "{said}");
    for content in [glove(" ", "\n").into_bytes(), word2vec_binary(b"")] {
        let options = scratch.with_words(words_text());
        says(&scratch.refused(&content, &options), &["the file itself contains the words"]);
    }
    let format = Some(VectorsFormat::Glove);
    let options = PrepareOptions { format, ..scratch.with_words(words_text()) };
    says(
        &scratch.refused(glove(" ", "\n"), &options),
        &["the file itself contains the words (glove)"],
    );
}

#[test]
fn what_is_something_else() {
    for (start, said) in [
        (&793_712_314_u32.to_le_bytes()[..], "fastText model"),
        (b"\x80\x04\x95", "Python pickle"),
        (b"\x89HDF\r\n\x1a\n", "HDF5"),
        (b"BZh91AY&SY", "the bzip2 data is cut off or damaged"),
        (b"\x7fELF\x02\x01\x01", "it is a program"),
        (b"(lp1\nVthe\np2\na.", "Python pickle"),
        (b"\x07\x01\x02", "--format"),
    ] {
        let content = [start, &[0u8; 100]].concat();
        says(&refused(content), &[said]);
    }
}

#[test]
fn options_that_do_not_fit() {
    let dim = PrepareOptions { dim: NonZeroUsize::new(7), ..Default::default() };
    says(&Scratch::new().refused(format!("4 3\n{}", glove(" ", "\n")), &dim), &["--dim says 7"]);
    says(&Scratch::new().refused(word2vec_binary(b""), &dim), &["--dim says 7"]);
    let tensor = PrepareOptions { tensor: Some("x".into()), ..Default::default() };
    says(&Scratch::new().refused(glove(" ", "\n"), &tensor), &["--tensor is for safetensors"]);
}
