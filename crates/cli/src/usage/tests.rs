//! Tests of messages about command lines.

use super::*;

fn said(arguments: &[&str]) -> String {
    let arguments = [&["kindred"], arguments].concat();
    let error = Cli::try_parse_from(&arguments).expect_err("it can't be read");
    let arguments: Vec<OsString> = arguments.iter().map(OsString::from).collect();
    complaint(&error, &arguments)
}

#[test]
fn each_kind_of_value_says_what_it_must_be() {
    for (arguments, expected) in [
        (&["nearest", "a", "-k", "0"][..], "`--k` must be a whole number from 1 to 1000, not `0`"),
        (&["nearest", "a", "-k", "x"], "`--k` must be a whole number from 1 to 1000, not `x`"),
        (&["nearest", "a", "-k", "2.5"], "from 1 to 1000, not `2.5`"),
        (
            &["nearest", "a", "--vocab-limit", "0"],
            "`--vocab-limit` must be a whole number of at least 1 (the number of rows to search)",
        ),
        (&["nearest", "a", "--min-score", "x"], "`--min-score` must be a finite number"),
        (&["nearest", "a", "--min-score", "inf"], "not `inf`"),
        (
            &["nearest", "a", "--threads", "9999"],
            "`--threads` must be a whole number from 0 to 1024, not `9999`",
        ),
        (
            &["nearest", "a", "--keep-tables", "maybe"],
            "`--keep-tables` must be true or false, not `maybe`",
        ),
        (&["nearest", "a", "--device", "tpu"], "`--device`: unknown device `tpu`; use auto"),
        (
            &["analogy", "a", "--method", "best"],
            "`--method` must be 3cosadd, 3cosmul or pairdirection, not `best`",
        ),
        (&["analogy", "a", "--method", "3cosad"], "did you mean 3cosadd?"),
        (&["serve", "--model", ""], "`--model` needs a value, as in `--model [NAME=]DIR`"),
        (&["prepare", "", "--out", "m"], "`INPUT` can't be empty"),
        (&["serve", "--model"], "`--model` needs a value, as in `--model [NAME=]DIR`"),
        (&["analogy", "a", "--method"], "needs a value: 3cosadd, 3cosmul or pairdirection"),
        (&["serve", "--http-threads", "x"], "`--http-threads` must be a whole number, not `x`"),
        (
            &["serve", "--memory-reserve-mb", "99999999999999999999"],
            "must be a smaller whole number",
        ),
        (
            &["serve", "--engine-max-restarts", "4294967296"],
            "must be a whole number from 0 to 4294967295, not `4294967296`",
        ),
        (&["serve", "--traces-sample-ratio", "x"], "must be a number, not `x`"),
        (&["serve", "--log-format", "xml"], "must be text or json, not `xml`"),
        (&["graph", "--out", "g.npz", "--min-score", "NaN"], "must be a finite number"),
        (&["graph", "--out", "g.npz", "--first-rows", "0"], "a whole number of at least 1"),
        (
            &["prepare", "in.txt", "--out", "m", "--limit", "0"],
            "`--limit` must be a whole number of at least 1, not `0`",
        ),
        (&["classify", "--threshold", "2"], "must be a number from 0 to 1, not `2`"),
        (&["classify", "--top", "0"], "must be a whole number of at least 1, not `0`"),
        (&["expand", "--format", "x"], "`--format`: unknown form `x`; forms: terms"),
        (&["similarity", "a", "b", "--unknown", "x"], "must be error, skip or subwords, not `x`"),
        (&["nearest", "a", "-k", "-1"], "from 1 to 1000, not `-1`"),
        (&["nearest", "a", "--k", "-12"], "from 1 to 1000, not `-12`"),
        (&["nearest", "a", "--min-score", "-inf"], "must be a finite number"),
        (&["expand", "a", "--min-weight", "-1"], "`--min-weight` must be"),
        (&["completions", "tcsh"], "must be bash, elvish, fish, powershell or zsh, not `tcsh`"),
        (&["health", "--timeout-ms", "0"], "must be a whole number of at least 1, not `0`"),
    ] {
        let said = said(arguments);
        assert!(said.starts_with("kindred: ") && said.contains(expected), "{said}");
        assert!(said.lines().count() == 2 && !said.contains("invalid"), "{said}");
    }
}

#[test]
fn other_faults_name_the_argument_and_the_cure() {
    for (arguments, expected) in [
        (
            &["nearest", "a", "--jsn"][..],
            "`kindred nearest` has no option `--jsn`; did you mean --json?",
        ),
        (&["nearest", "new", "york"], "`york` is an argument too many for `kindred nearest`"),
        (
            &["health", "http://127.0.0.1:8080"],
            "is an argument too many for `kindred health`, which takes options only",
        ),
        (&["nearst", "a"], "`kindred` has no command `nearst`; did you mean nearest?"),
        (&["frog"], "`kindred` has no command `frog`; to look up a word: kindred nearest WORD\n"),
        (&["follow", "postgres://host/db"], "pip install 'kindred-vectors[postgres]'"),
        (&["help", "frog"], "`kindred` has no command `frog`\n"),
        (
            &["prepare", "in.txt", "model"],
            "`model` is an argument too many for `kindred prepare`; if it is the output, write \
             `--out model`",
        ),
        (&["prepare", "my", "in.txt", "--out", "model"], "put what has spaces into quotes"),
        (&["bulk", "count"], "`kindred bulk` has no command `count`"),
        (
            &["console", "--compat", "--compare"],
            "`--compat` can't be used with `--compare`; leave one out",
        ),
        (&["nearest", "a", "--device", "cpu", "--device", "cpu"], "`--device` is there twice"),
        (&["nearest", "a", "--json=yes"], "`--json` takes no value there; leave out `yes`"),
        (
            &["--listen", "127.0.0.1:0", "nearest", "a"],
            "`kindred nearest …`; `--listen` before it is for `kindred serve`",
        ),
        (&["verify", "--model", "a", "b"], "`--model` can't be used with `[NAME=]DIR`"),
        (&["eval", "--head", "h", "--similarities", "s"], "needs `--classification FILE`"),
        (&["similarity", "a"], "`kindred similarity` needs 2 values for `WORD`, not 1"),
        (&["similarity", "a", "b", "c"], "needs 2 values for `WORD`, not 3"),
        (&["similarity", "--left", "a"], "needs `--right WORD`"),
        (
            &["similarity", "a", "b", "--url", "u", "--model", "m"],
            "`--url` can't be used with `--model`; leave one out",
        ),
        (&["classify", "a", "--api-key", "k"], "needs `--url URL`"),
        (&["rank", "a", "--word", "b", "-k", "5"], "`kindred rank` has no option `-k`"),
        (&["nearest", "a", "--url", "-u"], "if that is `-u`, write `--url=-u`"),
        (
            &["analogy", "king", "-", "man"],
            "`-` is an argument too many for `kindred analogy`; put the whole expression into",
        ),
        (&["analogy", "king", "+", "queen"], "as in 'king - man + woman'"),
        (&["analogy", "--", "-king + man", "-k", "2"], "`-k` stands behind `--`"),
        (&["nearest", "--verbose", "frog"], "`kindred nearest` has no option `--verbose`\n"),
        (&["nearest", "frog", "--verbose"], "`kindred nearest` has no option `--verbose`\n"),
        (&["graph", "g.npz", "--out", "a.npz"], "which takes options only"),
        (&["neares", "a"], "did you mean nearest or serve?"),
    ] {
        let said = said(arguments);
        assert!(said.contains(expected), "{expected}: {said}");
    }
}

#[test]
fn missing_arguments_are_taught_by_examples() {
    for (arguments, expected, example) in [
        (
            &["eval"][..],
            "`kindred eval` needs `--analogies FILE`, `--similarities FILE` or \
             `--classification FILE`\n",
            "\n  kindred eval --model models/",
        ),
        (
            &["nearest"],
            "`kindred nearest` needs `WORD` or `--text TEXT`\n",
            "\n  kindred nearest frog\n",
        ),
        (
            &["similarity"],
            "`kindred similarity` needs `WORD` or `--left WORD`\n",
            "\n  kindred similarity frog toad\n",
        ),
        (&["odd-one-out"], "needs `WORD`\n", "\n  kindred odd-one-out breakfast"),
        (
            &["rank", "toad"],
            "needs `--word WORD`, `--text TEXT` or `--expression EXPRESSION`\n",
            "\n  kindred rank toad",
        ),
        (&["prepare", "in.txt"], "needs `--out DIR`\n", "\n  kindred prepare https"),
        (
            &["synth", "--rows", "1", "--dim", "1"],
            "needs `--out DIR` or `--text FILE`\n",
            "\n  kindred synth --rows",
        ),
        (
            &["import-head", "--out", "h"],
            "needs `FILE` or `--weights FILE`\n",
            "\n  kindred import-head lid.176.ftz",
        ),
    ] {
        let said = said(arguments);
        assert!(said.contains(expected) && said.contains(example), "{said}");
        assert!(said.ends_with(" --help\n") && said.lines().count() <= 10, "{said}");
    }
}
