//! GloVe text: one word a line, then its components, single spaces between them, no header.

use std::num::NonZeroUsize;

use rayon::prelude::*;

use super::lines::Lines;

/// What every line must look like.
#[derive(Debug, Clone)]
pub(crate) struct Shape {
    /// Components in a row.
    pub(crate) dim: usize,
    /// The first line is two whole numbers: the header of another format.
    starts_like_word2vec: bool,
}

impl Shape {
    /// The user gave the dimension.
    pub(crate) fn given(dim: NonZeroUsize) -> Self {
        Self { dim: dim.get(), starts_like_word2vec: false }
    }

    /// The dimension is the number of fields of the first line, less one.
    pub(crate) fn of_first_line(line: &[u8]) -> Result<Self, String> {
        let dim = spaces(line);
        if dim == 0 {
            return Err("line 1 has no space in it; expected a word and its components, \
                 with single spaces between them"
                .into());
        }
        let whole_number = |field: &[u8]| !field.is_empty() && field.iter().all(u8::is_ascii_digit);
        let starts_like_word2vec = dim == 1 && line.split(|&b| b == b' ').all(whole_number);
        Ok(Self { dim, starts_like_word2vec })
    }
}

/// What some consecutive lines hold.
pub(crate) struct Parsed<'a> {
    /// For each line, counted from the start of the chunk: its word, or what is wrong with it.
    pub(crate) words: Vec<(usize, Result<&'a str, String>)>,
    /// The components of the good lines, `[good lines, dim]`.
    pub(crate) components: Vec<f32>,
}

/// Lines that one core takes at a time.
const LINES_PER_TASK: usize = 512;

/// Takes all lines of the chunk apart, on all cores, and gives them in order.
pub(crate) fn parse<'a>(lines: &'a Lines, shape: &Shape) -> Vec<Parsed<'a>> {
    (0..lines.len().div_ceil(LINES_PER_TASK))
        .into_par_iter()
        .map(|task| {
            let first = task * LINES_PER_TASK;
            let range = first..lines.len().min(first + LINES_PER_TASK);
            let mut components = Vec::with_capacity(range.len() * shape.dim);
            let words = range
                .map(|line| (line, parse_line(lines.get(line), shape, &mut components)))
                .collect();
            Parsed { words, components }
        })
        .collect()
}

/// Splits one line from the right, so that words may contain spaces. A bad line adds no components.
fn parse_line<'a>(
    line: &'a [u8],
    shape: &Shape,
    components: &mut Vec<f32>,
) -> Result<&'a str, String> {
    let dim = shape.dim;
    let start = components.len();
    let result = split_line(line, shape, components);
    match &result {
        Ok(_) => components[start..].reverse(),
        Err(_) => components.truncate(start),
    }
    debug_assert_eq!(components.len(), start + if result.is_ok() { dim } else { 0 });
    result
}

/// As [`parse_line`], but the components come last first, and those before an error stay.
fn split_line<'a>(
    line: &'a [u8],
    shape: &Shape,
    components: &mut Vec<f32>,
) -> Result<&'a str, String> {
    let dim = shape.dim;
    if line.is_empty() {
        return Err("the line is empty".into());
    }
    let mut fields = line.rsplitn(dim + 1, |&b| b == b' ');
    for (taken, field) in fields.by_ref().take(dim).enumerate() {
        match parse_component(field) {
            Ok(component) => components.push(component),
            Err(reason) => {
                // Too few components run into the word; say so rather than that it is no number.
                if spaces(line) < dim {
                    return Err(wrong_number_of_components(line, dim));
                }
                return Err(format!("component {} {reason}", dim - taken));
            }
        }
    }
    let Some(word) = fields.next() else {
        return Err(wrong_number_of_components(line, dim));
    };
    let word = std::str::from_utf8(word)
        .map_err(|e| format!("the word is not valid UTF-8 (byte {})", e.valid_up_to() + 1))?;
    check_word(word, line, shape)?;
    Ok(word)
}

fn check_word(word: &str, line: &[u8], shape: &Shape) -> Result<(), String> {
    if word.is_empty() {
        return Err("the word is empty".into());
    }
    if word.starts_with(' ') || word.ends_with(' ') {
        return Err("more than one space between two fields, or a space at the start".into());
    }
    // Split from the right, a line with a component too many would hide it in the word.
    let tail = word.rsplit_once(' ').map(|(_, tail)| tail);
    if tail.is_some_and(|tail| tail.parse::<f64>().is_ok_and(f64::is_finite)) {
        let mut reason = wrong_number_of_components(line, shape.dim);
        if shape.starts_like_word2vec {
            reason += "; line 1 looks like a word2vec header (rows and dimension), \
                       which GloVe text does not have: remove that line first";
        }
        return Err(reason);
    }
    Ok(())
}

fn wrong_number_of_components(line: &[u8], dim: usize) -> String {
    format!("{} components instead of {dim}", spaces(line))
}

fn spaces(line: &[u8]) -> usize {
    line.iter().filter(|&&b| b == b' ').count()
}

/// To the nearest float32, directly.
fn parse_component(field: &[u8]) -> Result<f32, String> {
    let text = String::from_utf8_lossy(field);
    let shown = || text.chars().take(40).collect::<String>();
    if field.is_empty() {
        return Err("is empty: fields are separated by single spaces, none at the end".into());
    }
    match text.parse::<f32>() {
        Ok(x) if x.is_finite() => Ok(x),
        Ok(_) if text.bytes().any(|b| b.is_ascii_digit()) => {
            Err(format!("is outside the range of 32-bit numbers: {}", shown()))
        }
        Ok(_) => Err(format!("is not finite: {}", shown())),
        Err(_) => Err(format!("is not a number: `{}`", shown())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parse_with_dim(line: &str, dim: usize) -> Result<(String, Vec<f32>), String> {
        let mut components = vec![7.0];
        let shape = Shape::given(NonZeroUsize::new(dim).unwrap());
        let word = parse_line(line.as_bytes(), &shape, &mut components);
        assert_eq!(components.remove(0), 7.0, "earlier rows stay as they are");
        if word.is_err() {
            assert!(components.is_empty(), "a bad line adds nothing");
        }
        word.map(|word| (word.to_owned(), components))
    }

    #[test]
    fn good_lines() {
        let read = |line| parse_with_dim(line, 2).unwrap();
        assert_eq!(read("cat 0.5 -1e-3"), ("cat".into(), vec![0.5, -1e-3]));
        assert_eq!(read(". . . 1 2"), (". . .".into(), vec![1.0, 2.0]));
        assert_eq!(read("at name@domain.com 1 2").0, "at name@domain.com");
        assert_eq!(read("42 1 2").0, "42", "a number alone is a word like any other");
        assert_eq!(read("naïve .5 5.").0, "naïve");
        // Between two float32: to the nearest directly, not by way of float64.
        assert_eq!(read("x 1.00000017881393432617187499 0").1[0], 1.0000001);
    }

    #[test]
    fn bad_lines_say_why() {
        let reason = |line| parse_with_dim(line, 2).unwrap_err();
        assert_eq!(reason(""), "the line is empty");
        assert_eq!(reason("cat"), "0 components instead of 2");
        assert_eq!(reason("cat 1"), "1 components instead of 2");
        assert_eq!(reason("cat 1 2 3"), "3 components instead of 2");
        assert_eq!(reason("cat 1 x"), "component 2 is not a number: `x`");
        assert_eq!(reason("cat nan 1"), "component 1 is not finite: nan");
        assert_eq!(reason("cat 1 -inf"), "component 2 is not finite: -inf");
        assert_eq!(
            reason("cat 1 1e39"),
            "component 2 is outside the range of 32-bit numbers: 1e39"
        );
        assert_eq!(reason(" 1 2"), "the word is empty");
        assert!(reason("cat  1 2").starts_with("more than one space"));
        assert!(reason("cat 1 2 ").starts_with("component 2 is empty"));
        assert!(reason("cat\t1 2").contains("instead of 2"));
    }

    #[test]
    fn a_word2vec_header_is_recognised_by_its_second_line() {
        let shape = Shape::of_first_line(b"400000 50").unwrap();
        let reason = parse_line(b"the 0.1 0.2", &shape, &mut Vec::new()).unwrap_err();
        assert!(reason.contains("word2vec"), "{reason}");
    }

    proptest! {
        #[test]
        fn every_float32_survives_its_shortest_text(
            word in "[^ \n\r]{1,12}",
            bits in prop::collection::vec(any::<u32>(), 1..40),
        ) {
            let row: Vec<f32> =
                bits.into_iter().map(f32::from_bits).filter(|x| x.is_finite()).collect();
            prop_assume!(!row.is_empty());
            let line = row.iter().fold(word.clone(), |line, x| format!("{line} {x}"));
            let (read, components) = parse_with_dim(&line, row.len()).unwrap();
            prop_assert_eq!(read, word);
            let bits = |row: &[f32]| row.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
            prop_assert_eq!(bits(&components), bits(&row));
        }

        #[test]
        fn no_line_panics(line in prop::collection::vec(any::<u8>(), 0..60), dim in 1usize..5) {
            let shape = Shape::given(NonZeroUsize::new(dim).unwrap());
            let mut components = Vec::new();
            if parse_line(&line, &shape, &mut components).is_ok() {
                prop_assert_eq!(components.len(), dim);
            }
        }
    }
}
