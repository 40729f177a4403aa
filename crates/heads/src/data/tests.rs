//! Files as people have them, and as nobody should.

use proptest::prelude::*;

use super::*;

fn parse(content: &str) -> Result<Texts, DataError> {
    Texts::parse("data", content, &TextsOptions::default())
}

fn skipping() -> TextsOptions {
    TextsOptions { skip_bad_rows: true, ..TextsOptions::default() }
}

fn named(text: &str, label: &str) -> TextsOptions {
    let name = |name: &str| (!name.is_empty()).then(|| name.to_owned());
    TextsOptions { text: name(text), label: name(label), ..TextsOptions::default() }
}

/// Labels and texts.
fn pairs(file: &str, content: &str, options: &TextsOptions) -> Vec<(String, String)> {
    let texts = Texts::parse(file, content, options).unwrap_or_else(|e| panic!("{content}: {e}"));
    texts.texts.into_iter().map(|one| (one.labels.join("+"), one.text)).collect()
}

fn refused(file: &str, content: &str, options: &TextsOptions) -> String {
    Texts::parse(file, content, options).unwrap_err().to_string()
}

#[test]
fn every_format_is_known_by_its_first_line() {
    let expected = [("good", "a \"fine\" film, it 's"), ("bad", "dull")];
    let expected = expected.map(|(label, text)| (label.to_owned(), text.to_owned()));
    for content in [
        "good\ta \"fine\" film, it 's\nbad\tdull\n",
        "\u{feff}good\ta \"fine\" film, it 's\r\n\r\n bad \t dull \r\n",
        "label\ttext\ngood\ta \"fine\" film, it 's\nbad\tdull",
        "\u{feff}id\tSentence\tLABEL\n1\ta \"fine\" film, it 's\tgood\n\t\t\n2\tdull\tbad\n",
        "id,text,label\n1,\"a \"\"fine\"\" film, it 's\",good\n2,dull,bad\n",
        "\"Text\",\"Label\"\n\"a \"\"fine\"\" film, it 's\",good\n , \ndull,bad\n",
        "Label , Sentence\ngood,\"a \"\"fine\"\" film, it 's\"\nbad,dull\n",
        "{\"text\": \"a \\\"fine\\\" film, it 's\", \"label\": \"good\"}\n{\"label\": \"bad\", \
         \"text\": \"dull\"}",
        " {\"Sentence\": \"a \\\"fine\\\" film, it 's\", \"LABEL\": \"good\"}\n{\"labels\": \
         [\"bad\"], \"Text\": \"dull\"}",
        "__label__good a \"fine\" film, it 's\n__label__bad dull",
        "__label__good\ta \"fine\" film, it 's\n__label__bad\tdull",
        "a \"fine\" film, it 's __label__good\ndull\t__label__bad\n",
        "\n __label__good a \"fine\" film, it 's\n __label__bad dull\n",
        "\t__label__good a \"fine\" film, it 's\n  dull __label__bad \n",
        "TEXT,LABEL\r\n\"a \"\"fine\"\" film, it 's\",good\r\ndull,bad\r\n",
        "a \"fine\" __label__good film, it 's\n__label__bad dull __label__bad",
    ] {
        assert_eq!(pairs("data", content, &TextsOptions::default()), expected, "{content}");
    }
    let several =
        "{\"text\": \"x\", \"labels\": [\"a\", 2, true]}\n{\"text\": \"y\", \"labels\": []}";
    assert_eq!(pairs("data", several, &TextsOptions::default())[0].0, "a+2+true");
    let several = "__label__a x __label__b y __label__a";
    let found = pairs("data", several, &TextsOptions::default());
    assert_eq!(found[0], ("a+b".to_owned(), "x y".to_owned()));
    let texts = parse("b\tx\na\ty\nb\tz").unwrap();
    assert_eq!(texts.labels(), [("a", 1), ("b", 2)]);
}

#[test]
fn columns_and_fields_are_those_that_are_named() {
    let expected = [("1", "good film"), ("0", "dull, very")];
    let expected = expected.map(|(label, text)| (label.to_owned(), text.to_owned()));
    for (file, content, text, label) in [
        ("d", "review\tsentiment\ngood film\t1\ndull, very\t0\n", "Review", "SENTIMENT"),
        ("d", "review,sentiment\ngood film,1\n\"dull, very\",0\n", "review", "sentiment"),
        ("d", "review,label\ngood film,1\n\"dull, very\",0\n", "review", ""),
        ("d", "sentence,gold\ngood film,1\n\"dull, very\",0\n", "", "gold"),
        ("d", "good film\t1\ndull, very\t0\n", "1", "2"),
        ("d", "7\tgood film\tx\t1\n8\tdull, very\tx\t0\n", "2", "4"),
        ("d", "good film,1\n\"dull, very\",0\n", "1", "2"),
        // The first line would be names otherwise.
        ("d", "1\tgood film\n0\tdull, very", "2", "1"),
        (
            "d",
            "{\"Body\": \"good film\", \"y\": 1}\n{\"body\": \"dull, very\", \"y\": [0]}",
            "body",
            "y",
        ),
        // An exact name wins, and the first of the usual names.
        ("d", "Text\ttext\tlabel\nno\tgood film\t1\nno\tdull, very\t0\n", "", ""),
        ("d", "sentence\ttext\tlabel\nno\tgood film\t1\nno\tdull, very\t0\n", "", ""),
    ] {
        assert_eq!(pairs(file, content, &named(text, label)), expected, "{content}");
    }
}

#[test]
fn numbers_as_json_has_them_are_labels_as_people_write_them() {
    for (json, expected) in [
        ("1.0", "1"),
        ("-0.0", "0"),
        ("-3.0", "-3"),
        ("1e3", "1000"),
        ("0.5", "0.5"),
        ("9007199254740993", "9007199254740993"),
        ("18446744073709551615", "18446744073709551615"),
        ("false", "false"),
        ("\" 1.0 \"", "1.0"),
    ] {
        let content = format!("{{\"text\": \"x\", \"label\": {json}}}");
        let found = pairs("data", &content, &TextsOptions::default());
        assert_eq!(found[0].0, expected, "{json}");
    }
}

#[test]
fn numbers_that_json_rounds_are_no_labels() {
    for json in ["18446744073709551616", "9007199254740993.0", "-1e300"] {
        let content = format!("{{\"text\": \"x\", \"label\": {json}}}");
        let error = refused("data", &content, &TextsOptions::default());
        assert!(error.contains("write labels in quotes"), "{json}: {error}");
    }
}

#[test]
fn a_tab_in_a_file_of_commas_is_no_column() {
    let content = "text,label\n\"a\tb\",x\n";
    assert_eq!(pairs("d.csv", content, &TextsOptions::default())[0].1, "a\tb");
    let error = refused("d.csv", "a\tb,x\nc\td,y\n", &TextsOptions::default());
    assert!(error.contains("no column `text`"), "{error}");
    let named = "label\ttext, or body\nx\tgood, bad\n";
    assert!(refused("d.csv", named, &TextsOptions::default()).contains("no column"));
    let tsv = "label\ttext\tof, a,b\nx\tgood, bad\t1\n";
    assert_eq!(pairs("d.csv", tsv, &TextsOptions::default())[0].1, "good, bad");
}

#[test]
fn columns_that_can_not_be_told_are_refused_with_the_cure() {
    let sentences = "sentence1\tsentence2\tlabel\nx\ty\t1\n";
    for (file, content, (text, label), expected) in [
        (
            "d",
            sentences,
            ("", ""),
            &["`text` or `sentence`", "--text-column", "sentence1, sentence2"][..],
        ),
        (
            "d",
            "premise,hypothesis,label\nx,y,1\n",
            ("", ""),
            &["--text-column: premise, hypothesis"],
        ),
        ("d", "text\tgold\nx\t1\n", ("", ""), &["no column `label`", "--label-column: text, gold"]),
        ("d", "category\ttext\n1\tx\n", ("", ""), &["--label-column: category, text", "numbers"]),
        ("d", "name,text\na,x\n", ("", ""), &["no column `label`", "--label-column: name, text"]),
        ("d.csv", "review,sentiment\nx,1\n", ("", ""), &["--text-column: review, sentiment"]),
        ("d.csv", "text|label\nx|1\n", ("", ""), &["if bars separate its columns"]),
        ("d.csv", "# by hand\ntext,label\nx,1\n", ("", ""), &["tail -n +2 FILE"]),
        ("d", "1\tx\ty\n0\tz\ty\n", ("", ""), &["3 columns", "--text-column 2", "1, x, y"]),
        ("d", "review,sentiment\nx,1\n", ("reviews", ""), &["no tab", "--text-column"]),
        (
            "d",
            "review\tsentiment\nx\t1\n",
            ("reviews", "sentiment"),
            &["`reviews`", "review, sent"],
        ),
        ("d", "Text\tTEXT\tlabel\nx\ty\t1\n", ("", ""), &["`Text`", "`TEXT`", "--text-column"]),
        ("d", "label,text,label\n1,x,2\n", ("", ""), &["`label`", "--label-column"]),
        ("d", "1\tx\n", ("2", ""), &["both"]),
        ("d", "1\tx\n", ("2", "label"), &["both"]),
        ("d", "1\tx\n", ("3", "1"), &["no column 3", "from 1 to 2"]),
        ("d", "1\tx\n", ("0", "1"), &["no column 0", "from 1 to 2"]),
        ("d", "1\tx\n", ("2", "2"), &["both mean its column 2"]),
        ("d", "text,label\nx,1\n", ("text", "TEXT"), &["both mean its column 1"]),
        ("d", "{\"review\": \"x\", \"label\": 1}", ("", ""), &["--text-column: review, label"]),
        ("d", "{\"text\": \"x\", \"gold\": 1}", ("", ""), &["--label-column: text, gold"]),
        ("d", "{\"text\": \"x\", \"labels\": 1, \"label\": 1}", ("", ""), &["either"]),
        (
            "d",
            "{\"Text\": \"x\", \"TEXT\": \"x\", \"label\": 1}",
            ("", ""),
            &["`Text` or the field"],
        ),
        ("d", "{\"text\": \"x\", \"label\": 1, \"label\": 0}", ("", ""), &["`label` or the field"]),
        ("d", "{\"text\": 1, \"label\": 1}", ("", ""), &["must be a string"]),
        ("d", "{\"text\": \"x\", \"label\": null}", ("", ""), &["a number"]),
        ("d", "{\"text\": \"x\", \"label\": {\"a\": 1}}", ("", ""), &["a number"]),
        ("d", "[{\"text\": \"x\", \"label\": 1}]", ("", ""), &["one array", "jq"]),
        ("d", "[\n{\"text\": \"x\", \"label\": 1}]", ("", ""), &["one array", "jq"]),
        ("d", "\"text,label\nx,1\n", ("", ""), &["a quote"]),
        ("d", "name,\"text\n", ("", ""), &["its first line", "a quote"]),
    ] {
        let error = refused(file, content, &named(text, label));
        for part in expected {
            assert!(error.contains(part), "{content}: {error}");
        }
    }
}

#[test]
fn a_first_line_of_names_is_no_text() {
    let lines = |first: &str| format!("{first}\n{}", "1\ta film\n0\tdull\n1\tso so\n".repeat(4));
    let error = refused("d", &lines("sentiment\treview"), &TextsOptions::default());
    let cure = "--text-column review --label-column sentiment";
    assert!(error.contains(cure) && error.contains("--text-column 2"), "{error}");
    for (first, options) in [
        ("2\tso so", TextsOptions::default()),
        ("so so\tfine", TextsOptions::default()),
        ("1\tfine", TextsOptions::default()),
        ("sentiment\treview", named("2", "1")),
    ] {
        assert_eq!(pairs("d", &lines(first), &options).len(), 13, "{first}");
    }
    let words = format!("noun\tfilm\n{}", "verb\tsee\n".repeat(12));
    assert_eq!(pairs("d", &words, &TextsOptions::default()).len(), 13, "all texts are words");
    let few = "sentiment\treview\n1\tgood film\n";
    assert_eq!(pairs("d", few, &TextsOptions::default()).len(), 2, "too few to tell");
}

#[test]
fn a_first_line_of_a_few_words_each_is_no_text() {
    let reviews = ["a good film with a slow start", "dull from its start to its end, and loud"];
    let lines = |first: &str| {
        let rows = |n: usize| format!("{}\t{}\n", ["pos", "neg"][n % 2], reviews[n % 2]);
        format!("{first}\n{}", (0..12).map(rows).collect::<String>())
    };
    for (first, cure) in [
        ("Sentiment\tReview text", "--text-column 'Review text' --label-column Sentiment,"),
        ("# label\tthe text", "--text-column 'the text' --label-column '# label',"),
        ("customer class\tcustomer message", "--label-column 'customer class',"),
        ("the class\tcomment", "--text-column comment --label-column 'the class',"),
        (" Kind of it \t What they said ", "--text-column 'What they said' --label-column 'Kind"),
        ("customer's mood\tmessage", r"--label-column 'customer'\''s mood',"),
    ] {
        let error = refused("d", &lines(first), &TextsOptions::default());
        assert!(error.contains("seems to name the columns") && error.contains(cure), "{error}");
        // The cure works.
        let [label, text] = [0, 1].map(|at| first.split('\t').nth(at).unwrap().trim());
        assert_eq!(pairs("d", &lines(first), &named(text, label)).len(), 12, "{first}");
        assert_eq!(pairs("d", &lines(first), &named("2", "1")).len(), 13, "{first}");
    }
    for first in [
        // Another text has its label.
        "pos\tReview text",
        // Longer than names are.
        "mixed\ta film that I saw twice",
        "not sure of it\tit is fine",
        "mixed\tunforgettable performances throughout",
    ] {
        let found = pairs("d", &lines(first), &TextsOptions::default());
        assert_eq!(found.len(), 13, "{first}");
    }
    // A file in which a label is given once has perhaps another one.
    let rare = lines("mixed\tso so") + "odd\ta film about a film about films\n";
    assert_eq!(pairs("d", &rare, &TextsOptions::default()).len(), 14);
    // Texts that are no longer than names.
    let short = format!("mixed\tso so\n{}", "pos\tfine\nneg\tdull one\npos\tgood\n".repeat(4));
    assert_eq!(pairs("d", &short, &TextsOptions::default()).len(), 13);
    let few = "Sentiment\tReview text\n".to_owned() + &"pos\ta very good film\n".repeat(9);
    assert_eq!(pairs("d", &few, &TextsOptions::default()).len(), 10, "too few to tell");
}

#[test]
fn names_that_come_again_are_no_text() {
    for (content, options, line) in [
        ("label\ttext\na\tx\nlabel\ttext\nb\ty\n", TextsOptions::default(), 3),
        ("Text,Label\nx,a\ny,b\n\nText,Label\nz,a\n", TextsOptions::default(), 5),
        ("\"text\",\"label\"\nx,a\n\"text\",\"label\"\n", TextsOptions::default(), 3),
        ("id\ttext\tlabel\n1\tx\ta\n ID \tTEXT\tLabel\n", TextsOptions::default(), 3),
        ("topic,body\na,x\nb,\"y\nz\"\ntopic,body\n", named("body", "topic"), 5),
        // The second file began with a byte order mark.
        ("\u{feff}label\ttext\na\tx\n\u{feff}label\ttext\nb\ty\n", TextsOptions::default(), 3),
        ("text,label\r\nx,a\r\n\u{feff}\"text\",\"label\"\r\n", TextsOptions::default(), 3),
    ] {
        let error = Texts::parse("data", content, &options).unwrap_err();
        let DataError::Line { line: found, what, .. } = &error else { panic!("{error}") };
        assert!(*found == line && what.contains("repeats the names"), "{content:?}: {error}");
        assert!(what.ends_with("remove it"), "{error}");
        let skipping = TextsOptions { skip_bad_rows: true, ..options };
        assert_eq!(Texts::parse("data", content, &skipping).unwrap().skipped, 1, "{content:?}");
    }
    // One name alone is a text or a label as any other.
    let content = "label\ttext\nlabel\tx\na\ttext\ntext\tlabel\n";
    assert_eq!(pairs("d", content, &TextsOptions::default()).len(), 3);
    let twice = "a\tx\nb\ty\na\tx\n";
    assert_eq!(pairs("d", twice, &TextsOptions::default()).len(), 3);
}

#[test]
fn a_byte_order_mark_in_the_middle_is_part_of_no_label() {
    let expected = [("a", "x"), ("b", "y \u{feff}z"), ("a", "z")];
    let expected = expected.map(|(label, text)| (label.to_owned(), text.to_owned()));
    for content in [
        "a\tx\nb\ty \u{feff}z\n\u{feff}a\tz\n",
        "\u{feff}\u{feff}a\tx\r\n\u{feff}b\ty \u{feff}z\r\n\r\n\u{feff}\u{feff}a\tz\r\n",
        "label\ttext\ra\tx\r\u{feff}b\ty \u{feff}z\ra\tz\r\u{feff}",
        "label,text\na,x\n\u{feff}\"b\",\"y \u{feff}z\"\n\u{feff}a,z\n",
        "text,label\nx,a\n\u{feff}\"y \u{feff}z\",b\n\u{feff}z,a\n",
        "{\"text\": \"x\", \"label\": \"a\"}\n\
         \u{feff}{\"text\": \"y \u{feff}z\", \"label\": \"b\"}\n\
         \u{feff}\n{\"text\": \"z\", \"label\": \"a\"}\n",
        "__label__a x\n\u{feff}__label__b y \u{feff}z\n\u{feff}z __label__a\n",
    ] {
        assert_eq!(pairs("d", content, &TextsOptions::default()), expected, "{content:?}");
    }
}

#[test]
fn utf16_that_passes_for_utf8_is_refused() {
    let little = |text: &str| text.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<u8>>();
    let big = |text: &str| text.encode_utf16().flat_map(u16::to_be_bytes).collect::<Vec<u8>>();
    for text in
        ["good\ta film\nbad\tdull\n", "label,text\r\ngood,a film\r\n", "pos\tфильм не плох\n"]
    {
        for (bytes, name) in [(little(text), "UTF-16LE"), (big(text), "UTF-16BE")] {
            let content = String::from_utf8(bytes).unwrap();
            for format in Format::ALL.into_iter().map(Some).chain([None]) {
                let error = refused("d.csv", &content, &TextsOptions { format, ..skipping() });
                let cure = format!("iconv -f {name}");
                assert!(error.contains("d.csv: it is UTF-16") && error.contains(&cure), "{error}");
            }
        }
    }
    let nul = "good\ta film\0\nbad\t\0dull\0\n\0bad\tso so\n";
    assert_eq!(pairs("d", nul, &TextsOptions::default()).len(), 3, "single ones are characters");
}

#[test]
fn what_would_be_read_otherwise_than_meant_is_refused() {
    let numbers = TextsOptions {
        text: Some("2".to_owned()),
        label: Some("1".to_owned()),
        ..TextsOptions::default()
    };
    for (content, options, expected) in [
        ("label,text\ngood,x\n", numbers, "leave out the numbers"),
        ("\"label\"\t\"text\"\n\"good\"\t\"x\"\n", TextsOptions::default(), "between quotes"),
        ("label,text\na,x\nb,\"y\nc,z\nd,w\n", skipping(), "line 3: it has a quote"),
        ("label,text\na,\"x\nb,y\nc,\"z\"\n", TextsOptions::default(), "goes on after the quote"),
    ] {
        let error = Texts::parse("data", content, &options).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn labels_that_are_missing_among_numbers_are_no_label() {
    for content in [
        "text,label\nx,1.0\ny,nan\nz,0.0\nw,NaN\n",
        "1\tx\nnan\ty\n0\tz\nNaN\tw\n",
        "__label__1 x\n__label__nan y\n__label__0 z\n__label__NaN w\n",
    ] {
        let error = refused("data", content, &TextsOptions::default());
        assert!(error.contains("the label of 2 of its texts is `nan`"), "{error}");
        let texts = Texts::parse("data", content, &skipping()).unwrap();
        assert_eq!((texts.texts.len(), texts.skipped), (2, 2), "{content}");
    }
    // A language, and nothing else but missing ones.
    for content in ["nan\tx\nyue\ty\n", "nan\tx\nnan\ty\n"] {
        assert_eq!(pairs("data", content, &TextsOptions::default()).len(), 2, "{content}");
    }
}

#[test]
fn as_many_labels_as_texts_are_no_labels() {
    let swapped = |content: &str| parse(content).unwrap().look_swapped();
    let texts = |count: usize, line: &dyn Fn(usize) -> String| {
        swapped(&(0..count).map(line).collect::<Vec<_>>().join("\n"))
    };
    let said = texts(100, &|n| format!("the film number {n}\tpos")).unwrap();
    for part in ["100 texts", "100 different", "the film number 0", "--text-column"] {
        assert!(said.contains(part), "{said}");
    }
    assert!(texts(100, &|n| format!("{}\tfilm", n.min(50))).is_some(), "51 labels");
    assert!(texts(100, &|n| format!("{}\tfilm", n / 2)).is_none(), "two texts of each");
    assert!(texts(9, &|n| format!("{n}\tfilm")).is_none(), "too few to tell");
    let said = texts(20, &|n| format!("__label__pos,word{n} of a film")).unwrap();
    assert!(said.contains("if a comma ends each label") && !said.contains("swapped"), "{said}");
    // Tags: more of them than half of the texts, and each of several texts.
    let tags = |n: usize| {
        let labels: Vec<String> =
            (0..6).map(|tag| format!("__label__{}", (n * 7 + tag * 5) % 16)).collect();
        format!("{} a question", labels.join(" "))
    };
    assert!(texts(20, &tags).is_none());
    assert!(texts(20, &|n| format!("__label__a{n} __label__b{n} text")).is_some());
    let none = |n: usize| match n {
        0 => "{\"text\": \"x\", \"labels\": [\"rare\"]}".to_owned(),
        _ => "{\"text\": \"x\", \"labels\": []}".to_owned(),
    };
    assert!(texts(50, &none).is_none(), "texts without labels count");
}

#[test]
fn a_bad_line_is_named_with_its_cure_or_skipped() {
    for (content, line, expected) in [
        ("1 no tab here\n", 1, "it has no tab after a label"),
        ("a\tx\n\nb no tab\n", 3, "it has no tab; the first line has 2"),
        ("a\tx\nb\ty\tz\n", 2, "it has 3 columns; the first line has 2; a text can't have tabs"),
        ("a\tx\nb\t \n", 2, "the text is empty"),
        ("a\tx\n\ty\n", 2, "a label is empty"),
        ("label\ttext\na\tx\n\ty\n", 3, "a label is empty"),
        ("label,text\na,x\nb\n", 3, "it has 1 column; the first line has 2"),
        ("label,text\na,x\nb,y, z\n", 3, "put a text with commas between quotes"),
        ("label,text\na,x\nb,\"y\nc,z\n", 3, "a quote that is opened and not closed"),
        ("{\"text\": \"x\", \"label\": \"a\"}\n{\"text\": \"x\"", 2, "EOF"),
        ("{\"text\": \"x\"}\n", 1, "either `label` or `labels`"),
        ("{\"text\": \"x\", \"label\": 0}\n[1]", 2, "expected an object"),
        ("__label__a x\ny\n", 2, "it has no label"),
        ("__label__a x\ny __label__\n", 2, "a label is empty"),
        ("__label__a x\n__label__b, __label__c y\n", 2, "ends in a comma"),
        ("__label__a x\n__label__b__label__c y\n", 2, "nothing separates its labels"),
        ("__label__a x\n\"__label__b y, z\"\n", 2, "it is between quotes"),
        ("\"__label__b y, z\"\n", 1, "QUOTE_NONE"),
        ("{\"text\": \"x\", \"label\": 0}\n{'text': 'x', 'label': 0}\n", 2, "json.dumps"),
        ("{\"text\": \"x\", \"label\": 0}\n{\"text\": \"\\ud83d\"}\n", 2, "half of a character"),
        ("{\"text\": \"x\", \"label\": 0}\n{\"text\": NaN, \"label\": 1}\n", 2, "no NaN"),
        ("{\"text\": \"x\", \"label\": \"a\"},\n", 1, "remove the comma"),
        ("x __label__a\n__label__b\n", 2, "the text is empty"),
    ] {
        let error = parse(content).unwrap_err();
        let DataError::Line { line: found, what, .. } = &error else { panic!("{error}") };
        assert!(*found == line && what.contains(expected), "{content:?}: {error}");
        assert!(error.to_string().contains("--skip-bad-rows"));
        // An open quote has the rest of the file, which is not skipped.
        if line > 1 && !expected.contains("opened") {
            let texts = Texts::parse("data", content, &skipping()).unwrap();
            assert_eq!((texts.texts.len(), texts.skipped), (1, 1), "{content:?}");
        }
    }
    for (content, expected) in [("", "it has no texts"), (" \n\n", "it has no texts")] {
        let error = parse(content).unwrap_err();
        assert!(matches!(error, DataError::File { .. }), "{error}");
        assert!(error.to_string().contains(expected), "{error}");
    }
    for (content, bad) in [("a\t\nb\t", "2 of its 2 lines"), ("a\tx\nb\t\nc\n", "2 of its 3 lines")]
    {
        let none = refused("data", content, &skipping());
        assert!(none.contains(bad) && none.contains("is empty"), "{none}");
    }
    let tsv = TextsOptions { format: Some(Format::Tsv), ..TextsOptions::default() };
    assert!(refused("data", "1 x\n0 y\n", &tsv).contains("no tab"));
}

proptest! {
    #[test]
    fn any_content_is_refused_or_becomes_texts(
        content in "([a-c{}\\[\\]\":,\t\n\r_ ]|text|label|__label__|1){0,30}",
        skip_bad_rows: bool,
        names in prop_oneof![Just(["", ""]), Just(["a", "b"]), Just(["1", "2"])],
    ) {
        for format in Format::ALL.into_iter().map(Some).chain([None]) {
            let options = TextsOptions { format, skip_bad_rows, ..named(names[0], names[1]) };
            if let Ok(found) = Texts::parse("data", &content, &options) {
                prop_assert!(!found.texts.is_empty() && (skip_bad_rows || found.skipped == 0));
                let is_whole = |one: &Labelled| !one.text.trim().is_empty()
                    && one.labels.iter().all(|label| !label.is_empty() && label.trim() == label);
                prop_assert!(found.texts.iter().all(is_whole));
            }
        }
    }

    #[test]
    fn csv_tsv_and_json_lines_give_the_same_texts(
        rows in prop::collection::vec(("[a-z]{1,5}", "[a-z\", é]{0,12}[a-z]"), 1..8),
    ) {
        let expected: Vec<(String, String)> =
            rows.iter().map(|(label, text)| (label.clone(), text.trim().to_owned())).collect();
        let quoted = |text: &str| format!("\"{}\"", text.replace('"', "\"\""));
        let csv = rows.iter().map(|(label, text)| format!("{},{label},x\n", quoted(text)));
        let csv = format!("Text,Label,other\n{}", csv.collect::<String>());
        let tsv = rows.iter().map(|(label, text)| format!("x\t{label}\t{text}\n"));
        let tsv = format!("other\tlabel\tsentence\n{}", tsv.collect::<String>());
        let json = rows.iter().map(|(label, text)| {
            serde_json::json!({"text": text.trim(), "label": label}).to_string() + "\n"
        });
        for content in [csv, tsv, json.collect::<String>()] {
            prop_assert_eq!(pairs("data", &content, &TextsOptions::default()), expected.clone());
        }
    }
}

#[test]
fn files_of_other_programs_are_named_with_a_cure() {
    for (file, content, said) in [
        ("a.csv", "label;text\ngood;a film\n", "if semicolons separate its columns, save it with"),
        ("a.csv", "sep=,\nlabel,text\ngood,a film\n", "remove it: tail -n +2 FILE"),
        // Sentiment140 has no names.
        ("a.csv", "\"0\",\"1467810369\",\"a film\"\n", "--text-column 2 --label-column 1"),
        ("a.jsonl", "{\n \"text\": \"a\"\n}\n", "write each in one: jq -c . FILE"),
        ("a.txt", "__label__a,__label__b a film\n", "line 1: commas separate its labels"),
    ] {
        let error = refused(file, content, &TextsOptions::default());
        assert!(error.contains(said), "{content}: {error}");
    }
    let error = refused("a", "{\"text\": \"a\", \"label\": NaN}\n", &TextsOptions::default());
    assert!(error.contains("line 1: expected value at column "), "{error}");
    assert!(!error.contains("jq"), "{error}");
    // fastText's own labels may have commas.
    let found = pairs("a", "__label__a,b a film\n__label__c dull\n", &TextsOptions::default());
    assert_eq!(found[0].0, "a,b");
}
