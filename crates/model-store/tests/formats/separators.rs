//! The separator of a text, and the cures for texts with other separators, signs and notations.

use contract::Row;
use model_store::prepare::{PrepareOptions, Separator, VectorsFormat};

use super::files::npy;
use super::support::{Packing, Scratch, components, refused, separated, version};

#[test]
fn tabs_and_commas_separate_fields_if_they_are_named() {
    let rows = "cat 1 0 0\ndog 0.9 .1 -1e-3\nnew york 0 0 1\n";
    let expected = version(rows, &PrepareOptions::default()).0;
    for (separator, content, described) in [
        (Separator::Tab, "cat\t1\t0\t0\ndog\t0.9\t.1\t-1e-3\nnew york\t0\t0\t1\n", "glove text"),
        (Separator::Comma, "cat,1,0,0\ndog,0.9,.1,-1e-3\nnew york,0,0,1\n", "glove text"),
        // As PyTorch-BigGraph writes it.
        (
            Separator::Tab,
            "3\t3\t\ncat\t1\t0\t0\ndog\t0.9\t.1\t-1e-3\nnew york\t0\t0\t1\n",
            "word2vec text",
        ),
        (
            Separator::Tab,
            "3 3\r\ncat\t1\t0\t0\t\r\ndog\t0.9\t .1 \t-1e-3 \r\nnew york\t0\t0\t1\r\n",
            "word2vec text",
        ),
        (Separator::Comma, "3,3\ncat,1,0,0\ndog,0.9,.1,-1e-3\nnew york,0,0,1", "word2vec text"),
        // As spreadsheets and pandas write it.
        (
            Separator::Comma,
            "\u{feff}\"cat\",\"1\",\"0\",\"0\"\r\ndog, 0.9, .1, -1e-3\r\n\"new york\",0,0,1,\r\n",
            "glove text",
        ),
    ] {
        for packing in [Packing::Plain, Packing::Zstd] {
            let packed = packing.pack(content.as_bytes());
            let (found, from) = version(packed, &separated(separator));
            assert_eq!(found, expected, "{content}");
            let separators = format!("{described} separated by {separator}s");
            assert!(from.starts_with(&separators), "{from}");
        }
    }
    let norms =
        PrepareOptions { format: Some(VectorsFormat::GloveNorm), ..separated(Separator::Tab) };
    let (found, from) = version("cat\t5\t3\t-4\n", &norms);
    assert_eq!(found, version("cat 3 -4\n", &PrepareOptions::default()).0);
    assert_eq!(from, "glove text with norms separated by tabs");
}

#[test]
fn words_between_separators_are_what_they_are() {
    let words = |separator: Separator, content: &str| {
        let scratch = Scratch::new();
        scratch.prepare(content, &separated(separator)).unwrap_or_else(|e| panic!("{e}"));
        let model = scratch.open();
        (0..model.rows()).map(|row| model.words().word(Row(row as u32)).to_owned()).collect()
    };
    let found: Vec<String> = words(Separator::Tab, "route 66\t1\n\"\t2\na,b\t3\n\"a b\"\t4\n");
    assert_eq!(found, ["route 66", "\"", "a,b", "\"a b\""]);
    let found: Vec<String> =
        words(Separator::Comma, "\"new york, ny\",1\n\",\",2\n\"\"\"\",3\nroute 66,4\n1.5,5\n");
    assert_eq!(found, ["new york, ny", ",", "\"", "route 66", "1.5"]);
    for (separator, content, expected) in [
        (Separator::Tab, "a\t1\t2\nb\t1\n", "line 2: 1 component instead of 2"),
        (Separator::Tab, "a\t1\t2\nb\tc\t1\t2\n", "line 2: 3 components instead of 2"),
        (Separator::Tab, "a\t1\t2\nb 1 2\n", "line 2: 0 components instead of 2"),
        (Separator::Tab, "a\t1\t2\nb\t\t2\n", "component 1 is empty"),
        (Separator::Tab, "a\t1\t2\n b\t1\t2\n", "begins or ends with a space"),
        (Separator::Tab, "a\t1\t2\n\t1\t2\n", "the word is empty"),
        (Separator::Tab, "a 1 2\n", "line 1 has no tab"),
        (Separator::Comma, "a 1 2\n", "line 1 has no comma"),
        (Separator::Comma, "a,1,2\n,,1,2\n", "a word with commas must be between quotes"),
        (Separator::Comma, "a,1,2\nb,c,1,2\n", "3 components instead of 2"),
        (Separator::Comma, "a,1,2\n\"b,1,2\n\"c\"d,1,2\ne,x,2\n", "line 4: component 1"),
        (Separator::Comma, "word,d1,d2\na,1,2\n", "line 1: component 2 is not a number: `d2`"),
        (Separator::Comma, "word,d1,d2\na,1,2\n", "tail -n +2"),
        (Separator::Comma, "0.5,1.5\n0.25,1\n", "the words are numbers"),
    ] {
        refused(content, &separated(separator), &[expected]);
    }
    let array = npy("<f4", "False", "(4, 3)", &components());
    refused(array, &separated(Separator::Tab), &["--separator is for text; this is npy"]);
}

#[test]
fn other_separators_are_named_with_the_option() {
    for (content, separator) in [
        ("cat\t1\t0\t0\ndog\t0.9\t0.1\t0\n", "tab"),
        ("3\t3\t\ncat\t1\t0\t0\ndog\t1\t0\t0\nsun\t0\t0\t1\n", "tab"),
        ("new york\t1\t0\t0\ndog\t0.9\t0.1\t0\n", "tab"),
        ("cat,1,0,0\ndog,0.9,0.1,0\n", "comma"),
        ("new york,1,0,0\ndog,0.9,0.1,0\n", "comma"),
        ("\"new york, ny\",1,0,0\ndog,0.9,0.1,0\n", "comma"),
        ("2 3\ncat,1,0,0\ndog,0.9,0.1,0\n", "comma"),
        ("17\t0.5\t1\n4\t0.25\t-1\n", "tab"),
    ] {
        let cure = format!("add --separator {separator}");
        refused(content, &PrepareOptions::default(), &[&cure]);
        let named = Separator::named(separator).unwrap();
        Scratch::new().prepare(content, &separated(named)).unwrap_or_else(|e| panic!("{e}"));
    }
    let error = Scratch::new().refused("a b 1\nc 1\n", &PrepareOptions::default());
    assert!(!error.contains("--separator"), "{error}");
    // Names of columns are no row, and semicolons need another command first.
    for (content, cure) in [
        ("word,d0,d1\ncat,1,0\n", "if by commas, add --separator comma"),
        ("word\td0\td1\ncat\t1\t0\n", "if by tabs, add --separator tab"),
        (",0,1\ncat,1,0\n", "if by commas, add --separator comma"),
        ("cat;1;0\ndog;0.5;1\n", "make them tabs, and add --separator tab"),
        ("word;d0;d1\ncat;1;0\n", "make them tabs, and add --separator tab"),
    ] {
        refused(content, &PrepareOptions::default(), &["line 1 has no space", cure]);
    }
}

#[test]
fn numbers_of_other_notations_are_named_with_the_cure() {
    let spaces = PrepareOptions::default();
    for (content, cure) in [
        ("cat 0,5 1,0\ndog 0,25 1,5\n", "write points instead of decimal commas"),
        ("2 2\ncat 0,5 1,0\ndog 0,25 1,5\n", "write points instead of decimal commas"),
        ("cat [0.5 1.0]\ndog [0.25 1.5]\n", "without the brackets"),
        ("cat\t[0.5, 1.0]\ndog\t[0.25, 1.5]\n", "without the brackets"),
        ("2 900\ncat 9:0.5 17:1\ndog 1:2\n", "write all components"),
        ("cat 0.5 1.0\t\ndog 0.25 1.5\t\n", "the line has tabs"),
    ] {
        refused(content, &spaces, &[cure]);
        let error = Scratch::new().refused(content, &spaces);
        assert!(!error.contains("names the columns"), "{error}");
    }
}

#[test]
fn signs_that_all_words_have_are_warned_of() {
    let words = ["the", "of", "and", "to", "a", "in", "for", "is"];
    let prepared = |form: &dyn Fn(&str) -> String, options: &PrepareOptions| {
        let rows: String = words.iter().map(|word| form(word) + "\n").collect();
        Scratch::new().prepare(rows, options).unwrap_or_else(|e| panic!("{e}")).warnings
    };
    let spaces = PrepareOptions::default();
    let commas = prepared(&|word| format!("{word}, 0.5 1"), &spaces);
    assert!(commas.len() == 1 && commas[0].contains("sed 's/, / /'"), "{commas:?}");
    let quotes = prepared(&|word| format!("\"{word}\" 0.5 1"), &spaces);
    assert!(quotes.len() == 1 && quotes[0].contains("between quotes"), "{quotes:?}");
    assert!(prepared(&|word| format!("{word} 0.5 1"), &spaces).is_empty());
    let of_csv = prepared(&|word| format!("\"{word}\",0.5,1"), &separated(Separator::Comma));
    assert!(of_csv.is_empty(), "{of_csv:?}");
}
