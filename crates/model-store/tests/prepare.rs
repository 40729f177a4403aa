//! Preparing valid and invalid vectors files into model folders, complete or not at all.

use std::fs;
use std::io::Write;
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use contract::Row;
use flate2::Compression;
use flate2::write::GzEncoder;
use model_store::prepare::{Input, PrepareOptions, Summary, prepare_folder, prepare_in_memory};
use model_store::{ModelError, ModelStore};
use tempfile::TempDir;

struct Scratch {
    folder: TempDir,
}

impl Scratch {
    fn new() -> Self {
        Self { folder: TempDir::new().unwrap() }
    }

    fn out(&self) -> PathBuf {
        self.folder.path().join("model")
    }

    fn write(&self, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.folder.path().join("vectors.txt");
        fs::write(&path, content).unwrap();
        path
    }

    fn prepare(
        &self,
        content: impl AsRef<[u8]>,
        options: &PrepareOptions,
    ) -> Result<Summary, ModelError> {
        let input = self.write(content);
        let on_progress = &mut |_| ControlFlow::Continue(());
        prepare_folder(Input::File(&input), &self.out(), options, on_progress)
    }

    fn open(&self) -> ModelStore {
        let model = ModelStore::open(&self.out()).unwrap();
        model.verify(|_| ()).unwrap();
        model
    }

    /// Everything beside the input: nothing may stay behind a failure.
    fn left_behind(&self) -> Vec<String> {
        let names = fs::read_dir(self.folder.path()).unwrap();
        let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.filter(|name| name != "vectors.txt").collect()
    }
}

fn prepare(content: impl AsRef<[u8]>) -> ModelStore {
    let scratch = Scratch::new();
    scratch.prepare(content, &PrepareOptions::default()).unwrap();
    scratch.open()
}

fn skipping() -> PrepareOptions {
    PrepareOptions { skip_bad_rows: true, ..Default::default() }
}

fn gzip(content: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(content).unwrap();
    encoder.finish().unwrap()
}

const TEXT: &str = "the 1 0 0\nking 3 4 0\nqueen 0 -1 0.5\n";

#[test]
fn rows_words_and_norms_come_back() {
    let model = prepare(TEXT);
    assert_eq!((model.name(), model.rows(), model.dim()), ("model", 3, 3));
    assert_eq!(model.table().row(Row(2)), [0.0, -1.0, 0.5]);
    assert_eq!(model.table().norms()[..2], [1.0, 5.0]);
    assert_eq!(model.words().word(Row(1)), "king");
    assert_eq!(model.words().row("queen"), Some(Row(2)));
    assert_eq!(model.words().row("King"), None);
    let provenance = &model.header().provenance;
    assert_eq!((provenance.source.as_str(), provenance.source_bytes), ("vectors.txt", 36));
}

#[test]
fn gzip_is_known_by_its_content_and_gives_the_same_model() {
    let plain = prepare(TEXT);
    let packed = prepare(gzip(TEXT.as_bytes()));
    // As `cat a.gz b.gz` makes it.
    let (head, tail) = TEXT.as_bytes().split_at(20);
    let in_two = prepare([gzip(head), gzip(tail)].concat());
    for model in [&packed, &in_two] {
        assert_eq!(model.header().checksums, plain.header().checksums);
        assert_eq!(model.header().provenance.source_format, "glove text, gzip");
    }
}

#[test]
fn in_memory_and_in_a_folder_are_the_same_model() {
    let input = Input::Bytes { name: "three.txt", bytes: TEXT.as_bytes() };
    let files = prepare_in_memory(input, &PrepareOptions::default()).unwrap();
    let model = ModelStore::from_memory("three", &files).unwrap();
    model.verify(|_| ()).unwrap();
    assert_eq!(model.name(), "three");
    assert_eq!(model.header().checksums, prepare(TEXT).header().checksums);
}

#[test]
fn an_odd_number_of_components_keeps_the_norms_aligned() {
    for rows in 1..4 {
        let text: String = (0..rows).map(|row| format!("w{row} 1 2 3\n")).collect();
        assert_eq!(prepare(text).table().norms(), vec![14f64.sqrt(); rows]);
    }
}

#[test]
fn a_last_line_without_its_end_and_carriage_returns_are_read() {
    let model = prepare("a 1 2\r\nb 3 4");
    assert_eq!(model.table().components(), [1.0, 2.0, 3.0, 4.0]);
    assert_eq!(model.words().word(Row(0)), "a");
}

#[test]
fn words_may_contain_spaces_and_anything_but_a_line_feed() {
    let model = prepare("the 1 2\n. . . 3 4\nat name@domain.com 5 6\n\u{a0}\u{85} 7 8\n");
    let words: Vec<_> = (0..4).map(|row| model.words().word(Row(row))).collect();
    assert_eq!(words, ["the", ". . .", "at name@domain.com", "\u{a0}\u{85}"]);
    assert_eq!(model.words().row(". . ."), Some(Row(1)));
}

#[test]
fn the_dimension_can_be_given_for_a_first_word_with_spaces() {
    let scratch = Scratch::new();
    let text = ". . . 1 2\nthe 3 4\n";
    let error = scratch.prepare(text, &PrepareOptions::default()).unwrap_err().to_string();
    assert!(error.contains("line 1: component 2 is not a number"), "{error}");
    assert!(error.contains("--dim"), "{error}");
    let dim = NonZeroUsize::new(2);
    scratch.prepare(text, &PrepareOptions { dim, ..Default::default() }).unwrap();
    assert_eq!(scratch.open().words().word(Row(0)), ". . .");
}

#[test]
fn a_repeated_word_keeps_its_first_row_and_is_counted() {
    let scratch = Scratch::new();
    let summary = scratch.prepare("a 1\nb 2\na 3\na 4\n", &PrepareOptions::default()).unwrap();
    assert_eq!((summary.rows, summary.provenance.duplicate_words_dropped), (2, 2));
    assert_eq!(scratch.open().table().components(), [1.0, 2.0]);
}

#[test]
fn zero_rows_are_kept() {
    let model = prepare("a 0 -0\nb 1 2\n");
    assert_eq!(model.table().norm(Row(0)), 0.0);
    assert_eq!(model.words().row("a"), Some(Row(0)));
}

#[test]
fn bad_lines_stop_and_leave_nothing_or_are_skipped_and_counted() {
    for (line, reason) in [
        (&b"bad 1"[..], "1 component instead of 2"),
        (b"bad 0.5 2 3", "3 components instead of 2"),
        (
            b"bad 1 2 3",
            "3 components instead of 2; if the word is `bad 1`, add --dim 2 --allow-numeric-words",
        ),
        (b"bad 1 two", "component 2 is not a number: `two`"),
        (b"bad NaN 2", "component 1 is not finite: NaN"),
        (b"bad 1 -inf", "component 2 is not finite: -inf"),
        (b"bad 1 4e38", "component 2 is outside the range of float32: 4e38"),
        (b" 1 2", "the word is empty"),
        (b"", "the line is empty"),
        (b"b\xffd 1 2", "the word is not valid UTF-8 (byte 2); name its encoding with --encoding"),
    ] {
        let text = [b"good 1 2\n", line, b"\nalso 3 4\n"].concat();
        let scratch = Scratch::new();
        let error = scratch.prepare(&text, &PrepareOptions::default()).unwrap_err();
        let ModelError::BadLine { line: 2, reason: found, .. } = &error else {
            panic!("{error:?}");
        };
        assert_eq!(found, reason);
        let said = error.to_string();
        assert!(
            said.contains("vectors.txt, line 2: ") && said.contains("--skip-bad-rows"),
            "{said}"
        );
        assert!(scratch.left_behind().is_empty(), "{:?}", scratch.left_behind());

        let summary = scratch.prepare(&text, &skipping()).unwrap();
        assert_eq!((summary.rows, summary.provenance.bad_rows_skipped), (2, 1));
        assert_eq!(summary.first_bad_row, Some(format!("line 2: {reason}")));
        assert_eq!(scratch.open().header().provenance.bad_rows_skipped, 1);
    }
}

#[test]
fn line_numbers_are_right_far_into_a_large_file() {
    // More than one chunk of text and many tasks of lines.
    let mut text = String::new();
    for row in 0..400_000 {
        text += &format!("word{row} 0.125 -7.25e-3 1234.5\n");
    }
    let good = text.clone();
    text += "bad 1 2\nlast 1 2 3\n";
    let scratch = Scratch::new();
    let error = scratch.prepare(&text, &PrepareOptions::default()).unwrap_err();
    assert!(matches!(error, ModelError::BadLine { line: 400_001, .. }), "{error}");
    assert_eq!(scratch.prepare(&text, &skipping()).unwrap().rows, 400_001);
    let model = scratch.open();
    assert_eq!(model.words().word(Row(399_999)), "word399999");
    assert_eq!(model.words().row("last"), Some(Row(400_000)));
    assert!(
        model.table().components()[..1_200_000]
            .chunks(3)
            .all(|row| row == [0.125, -7.25e-3, 1234.5])
    );
    assert_eq!(good.lines().count(), 400_000);
}

#[test]
fn files_that_are_no_vectors_are_refused_whole() {
    for (content, reason) in [
        (Vec::new(), "the file is empty"),
        (b"justaword\n".to_vec(), "line 1 has no space"),
        (b"400000 2\nthe 0.1 0.2\n".to_vec(), "its header announces 400000 rows, but it has 1"),
        (vec![b'x'; 9 << 20], "line 1 has no space"),
        ([&vec![b'x'; 9 << 20][..], b" 1\n"].concat(), "line 1 has no space"),
        (
            [b"x 1\n", &vec![b'y'; 9 << 20][..], b" 1\n"].concat(),
            "line 2: the line is longer than 4 MiB",
        ),
        (gzip(TEXT.as_bytes())[..20].to_vec(), "the gzip data is cut off or damaged"),
        (
            [&gzip(TEXT.as_bytes())[..30], &[0u8; 30]].concat(),
            "the gzip data is cut off or damaged",
        ),
    ] {
        let scratch = Scratch::new();
        let error = scratch.prepare(&content, &PrepareOptions::default()).unwrap_err().to_string();
        assert!(error.contains(reason) && error.contains("vectors.txt"), "{error}");
        assert!(scratch.left_behind().is_empty());
    }
    let scratch = Scratch::new();
    let error = scratch.prepare(
        "x 1\ny z\n",
        &PrepareOptions { dim: NonZeroUsize::new(7), skip_bad_rows: true, ..Default::default() },
    );
    assert!(error.unwrap_err().to_string().contains("every line is invalid"));
    assert!(scratch.left_behind().is_empty());
}

#[test]
fn a_missing_file_and_a_folder_are_named() {
    let scratch = Scratch::new();
    for (input, said) in [
        (scratch.out().join("none.txt"), "none.txt"),
        (scratch.folder.path().into(), "it is a folder"),
    ] {
        let on_progress = &mut |_| ControlFlow::Continue(());
        let error = prepare_folder(
            Input::File(&input),
            &scratch.out(),
            &PrepareOptions::default(),
            on_progress,
        );
        assert!(error.unwrap_err().to_string().contains(said));
        assert!(scratch.left_behind().is_empty());
    }
}

#[test]
fn stopping_leaves_nothing() {
    let scratch = Scratch::new();
    let input = scratch.write(TEXT);
    let on_progress = &mut |_| ControlFlow::Break(());
    let result = prepare_folder(
        Input::File(&input),
        &scratch.out(),
        &PrepareOptions::default(),
        on_progress,
    );
    assert!(matches!(result, Err(ModelError::Cancelled)));
    assert!(scratch.left_behind().is_empty());
}

#[test]
fn an_older_model_is_replaced_only_when_asked_and_only_by_a_whole_one() {
    let scratch = Scratch::new();
    scratch.prepare("old 1\n", &PrepareOptions::default()).unwrap();
    let said = scratch.prepare("new 2\n", &PrepareOptions::default()).unwrap_err().to_string();
    assert!(said.contains("already holds a model") && said.contains("--replace"), "{said}");

    let replace = PrepareOptions { replace: true, ..Default::default() };
    let old = scratch.open();
    scratch.prepare("new 2\nbad\n", &replace).unwrap_err();
    assert_eq!(scratch.open().words().word(Row(0)), "old");
    scratch.prepare("new 2\n", &replace).unwrap();
    assert_eq!(scratch.open().words().word(Row(0)), "new");
    assert_eq!(scratch.left_behind(), ["model"]);
    // A process that still has the old model mapped keeps it.
    old.verify(|_| ()).unwrap();
    assert_eq!(old.words().word(Row(0)), "old");
}

#[test]
fn a_folder_that_is_no_model_is_never_replaced() {
    let scratch = Scratch::new();
    fs::create_dir(scratch.out()).unwrap();
    let precious = scratch.out().join("thesis.txt");
    fs::write(&precious, "years of work").unwrap();
    let replace = PrepareOptions { replace: true, ..Default::default() };
    let said = scratch.prepare(TEXT, &replace).unwrap_err().to_string();
    assert!(said.contains("is not a model"), "{said}");
    assert_eq!(fs::read_to_string(&precious).unwrap(), "years of work");
    fs::remove_file(&precious).unwrap();
    scratch.prepare(TEXT, &PrepareOptions::default()).expect("an empty folder is as good as none");
}

#[test]
fn others_may_read_what_was_prepared() {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let scratch = Scratch::new();
        scratch.prepare(TEXT, &PrepareOptions::default()).unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        fs::create_dir(scratch.folder.path().join("usual")).unwrap();
        assert_eq!(mode(&scratch.out()), mode(&scratch.folder.path().join("usual")));
    }
}

#[test]
fn what_appears_in_the_way_meanwhile_is_not_lost() {
    let scratch = Scratch::new();
    let input = scratch.write(TEXT);
    let precious = scratch.out().join("thesis.txt");
    for replace in [false, true] {
        let options = PrepareOptions { replace, ..Default::default() };
        let on_progress = &mut |_| {
            fs::create_dir_all(scratch.out()).unwrap();
            fs::write(&precious, "years of work").unwrap();
            ControlFlow::Continue(())
        };
        prepare_folder(Input::File(&input), &scratch.out(), &options, on_progress).unwrap_err();
        assert_eq!(fs::read_to_string(&precious).unwrap(), "years of work");
        assert_eq!(scratch.left_behind(), ["model"]);
        fs::remove_dir_all(scratch.out()).unwrap();
    }
}

#[test]
fn a_model_folder_that_holds_other_files_too_is_not_replaced() {
    let scratch = Scratch::new();
    scratch.prepare(TEXT, &PrepareOptions::default()).unwrap();
    fs::write(scratch.out().join("notes.txt"), "mine").unwrap();
    let replace = PrepareOptions { replace: true, ..Default::default() };
    let said = scratch.prepare(TEXT, &replace).unwrap_err().to_string();
    assert!(said.contains("holds other files too"), "{said}");
    assert_eq!(fs::read_to_string(scratch.out().join("notes.txt")).unwrap(), "mine");
}

#[cfg(unix)]
#[test]
fn links_are_followed_and_those_that_lead_nowhere_refused() {
    let scratch = Scratch::new();
    let real = scratch.folder.path().join("v1");
    std::os::unix::fs::symlink(&real, scratch.out()).unwrap();
    let said = scratch.prepare(TEXT, &PrepareOptions::default()).unwrap_err().to_string();
    assert!(said.contains("leads nowhere"), "{said}");
    fs::create_dir(&real).unwrap();
    scratch.prepare("old 1\n", &PrepareOptions::default()).unwrap();
    let replace = PrepareOptions { replace: true, ..Default::default() };
    scratch.prepare(TEXT, &replace).unwrap();
    assert!(scratch.out().is_symlink());
    assert_eq!(ModelStore::open(&real).unwrap().rows(), 3);
}

#[test]
fn impossible_dimensions_are_refused() {
    let scratch = Scratch::new();
    for dim in [65_537, 1_000_000_000_000, usize::MAX] {
        let options = PrepareOptions { dim: NonZeroUsize::new(dim), ..Default::default() };
        let said = scratch.prepare(TEXT, &options).unwrap_err().to_string();
        assert!(said.contains("components per row are too many"), "{said}");
        assert!(scratch.left_behind().is_empty());
    }
}
