//! Sets of analogies in all their forms.

use super::*;

fn source(text: &str) -> Source {
    Source { file: "set.txt".into(), name: "set".into(), text: text.into() }
}

/// Sections with their questions, as `a b c answer/answer`.
fn read(text: &str) -> Vec<(String, Vec<String>)> {
    let sections = parse(&source(text)).unwrap_or_else(|e| panic!("{text:?}: {e}"));
    let asked = |section: &Section, index| {
        let Question { a, b, c, answers } = section.question(index);
        format!("{a} {} {c} {}", b.join("/"), answers.join("/"))
    };
    let all = |section: Section| {
        let questions = (0..section.len()).map(|index| asked(&section, index)).collect();
        (section.name, questions)
    };
    sections.into_iter().map(all).collect()
}

fn section(name: &str, questions: &[&str]) -> (String, Vec<String>) {
    (name.to_owned(), questions.iter().map(|question| (*question).to_owned()).collect())
}

fn error(text: &str) -> String {
    parse(&source(text)).unwrap_err().to_string()
}

#[test]
fn googles_form_has_sections() {
    let text = ": capital-common-countries\r\nAthens Greece Baghdad Iraq\r\n\r\n:family ties\nboy girl\tking queen\n: none\n";
    let expected = [
        section("capital-common-countries", &["Athens Greece Baghdad Iraq"]),
        section("family ties", &["boy girl king queen"]),
        section("none", &[]),
    ];
    assert_eq!(read(text), expected);
    assert_eq!(read(&format!("// Copyright 2013 : the authors\n{text}")), expected);
    assert_eq!(
        read("// Copyright, all rights reserved\n: s\na b c d\n"),
        [section("s", &["a b c d"])]
    );
    for (text, part) in [
        (": a\nx y z\n", "set.txt, line 2: 3 words instead of four"),
        ("x y z w\n: a\n", "line 1: there is a question before the first section"),
        (":\nx y z w\n", "line 1: the section has no name"),
    ] {
        assert!(error(text).contains(part), "{text:?}: {}", error(text));
    }
}

#[test]
fn four_words_a_line_are_one_section_and_tags_are_sections() {
    for text in [
        "good better rough rougher\n",
        "good\tbetter\trough\trougher",
        "good, better, rough, rougher",
    ] {
        assert_eq!(read(text), [section("set", &["good better rough rougher"])], "{text}");
    }
    let expected = [
        section("JJ_JJR", &["good better rough rougher", "low lower big bigger"]),
        section("NN_NNS", &["cat cats dog dogs"]),
    ];
    let first =
        "JJ_JJR good better rough rougher\nNN_NNS cat cats dog dogs\nJJ_JJR low lower big bigger\n";
    assert_eq!(read(first), expected);
    let last =
        "good better rough rougher JJ_JJR\ncat cats dog dogs NN_NNS\nlow lower big bigger JJ_JJR\n";
    assert_eq!(read(last), expected);
}

#[test]
fn pairs_are_asked_against_each_other() {
    let expected = [section(
        "set",
        &[
            "king queen/lady dog bitch",
            "king queen/lady bull cow",
            "dog bitch king queen/lady",
            "dog bitch bull cow",
            "bull cow king queen/lady",
            "bull cow dog bitch",
        ],
    )];
    assert_eq!(read("king\tqueen/lady\ndog\tbitch\nbull\tcow\n"), expected);
    assert_eq!(read("king,queen/lady\ndog,bitch\nbull,cow\n"), expected);
    assert_eq!(read("king queen/lady\ndog bitch/\nbull cow\n"), expected);
    let words = read("new york\tu.s./usa\nbonn\tgermany\n");
    assert_eq!(words[0].1[0], "new york u.s./usa bonn germany", "tabs leave spaces in words");
    assert!(error("a b\n").contains("set.txt: there is only one pair"));
    assert!(error("a\tb\nc\t/\n").contains("line 2: one word of the pair is missing"));
}

#[test]
fn what_is_no_form_or_could_be_two_is_refused_with_line_and_cure() {
    for (text, part) in [
        ("", "set.txt: there are no questions"),
        ("good better rough\nbig bigger low\n", "lines are neither four words"),
        (
            "a b c d\n\na b c\n",
            "line 3: the line has 3 fields, but the first line has 4, separated by white space",
        ),
        (
            "good better\trough rougher\nbig bigger\tlow lower\n",
            "line 1: the file has 2 fields separated by tabs, but 4 by white space",
        ),
        ("a b c d e\nf g h i j\n", "line 1: lines have five fields, but neither"),
        ("A_B b c d E_F\n", "line 1: lines have five fields, but neither"),
    ] {
        assert!(error(text).contains(part), "{text:?}: {}", error(text));
    }
}
