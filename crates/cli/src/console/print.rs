//! Prints answers: aligned columns for people, JSON or tab-separated columns for scripts.

use std::borrow::Cow;
use std::io::{self, IsTerminal, Write};

use indicatif::HumanCount;
use kindred::question::Part;
use kindred::{Answer, ModelDescription, Placed, SubwordsOf, Term, TextTokens};
use serde::Serialize;
use serde_json::{Map, Value, json};
use unicode_width::UnicodeWidthStr;

use super::answer::ModelAnswer;
use super::compare::Comparison;
use super::line::COMMANDS;
use super::service::{Reply, Times};
use server::escape::escaped;

/// How answers are printed to standard output.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Form {
    pub(super) json: bool,
    /// If true, print for people: bars, and scores with few digits. If false, print tab-separated
    /// columns, with all digits, which read back as the same float64.
    pub(super) terminal: bool,
    colours: bool,
    /// The number of neighbours that rank before the printed ones, which are numbered by their
    /// places in the whole ranking.
    before: u64,
}

/// Length of the longest bar, in columns.
const BAR: usize = 20;
const DIM: &str = "\x1b[2m";
pub(super) const CYAN: &str = "\x1b[36m";
const PLAIN: &str = "\x1b[0m";

impl Form {
    /// The form that suits the current standard output.
    pub(crate) fn new(json: bool) -> Self {
        let said = |name: &str| std::env::var_os(name).unwrap_or_default();
        let terminal = io::stdout().is_terminal();
        let colours = terminal && said("NO_COLOR").is_empty() && said("TERM") != "dumb";
        Self { json, terminal, colours, before: 0 }
    }

    /// The form of neighbours that rank after `before` others.
    pub(super) fn after(self, before: u64) -> Self {
        Self { before, ..self }
    }

    pub(super) fn coloured(self, colour: &str, text: &str) -> String {
        if self.colours && !text.is_empty() {
            format!("{colour}{text}{PLAIN}")
        } else {
            text.to_owned()
        }
    }

    /// Prints the neighbours that a question asked for.
    pub(super) fn of_question(
        self,
        out: &mut dyn Write,
        asked: &str,
        line: Option<u64>,
        reply: &Reply<ModelAnswer<'_>>,
        comparison: Option<&Comparison>,
    ) -> io::Result<()> {
        self.answer(out, asked, line, reply, comparison, |out| {
            let found = &reply.answer.found;
            match self.terminal {
                true => self.neighbors(out, found),
                false => self.columns_of_neighbors(out, (asked, line), found),
            }
        })
    }

    /// Prints an answer as JSON, or otherwise by `body`. For people, a line from a pipe gets a
    /// block with the question first: if it was typed, the terminal already shows it.
    pub(super) fn answer(
        self,
        out: &mut dyn Write,
        asked: &str,
        line: Option<u64>,
        Reply { answer, times }: &Reply<impl Serialize>,
        comparison: Option<&Comparison>,
        body: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> io::Result<()> {
        if self.json {
            let compare = comparison.map(comparison_as_json);
            let times_ms = times.as_ref().map(times_as_json);
            return json_line(out, &JsonLine { asked, compare, line, times_ms, answer });
        }
        let is_block = self.terminal && line.is_some();
        if is_block {
            writeln!(out, "{}", escaped(asked))?;
        }
        body(out)?;
        let times = times.as_ref().map(times_in_words);
        for measured in times.into_iter().chain(comparison.map(comparison_in_words)) {
            if self.terminal {
                writeln!(out, "   {}", self.coloured(DIM, &measured))?;
            } else {
                note(line, &measured);
            }
        }
        if is_block {
            writeln!(out)?;
        }
        out.flush()
    }

    fn neighbors(self, out: &mut dyn Write, answer: &Answer<'_>) -> io::Result<()> {
        if answer.neighbors.is_empty() {
            writeln!(out, "   {NO_NEIGHBORS}")?;
        }
        let scored = answer.neighbors.iter().map(|n| (&*n.word, n.score));
        let ranking = self.ranking(scored);
        // Scores of 3CosMul and PairDirection may be larger than 1.
        let longest = answer.neighbors.iter().map(|n| n.score).fold(1.0, f64::max);
        for (start, neighbor) in ranking.iter().zip(&answer.neighbors) {
            let (row, bar) = (neighbor.row, bar(neighbor.score / longest));
            writeln!(out, "{start}  row {row:<7}  {}", self.coloured(CYAN, &bar))?;
            if let Some(text) = neighbor.text.as_ref().and_then(Value::as_str) {
                writeln!(out, "      {}", escaped(&start_of(text)))?;
            }
            if let Some(attributes) = &neighbor.attributes {
                writeln!(out, "      {}", self.coloured(DIM, &in_words(attributes)))?;
            }
            if let Some(terms) = &neighbor.terms {
                writeln!(out, "      {}", self.coloured(DIM, &terms_in_words(terms)))?;
            }
        }
        for placed in answer.inputs.iter().flatten() {
            writeln!(out, "   {}", placed_in_words(placed))?;
        }
        self.of_subwords(out, None, answer.subwords.as_deref())?;
        self.of_tokens(out, None, answer.tokens)?;
        self.left_out(out, None, answer.skipped.as_deref())
    }

    /// Says of a text that its encoder did not read all of it.
    pub(super) fn of_tokens(
        self,
        out: &mut dyn Write,
        line: Option<u64>,
        tokens: Option<TextTokens>,
    ) -> io::Result<()> {
        let Some(TextTokens { count, unknown, truncated }) = tokens else { return Ok(()) };
        if truncated {
            self.told(out, line, &format!("the text was cut: {count} tokens were read"))?;
        }
        match unknown {
            0 => Ok(()),
            1 => self.told(out, line, "1 token of the text is unknown"),
            _ => self.told(out, line, &format!("{unknown} tokens of the text are unknown")),
        }
    }

    /// Names words that have the vectors of their subwords.
    pub(super) fn of_subwords(
        self,
        out: &mut dyn Write,
        line: Option<u64>,
        subwords: Option<&[SubwordsOf]>,
    ) -> io::Result<()> {
        for SubwordsOf { word, ngrams } in subwords.unwrap_or_default() {
            let parts = match ngrams {
                Some(ngrams) => format!(": {}", ngrams.join(" ")),
                None => String::new(),
            };
            let told = format!("`{word}` is unknown; it has the vector of its subwords{parts}");
            self.told(out, line, &told)?;
        }
        Ok(())
    }

    /// Names words that were left out.
    pub(super) fn left_out(
        self,
        out: &mut dyn Write,
        line: Option<u64>,
        skipped: Option<&[String]>,
    ) -> io::Result<()> {
        let Some(skipped) = skipped.filter(|skipped| !skipped.is_empty()) else { return Ok(()) };
        self.told(out, line, &format!("unknown: {}", skipped.join(" ")))
    }

    /// Says something beside an answer: below it, or on standard error.
    fn told(self, out: &mut dyn Write, line: Option<u64>, said: &str) -> io::Result<()> {
        if self.terminal {
            return writeln!(out, "   {}", escaped(said));
        }
        note(line, said);
        Ok(())
    }

    /// The start of each line of a ranking for people: its place, its name, its score.
    pub(super) fn ranking<'n>(self, scored: impl Iterator<Item = (&'n str, f64)>) -> Vec<String> {
        let (names, scores): (Vec<String>, Vec<String>) =
            scored.map(|(name, score)| (escaped(name), format!("{score:.6}"))).unzip();
        let wide = widest(&names);
        let score_wide = scores.iter().map(String::len).max().unwrap_or_default();
        let line = |(place, (name, score)): (u64, (&String, &String))| {
            format!("{place:>4}  {}  {score:score_wide$}", padded(name, wide))
        };
        (self.before + 1..).zip(names.iter().zip(&scores)).map(line).collect()
    }

    /// Prints what is known about the model: JSON as over HTTP, text for people, or columns.
    pub(super) fn facts(
        self,
        out: &mut dyn Write,
        line: Option<u64>,
        facts: &ModelDescription<'_>,
    ) -> io::Result<()> {
        if self.json {
            let line =
                JsonLine { asked: ":model", compare: None, line, times_ms: None, answer: facts };
            return json_line(out, &line);
        }
        let ModelDescription { name, version, metric, engine, provenance: from, .. } = facts;
        let prepared = format!("{} by {}", from.prepared_at, from.prepared_by);
        let attributes = facts.attributes.iter();
        let attributes = attributes.map(|one| format!("{} ({})", one.name, one.kind));
        let attributes = attributes.collect::<Vec<_>>().join(", ");
        let attributes = Some(("attributes", attributes)).filter(|_| !facts.attributes.is_empty());
        for (what, said) in [
            ("model", name.to_string()),
            ("version", version.to_string()),
            ("rows", HumanCount(facts.rows as u64).to_string()),
            ("dimensions", facts.dim.to_string()),
            ("metric", metric.to_string()),
            ("engine", format!("{} ({})", engine.name, engine.detail)),
            ("source", format!("{} ({})", from.source, from.source_format)),
            ("prepared", prepared),
        ]
        .into_iter()
        .chain(attributes)
        {
            match self.terminal {
                true => writeln!(out, "   {what:<12}{}", escaped(&said))?,
                false => writeln!(out, "{what}\t{}", escaped(&said))?,
            }
        }
        out.flush()
    }
}

/// Prints the commands.
pub(super) fn help(out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "Enter a word (frog), an expression (king - man + woman), or a command:")?;
    for (name, argument, what) in COMMANDS {
        writeln!(out, "   {:<20}{what}", format!("{name} {argument}"))?;
    }
    out.flush()
}

/// Who answers: `sentiment over demo (7fbc8351f31644a7)`, or without a head the model alone.
pub(crate) fn heading(head: Option<&str>, model: &str, version: &str) -> String {
    let over = head.map_or_else(String::new, |head| format!("{head} over "));
    escaped(&format!("{over}{model} ({version})"))
}

/// The model, in one line.
pub(super) fn banner(facts: &ModelDescription<'_>) -> String {
    let ModelDescription { name, version, rows, dim, engine, .. } = facts;
    let rows = HumanCount(*rows as u64);
    format!(
        "Kindred {}: {}, {rows} rows × {dim} dimensions, on the {} engine ({})",
        env!("CARGO_PKG_VERSION"),
        heading(None, name, version),
        escaped(&engine.name),
        escaped(&engine.detail)
    )
}

/// A bar of this fraction of the longest one, in eighths of a column.
pub(super) fn bar(part: f64) -> String {
    let eighths = (part.clamp(0.0, 1.0) * (BAR * 8) as f64).round() as usize;
    let rest = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"][eighths % 8];
    "█".repeat(eighths / 8) + rest
}

/// The width of the widest of these names, in columns.
pub(super) fn widest(names: &[String]) -> usize {
    names.iter().map(|name| name.width()).max().unwrap_or_default()
}

/// A name with spaces behind it, this wide.
pub(super) fn padded(name: &str, wide: usize) -> String {
    format!("{name}{}", " ".repeat(wide - name.width()))
}

/// Prints a note to standard error, beside an answer for other programs.
pub(super) fn note(line: Option<u64>, said: &str) {
    let line = line.map_or_else(String::new, |line| format!("line {line}: "));
    // Nothing depends on it.
    let _ = writeln!(io::stderr(), "{line}{}", escaped(said));
}

/// The note on a question without neighbours.
pub(super) const NO_NEIGHBORS: &str = "no neighbours: no row passes the filters";

/// A row's attributes: names and values that are there, texts without quotes.
pub(super) fn in_words(attributes: &Map<String, Value>) -> String {
    let value = |value: &Value| match value {
        Value::String(text) => escaped(text),
        other => escaped(&other.to_string()),
    };
    let present = attributes.iter().filter(|(_, value)| !value.is_null());
    present.map(|(name, of)| format!("{name}: {}", value(of))).collect::<Vec<_>>().join(", ")
}

/// The contribution of each word to a score.
pub(super) fn terms_in_words(terms: &[Term<'_>]) -> String {
    let in_words = |Term { word, part, .. }: &Term<'_>| match part {
        Part::Contribution(part) => format!("{} {part:+.4}", escaped(word)),
        Part::Factor(factor) => format!("{} ×{factor:.4}", escaped(word)),
    };
    terms.iter().map(in_words).collect::<Vec<_>>().join(", ")
}

/// The rank that a word of the question would have.
pub(super) fn placed_in_words(Placed { word, score, rank, .. }: &Placed<'_>) -> String {
    let word = escaped(word);
    match (rank, score) {
        (Some(rank), Some(score)) => {
            format!("`{word}` itself would have rank {rank}: {score:.6}")
        }
        _ => format!("`{word}` itself is excluded by a filter"),
    }
}

fn times_in_words(times: &Times) -> String {
    let Times { queue, engine, total, round_trip } = times;
    let mut text = format!(
        "look-up {:.3} ms, queue {queue:.3} ms, engine {engine:.3} ms, total {total:.3} ms",
        times.look_up()
    );
    if let Some(round_trip) = round_trip {
        text += &format!(", round trip {round_trip:.3} ms");
    }
    text
}

fn comparison_in_words(comparison: &Comparison) -> String {
    let Comparison { engine_ms, reference_ms, difference } = comparison;
    let ratio = reference_ms / engine_ms;
    let ratio =
        if ratio.is_finite() { format!(", {ratio:.1} times as long") } else { String::new() };
    let verdict = difference.as_ref().map_or_else(
        || "identical: rows and score bits".to_owned(),
        |difference| format!("DIFFERENT: {}", escaped(difference)),
    );
    format!("engine {engine_ms:.3} ms, reference {reference_ms:.3} ms{ratio}; {verdict}")
}

/// A line of JSON: the fields of the answer, and before them what is known besides.
#[derive(Serialize)]
struct JsonLine<'a, A> {
    asked: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    compare: Option<Value>,
    /// The number of the question's line.
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    times_ms: Option<Value>,
    #[serde(flatten)]
    answer: &'a A,
}

fn json_line(out: &mut dyn Write, line: &JsonLine<'_, impl Serialize>) -> io::Result<()> {
    writeln!(out, "{}", serde_json::to_string(line)?)?;
    out.flush()
}

fn times_as_json(times: &Times) -> Value {
    let Times { queue, engine, total, round_trip } = *times;
    let of = to_microseconds;
    let mut milliseconds = json!({"look_up": of(times.look_up()), "queue": of(queue),
        "engine": of(engine), "total": of(total)});
    if let Some(round_trip) = round_trip {
        milliseconds["round_trip"] = of(round_trip).into();
    }
    milliseconds
}

fn comparison_as_json(comparison: &Comparison) -> Value {
    let Comparison { engine_ms, reference_ms, difference } = comparison;
    json!({"identical": difference.is_none(), "engine_ms": engine_ms,
        "reference_ms": reference_ms, "difference": difference})
}

/// Rounds milliseconds to whole microseconds: more digits mean nothing.
fn to_microseconds(milliseconds: f64) -> f64 {
    (milliseconds * 1e3).round() / 1e3
}

/// The start of a text, which is told from a whole one by its end.
fn start_of(text: &str) -> Cow<'_, str> {
    /// Characters of three usual lines of a terminal.
    const MOST: usize = 240;
    match text.char_indices().nth(MOST) {
        None => Cow::Borrowed(text),
        Some((end, _)) => Cow::Owned(format!("{}…", &text[..end])),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Form {
        /// Text for a terminal without colours, or for a pipe.
        pub(in crate::console) fn test(terminal: bool) -> Self {
            Self { json: false, terminal, colours: false, before: 0 }
        }
    }

    fn answered(words: &[(&str, f64)]) -> Reply<ModelAnswer<'static>> {
        let neighbors: Vec<Value> = words
            .iter()
            .map(|(word, score)| json!({"word": word, "score": score, "row": 7}))
            .collect();
        let answer = json!({"model": "m", "version": "v", "neighbors": neighbors});
        Reply {
            answer: serde_json::from_value(answer).unwrap(),
            times: Some(Times { queue: 0.5, engine: 1.0, total: 2.0, round_trip: None }),
        }
    }

    const SAME: Comparison = Comparison { engine_ms: 1.0, reference_ms: 50.0, difference: None };

    fn text(
        form: Form,
        asked: &str,
        line: Option<u64>,
        reply: &Reply<ModelAnswer<'_>>,
        comparison: Option<&Comparison>,
    ) -> String {
        let mut out = Vec::new();
        form.of_question(&mut out, asked, line, reply, comparison).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn columns_are_aligned_in_any_script_and_nothing_steers_the_terminal() {
        let found = answered(&[("日本", 0.5), ("a\u{1b}[2J", 0.25), ("toad", 1.0 / 3.0)]);
        let form = Form::test(true);
        let text = text(form, "x", None, &found, Some(&SAME));
        assert!(!text.contains('\u{1b}') && text.contains(r"a\u{1b}[2J"), "{text}");
        let columns: Vec<usize> = text
            .lines()
            .take(3)
            .map(|line| line[..line.find("0.").expect("a score")].width())
            .collect();
        assert_eq!(columns, [columns[0]; 3], "{text}");
        assert!(text.contains("0.333333") && text.contains("██████████"), "{text}");
        assert!(text.contains("look-up 0.500 ms") && text.contains("50.0 times as long"), "{text}");
    }

    #[test]
    fn places_on_later_pages_are_those_in_the_whole_ranking() {
        let found = answered(&[("toad", 0.5), ("newt", 0.25)]);
        let text = text(Form::test(true).after(99), "frog", None, &found, None);
        let places: Vec<&str> = text.lines().map(|line| line[..4].trim()).take(2).collect();
        assert_eq!(places, ["100", "101"], "{text}");
    }

    #[test]
    fn where_no_terminal_is_all_digits_are_given() {
        let form = Form::test(false);
        let found = answered(&[("toad", 1.0 / 3.0)]);
        let text = text(form, "frog", Some(1), &found, Some(&SAME));
        assert_eq!(text, "frog\ttoad\t0.3333333333333333\t7\n", "times go to standard error");
    }

    #[test]
    fn a_single_answer_for_a_program_is_columns_and_nothing_else() {
        let form = Form::test(false);
        let found = answered(&[("to\tad", 1.0 / 3.0), ("a\u{1b}", 0.5)]);
        let text = text(form, "frog", None, &found, Some(&SAME));
        assert_eq!(text, "to\\u{9}ad\t0.3333333333333333\t7\na\\u{1b}\t0.5\t7\n");
    }

    #[test]
    fn json_is_the_answer_with_what_is_known_besides() {
        let form = Form { json: true, ..Form::test(true) };
        let found = answered(&[("\"}", 0.1 + 0.2)]);
        let line = text(form, "a \"}}}", Some(3), &found, Some(&SAME));
        let object: Value = serde_json::from_str(&line).unwrap();
        assert_eq!((&object["asked"], &object["line"]), (&json!("a \"}}}"), &json!(3)));
        assert_eq!(object["times_ms"]["look_up"], json!(0.5));
        assert_eq!(object["compare"]["identical"], json!(true));
        assert_eq!(object["neighbors"][0], json!({"word": "\"}", "score": 0.1 + 0.2, "row": 7}));
        assert_eq!(line.matches('\n').count(), 1, "{line}");
        assert!(
            line.contains(r#"},"model":"m","version":"v","neighbors":[{"word":"\"}","#),
            "{line}"
        );
        let bare = Reply { times: None, ..found };
        let object: Value = serde_json::from_str(&text(form, "a}", None, &bare, None)).unwrap();
        assert_eq!(object["asked"], json!("a}"));
        assert_eq!(object["version"], json!("v"));
    }

    #[test]
    fn bars_are_as_long_as_their_part() {
        for (part, expected) in [(0.0, ""), (-1.0, ""), (0.5, "██████████"), (0.03125, "▋")]
        {
            assert_eq!(bar(part), expected, "{part}");
        }
        assert_eq!(bar(7.0).chars().count(), BAR);
    }
}
