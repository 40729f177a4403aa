//! Answers by the contract's sentences, one row after the other: nothing here is Kindred's code.

use std::collections::HashSet;

use kindred::{Method, Unknown};
use serde_json::{Map, Value, json};

use crate::naive::{Item, Source};
use crate::question::{Of, Question, Rules, Wanted, Word};
use crate::world::World;

/// An answer, to the bit. Scores, weights and components are bits.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Found {
    /// Some error.
    Error,
    Neighbors {
        hits: Vec<(u32, u64)>,
        /// None unless they were asked for.
        vectors: Vec<Vec<u32>>,
        attributes: Vec<Value>,
        inputs: Option<Vec<Placed>>,
        words: Words,
    },
    Ranks {
        ranked: Vec<Placed>,
        words: Words,
    },
    /// Of each text term, weight and position; `None` for an error.
    Terms(Vec<Option<Vec<(u32, u64, u32)>>>),
    Count(usize),
    /// Only compared with what the same engine answered when it was asked for nothing else.
    Labels(Vec<(String, u64)>),
}

impl Found {
    /// Whether it has something that could differ: an empty answer has not.
    pub(crate) fn says_something(&self) -> bool {
        match self {
            Self::Error => false,
            Self::Neighbors { hits, .. } => !hits.is_empty(),
            Self::Ranks { .. } | Self::Labels(_) => true,
            Self::Terms(texts) => texts.iter().flatten().any(|terms| !terms.is_empty()),
            Self::Count(rows) => *rows > 0,
        }
    }
}

/// Row, score and rank.
pub(crate) type Placed = (u32, Option<u64>, Option<u32>);

/// The words that were used, and those that were left out.
pub(crate) type Words = (Option<Vec<String>>, Option<Vec<String>>);

/// How rows are scored.
enum Scorer {
    /// With its length.
    Vector(Vec<f32>, f64),
    Product(Vec<usize>, Vec<usize>),
    Direction([usize; 3]),
}

/// A target with its words found.
struct Resolved {
    scorer: Scorer,
    inputs: Vec<usize>,
    words: Words,
}

/// The answer to a question; `None` for those that have no independent one.
pub(crate) fn answer(world: &World, question: &Question) -> Option<Found> {
    Some(match question {
        Question::Search(of, rules) => search(world, of, rules).unwrap_or(Found::Error),
        Question::Rank(words, of, rules) => ranks(world, words, of, rules).unwrap_or(Found::Error),
        Question::Expand(texts, wanted) => {
            Found::Terms(texts.iter().map(|text| terms_of_text(world, text, wanted)).collect())
        }
        Question::ExpandVectors(texts, wanted) => {
            let dim = world.vectors[0].len();
            let one = |text: &Vec<f32>| {
                let tokens: Vec<&[f32]> = text.chunks(dim).collect();
                Some(terms(world, &tokens, wanted))
            };
            Found::Terms(texts.iter().map(one).collect())
        }
        Question::Count(source) => {
            let rows = world.words.iter().zip(&world.items);
            Found::Count(rows.filter(|(word, item)| source.meets(word, item)).count())
        }
        Question::Classify(_) => return None,
    })
}

fn dot(a: &[f32], b: &[f32]) -> f64 {
    let products = a.iter().zip(b).map(|(&a, &b)| f64::from(a) * f64::from(b));
    sum(products)
}

/// 32 lanes that start at +0.0; then they fold by 16, 8, 4, 2 and 1.
fn sum(numbers: impl Iterator<Item = f64>) -> f64 {
    let mut lanes = [0.0; 32];
    numbers.enumerate().for_each(|(index, number)| lanes[index % 32] += number);
    for step in [16, 8, 4, 2, 1] {
        (0..step).for_each(|lane| lanes[lane] += lanes[lane + step]);
    }
    lanes[0]
}

/// The length of a vector.
pub(crate) fn norm(vector: &[f32]) -> f64 {
    dot(vector, vector).sqrt()
}

/// The score of a row for another row.
fn between(world: &World, query: usize, row: usize) -> Option<f64> {
    score(world, &world.vectors[query], world.norms[query], row)
}

/// The score of a row for a vector of this length.
fn score(world: &World, query: &[f32], length: f64, row: usize) -> Option<f64> {
    let vector = &world.vectors[row];
    if let Some(biases) = &world.biases {
        return Some(dot(query, vector) + f64::from(biases[row]));
    }
    let of_row = world.norms[row];
    (of_row > 0.0).then(|| (dot(query, vector) / (length * of_row)).clamp(-1.0, 1.0))
}

impl Scorer {
    fn score(&self, world: &World, row: usize) -> Option<f64> {
        let to = |other: &usize| between(world, *other, row);
        match self {
            Self::Vector(query, length) => score(world, query, *length, row),
            Self::Product(positive, negative) => {
                let (mut above, mut below) = (1.0, 1.0);
                for other in positive {
                    above *= (to(other)? + 1.0) / 2.0;
                }
                for other in negative {
                    below *= (to(other)? + 1.0) / 2.0 + 0.001;
                }
                Some(above / below)
            }
            Self::Direction([b, c, a]) => {
                let square = 2.0 - 2.0 * to(c)?;
                let at_c = between(world, *b, *c)? - between(world, *a, *c)?;
                let length = (2.0 - 2.0 * between(world, *a, *b)?).sqrt();
                let direction = ((to(b)? - to(a)?) - at_c) / (square.sqrt() * length);
                (square >= 1e-12).then_some(direction + 0.0)
            }
        }
    }
}

/// The weighted sum of words, as one vector.
fn weighted_sum(world: &World, words: &[(usize, f64)]) -> Option<Vec<f32>> {
    let mut merged: Vec<(usize, f64)> = Vec::new();
    for &(row, weight) in words {
        match merged.iter_mut().find(|(other, _)| *other == row) {
            Some((_, total)) => *total += weight,
            None => merged.push((row, weight)),
        }
    }
    merged.retain(|&(_, weight)| weight != 0.0);
    if merged.is_empty() {
        return None;
    }
    let under_dot = world.biases.is_some();
    let mut total = vec![0.0; world.vectors[0].len()];
    for (row, weight) in merged {
        let length = if under_dot { 1.0 } else { world.norms[row] };
        if length == 0.0 {
            return None;
        }
        let components = total.iter_mut().zip(&world.vectors[row]);
        components.for_each(|(total, &x)| *total += weight * (f64::from(x) / length));
    }
    let length = sum(total.iter().map(|one| one * one)).sqrt();
    if length == 0.0 || !length.is_finite() {
        return None;
    }
    let divisor = if under_dot { 1.0 } else { length };
    let vector: Vec<f32> = total.iter().map(|one| (one / divisor) as f32).collect();
    vector.iter().all(|one| one.is_finite()).then_some(vector)
}

/// Rows with what belongs to them, and words that are none.
type LookedUp<T> = (Vec<(usize, T)>, Vec<String>);

/// The known words with what belongs to them, and the unknown ones, each once. `None` if unknown
/// words are not allowed, or nothing is left.
fn look_up<T: Copy>(words: &[(&Word, T)], skip: bool) -> Option<LookedUp<T>> {
    let (mut known, mut unknown) = (Vec::new(), Vec::new());
    for (word, with) in words {
        match word {
            Word::Known(row) => known.push((*row, *with)),
            Word::Unknown(word) if !unknown.contains(word) => unknown.push(word.clone()),
            Word::Unknown(_) => {}
        }
    }
    (unknown.is_empty() || (skip && !known.is_empty())).then_some((known, unknown))
}

fn resolve(world: &World, of: &Of, rules: &Rules) -> Option<Resolved> {
    let skip = rules.unknown.map_or(matches!(of, Of::Text(_)), |it| it == Unknown::Skip);
    let by_vector = |vector: Vec<f32>| {
        // Under cosine, a zero vector has no direction.
        let length = norm(&vector);
        (world.biases.is_some() || length > 0.0).then_some(Scorer::Vector(vector, length))
    };
    let (mut used, mut skipped) = (None, Vec::new());
    let (scorer, inputs) = match of {
        Of::Word(Word::Unknown(_)) => return None,
        Of::Word(Word::Known(row)) | Of::Row(row) => {
            (by_vector(world.vectors[*row].clone())?, vec![*row])
        }
        Of::Vector(vector, _) => (by_vector(vector.clone())?, Vec::new()),
        Of::Text(words) => {
            let words: Vec<(&Word, f64)> = words.iter().map(|word| (word, 1.0)).collect();
            let known;
            (known, skipped) = look_up(&words, skip)?;
            let rows: Vec<usize> = known.iter().map(|&(row, _)| row).collect();
            used = Some(once(&rows).iter().map(|&row| world.words[row].clone()).collect());
            (by_vector(weighted_sum(world, &known)?)?, rows)
        }
        Of::Sum(words, _) => {
            let words: Vec<(&Word, f64)> = words.iter().map(|(word, by)| (word, *by)).collect();
            let known;
            (known, skipped) = look_up(&words, skip)?;
            let rows = known.iter().map(|&(row, _)| row).collect();
            (by_method(world, &known, rules.method)?, rows)
        }
    };
    Some(Resolved { scorer, inputs, words: (used, skip.then_some(skipped)) })
}

fn by_method(world: &World, words: &[(usize, f64)], method: Method) -> Option<Scorer> {
    if method == Method::ThreeCosAdd {
        let vector = weighted_sum(world, words)?;
        let length = norm(&vector);
        return Some(Scorer::Vector(vector, length));
    }
    let rows = |sign: f64| -> Vec<usize> {
        words.iter().filter(|(_, weight)| *weight == sign).map(|&(row, _)| row).collect()
    };
    let is_zero = |&(row, _): &(usize, f64)| world.norms[row] == 0.0;
    if world.biases.is_some() || words.iter().any(is_zero) {
        return None;
    }
    let (positive, negative) = (rows(1.0), rows(-1.0));
    if method == Method::ThreeCosMul {
        return Some(Scorer::Product(positive, negative));
    }
    let (&[b, c], &[a]) = (&positive[..], &negative[..]) else { return None };
    let square = 2.0 - 2.0 * between(world, a, b)?;
    (square >= 1e-12).then_some(Scorer::Direction([b, c, a]))
}

/// The score of a row for a target, if it has one.
pub(crate) fn score_of(world: &World, of: &Of, rules: &Rules, row: usize) -> Option<f64> {
    resolve(world, of, rules)?.scorer.score(world, row)
}

/// Whether a row may be a neighbour.
fn admits(world: &World, rules: &Rules, left_out: &[usize], row: usize) -> bool {
    let is_excluded = |word: &Word| matches!(word, Word::Known(excluded) if *excluded == row);
    rules.vocab_limit.is_none_or(|limit| (row as u64) < limit)
        && !rules.exclude.iter().any(is_excluded)
        && !left_out.contains(&row)
        && meets(world, &rules.filter, row)
}

fn meets(world: &World, filter: &Option<Source>, row: usize) -> bool {
    filter.as_ref().is_none_or(|source| source.meets(&world.words[row], &world.items[row]))
}

/// All rows that may be neighbours, best first.
fn ranking(world: &World, scorer: &Scorer, rules: &Rules, left_out: &[usize]) -> Vec<(usize, f64)> {
    let of = |row: usize| {
        let score = scorer.score(world, row)?;
        let is_within = rules.min_score.is_none_or(|min| score >= min)
            && rules.max_score.is_none_or(|max| score <= max);
        is_within.then_some((row, score))
    };
    let rows = (0..world.words.len()).filter(|&row| admits(world, rules, left_out, row));
    let mut ranking: Vec<(usize, f64)> = rows.filter_map(of).collect();
    // Stable: equal scores stay in the order of rows.
    ranking.sort_by(|(_, one), (_, other)| other.partial_cmp(one).unwrap());
    ranking
}

/// The scores of rows, and their places in a ranking.
fn placed(world: &World, scorer: &Scorer, rows: &[usize], ranking: &[(usize, f64)]) -> Vec<Placed> {
    let one = |&row: &usize| {
        let score = scorer.score(world, row).map(f64::to_bits);
        let rank = ranking.iter().position(|&(other, _)| other == row);
        (row as u32, score, rank.map(|before| before as u32 + 1))
    };
    rows.iter().map(one).collect()
}

fn search(world: &World, of: &Of, rules: &Rules) -> Option<Found> {
    if rules.fold_case && rules.distinct.is_some() {
        return None;
    }
    let resolved = resolve(world, of, rules)?;
    let left_out: &[usize] = if rules.include_query { &[] } else { &resolved.inputs };
    let whole = ranking(world, &resolved.scorer, rules, left_out);
    let lower = |row: usize| world.words[row].to_lowercase();
    let mut seen: HashSet<String> = HashSet::new();
    if rules.fold_case {
        seen.extend(left_out.iter().map(|&row| lower(row)));
        seen.extend(rules.exclude.iter().map(|word| word.written(world).to_lowercase()));
    }
    let stays = |&(row, _): &(usize, f64)| match rules.distinct {
        Some(name) => {
            value(&world.items[row], name).is_null() || seen.insert(group(world, row, name))
        }
        None if rules.fold_case => seen.insert(lower(row)),
        None => true,
    };
    let (offset, k) = (rules.offset as usize, rules.k as usize);
    let picked: Vec<(usize, f64)> = whole.into_iter().filter(stays).skip(offset).take(k).collect();
    let rows = || picked.iter().map(|&(row, _)| row);
    let bits = |row: usize| world.vectors[row].iter().map(|one| one.to_bits()).collect();
    let of_row = |row: usize, names: &[&str]| {
        let each = names.iter().map(|&name| (name.to_owned(), value(&world.items[row], name)));
        Value::Object(each.collect::<Map<_, _>>())
    };
    Some(Found::Neighbors {
        vectors: rows().filter(|_| rules.with_vectors).map(bits).collect(),
        attributes: rows()
            .filter_map(|row| rules.with_attributes.as_ref().map(|names| of_row(row, names)))
            .collect(),
        inputs: rules.explain.then(|| {
            // The question's own words have ranks, even if they are no neighbours.
            let ranking = ranking(world, &resolved.scorer, rules, &[]);
            placed(world, &resolved.scorer, &once(&resolved.inputs), &ranking)
        }),
        hits: picked.iter().map(|&(row, score)| (row as u32, score.to_bits())).collect(),
        words: resolved.words,
    })
}

/// The value of an attribute as JSON has it.
fn value(item: &Item, name: &str) -> Value {
    match name {
        "year" => json!(item.year),
        // Both zeros are one number.
        "price" => json!(item.price.map(|price| price + 0.0)),
        "sold" => json!(item.sold),
        "made" => json!(item.made.map(|at| format!("1970-01-01T00:00:0{}Z", at / 1_000_000))),
        "brand" => json!(item.brand),
        "tags" => json!(item.tags),
        _ => json!(item.serial),
    }
}

fn group(world: &World, row: usize, name: &str) -> String {
    value(&world.items[row], name).to_string()
}

fn ranks(world: &World, words: &[Word], of: &Of, rules: &Rules) -> Option<Found> {
    let mut resolved = resolve(world, of, rules)?;
    let words: Vec<(&Word, ())> = words.iter().map(|word| (word, ())).collect();
    let (rows, left_out) = look_up(&words, rules.unknown == Some(Unknown::Skip))?;
    let rows: Vec<usize> = rows.into_iter().map(|(row, ())| row).collect();
    if let Some(skipped) = &mut resolved.words.1 {
        let new: Vec<String> =
            left_out.into_iter().filter(|word| !skipped.contains(word)).collect();
        skipped.extend(new);
    }
    let inputs: &[usize] = if rules.include_query { &[] } else { &resolved.inputs };
    let ranking = ranking(world, &resolved.scorer, rules, inputs);
    let ranked = placed(world, &resolved.scorer, &rows, &ranking);
    Some(Found::Ranks { ranked, words: resolved.words })
}

/// Rows without repetitions, by their first appearance.
fn once(rows: &[usize]) -> Vec<usize> {
    let mut seen = HashSet::new();
    rows.iter().copied().filter(|row| seen.insert(*row)).collect()
}

fn terms_of_text(world: &World, text: &[Word], wanted: &Wanted) -> Option<Vec<(u32, u64, u32)>> {
    let words: Vec<(&Word, ())> = text.iter().map(|word| (word, ())).collect();
    let (known, _) = look_up(&words, true)?;
    let tokens: Vec<&[f32]> = known.iter().map(|&(row, ())| &world.vectors[row][..]).collect();
    Some(terms(world, &tokens, wanted))
}

fn terms(world: &World, tokens: &[&[f32]], wanted: &Wanted) -> Vec<(u32, u64, u32)> {
    let mut found: Vec<(u32, f64, u32)> = Vec::new();
    for (term, &(row, bias)) in world.terms.iter().enumerate() {
        let mut best: Option<(f64, u32)> = None;
        for (position, token) in tokens.iter().enumerate() {
            let value = dot(token, &world.vectors[row]) + f64::from(bias);
            if best.is_none_or(|(best, _)| value > best) {
                best = Some((value, position as u32));
            }
        }
        let best = best.filter(|&(value, _)| value > 0.0 && value >= wanted.min_weight);
        if let Some((value, position)) = best.filter(|_| meets(world, &wanted.filter, row)) {
            found.push((term as u32, value, position));
        }
    }
    found.sort_by(|one, other| other.1.partial_cmp(&one.1).unwrap());
    found.truncate(wanted.top);
    let largest = found.first().map_or(0.0, |term| term.1);
    found.retain(|term| term.1 >= wanted.max_ratio * largest);
    found.into_iter().map(|(term, value, position)| (term, value.to_bits(), position)).collect()
}
