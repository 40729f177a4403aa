//! Prints a hash of the answers to random queries of every kind: rows, score bits, ranks, terms,
//! labels. Two machines have the same answers if they print the same lines.
//!
//!     cargo run --release -p cpu-core --example answer_bits -- [QUERIES]
//!
//! Queries, tables and heads are made of whole numbers, the same everywhere; 10,000 of them unless
//! the argument says otherwise. Every instruction set of the machine answers all of them, by 4 bits
//! first and by 8, in batches of different sizes. It fails if two of these differ, or a class score
//! is further from its formula than promised. `scripts/check-arm bits` compares processors.

use std::error::Error;
use std::sync::Arc;

use contract::{
    EngineError, Expansion, FullPassEngine, FullPassQuery, HeadEngine, Metric, Precision, Query,
    Row, SearchEngine, TermExpander, Token, TokenText, TokenVectors,
};
use cpu_core::{CpuEngine, FirstLook, InstructionSet, Options, Paths};
use heads::{Terms, classifier, label, text};
use made::{model, ranks, searches};
use model_store::ModelStore;
use model_store::format::Checksum;

mod heads;
mod made;

/// Rows and components of the tables: parts of lines, of blocks and of strips at their ends.
const SHAPES: [(usize, usize); 3] = [(3001, 33), (2000, 50), (517, 300)];

/// The sizes of batches, in turns.
const BATCHES: [usize; 6] = [1, 2, 7, 32, 64, 100];

/// A tenth of the queries each: ranks; texts to expand; texts to classify. The rest are searches.
const PARTS: usize = 10;

/// Answers in batches, as bytes.
fn answers<T, A>(
    all: &[T],
    mut answer: impl FnMut(&[&T]) -> Result<Vec<A>, EngineError>,
    bytes: impl Fn(&A, &mut Vec<u8>),
) -> Result<Vec<u8>, Box<dyn Error>> {
    let (mut rest, mut found) = (all, Vec::new());
    for size in BATCHES.iter().cycle() {
        let (batch, later) = rest.split_at(rest.len().min(*size));
        if batch.is_empty() {
            break;
        }
        for one in answer(&batch.iter().collect::<Vec<_>>())? {
            bytes(&one, &mut found);
            found.extend(u64::MAX.to_le_bytes());
        }
        rest = later;
    }
    Ok(found)
}

fn put(row: Row, value: f64, to: &mut Vec<u8>) {
    to.extend(row.0.to_le_bytes());
    to.extend(value.to_bits().to_le_bytes());
}

/// The answers of one engine over one model, by kind.
fn of_engine(
    model: &Arc<ModelStore>,
    kinds: &Kinds,
    options: Options,
) -> Result<Vec<Vec<u8>>, Box<dyn Error>> {
    let precision = options.precision;
    let mut engine = CpuEngine::new(model.clone(), options)?;
    engine.wait_for_tables();
    let mut found = vec![
        answers(
            &kinds.searches,
            |batch| engine.search(batch),
            |hits, to| hits.iter().for_each(|hit| put(hit.row, hit.score, to)),
        )?,
        answers(
            &kinds.ranks,
            |batch| engine.full_pass(batch),
            |answer, to| {
                answer.hits.iter().for_each(|hit| put(hit.row, hit.score, to));
                for ranked in &answer.ranks {
                    put(ranked.row, ranked.score.unwrap_or(-2.0), to);
                    to.extend(ranked.rank.unwrap_or(0).to_le_bytes());
                }
            },
        )?,
    ];
    let expanded = answers(
        &kinds.expansions,
        |batch| engine.expand(batch),
        |terms, to| {
            for term in terms {
                put(term.row, term.value, to);
                to.extend(term.position.to_le_bytes());
            }
        },
    )?;
    found.push(expanded);
    let mut is_far = false;
    let labels = answers(
        &kinds.texts,
        |batch| {
            let scores = engine.classify(batch)?;
            let labels: Vec<u8> = scores
                .into_iter()
                .zip(batch)
                .map(|(scores, text)| label(&scores, &text.scores(&model.table()), precision))
                .collect();
            is_far |= labels.contains(&u8::MAX);
            Ok(labels)
        },
        |label, to| to.push(*label),
    )?;
    if is_far {
        return Err(format!("{precision:?}: a class score is too far from its formula").into());
    }
    found.push(labels);
    Ok(found)
}

/// Everything that is asked about one model.
struct Kinds {
    searches: Vec<Query>,
    ranks: Vec<FullPassQuery>,
    expansions: Vec<Expansion>,
    texts: Vec<TokenText>,
}

impl Kinds {
    fn new(
        model: &Arc<ModelStore>,
        terms: &Arc<ModelStore>,
        count: usize,
    ) -> Result<Self, Box<dyn Error>> {
        let (part, table) = (count / PARTS, model.table());
        let expander: Arc<dyn TermExpander> = Arc::new(Terms(terms.clone()));
        let expansion = |index| {
            let rows = TokenVectors::Rows(text(model, index).into_iter().map(Row).collect());
            let least = (model.dim() / 3) as f64;
            Expansion::new(expander.clone(), &table, rows, 1 + index % 200, least)
        };
        let classifier = classifier(model)?;
        let tokens = |index| text(model, index).into_iter().map(Token).collect();
        Ok(Self {
            searches: searches(model, count - 3 * part),
            ranks: ranks(model, part),
            expansions: (0..part).map(expansion).collect::<Result<_, _>>()?,
            texts: (0..part).map(|i| TokenText::new(classifier.clone(), tokens(i))).collect(),
        })
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let count: usize = std::env::args().nth(1).map_or(Ok(10_000), |text| text.parse())?;
    let mut total = 0;
    for (shape, metric) in SHAPES
        .into_iter()
        .flat_map(|shape| [Metric::Cosine, Metric::Dot].map(|metric| (shape, metric)))
    {
        let own = Arc::new(model(metric, shape)?);
        let terms = Arc::new(model(Metric::Dot, shape)?);
        let kinds = Kinds::new(&own, &terms, count.div_ceil(2 * SHAPES.len()))?;
        let mut first: Option<Vec<Vec<u8>>> = None;
        for set in InstructionSet::available() {
            for look in [FirstLook::FourBits, FirstLook::EightBits] {
                let paths =
                    Paths { always_certify: true, first_look: Some(look), ..Paths::default() };
                let precision = match look {
                    FirstLook::FourBits => Precision::Float16,
                    FirstLook::EightBits => Precision::Float32,
                };
                let options = Options {
                    threads: 2,
                    instructions: Some(set),
                    paths,
                    precision,
                    ..Options::default()
                };
                let found = of_engine(&own, &kinds, options)?;
                if first.get_or_insert_with(|| found.clone()) != &found {
                    return Err(format!("{set}, {look:?}: other answers than before").into());
                }
            }
            eprintln!("{shape:?}, {metric:?}: {set}");
        }
        let lengths =
            [kinds.searches.len(), kinds.ranks.len(), kinds.expansions.len(), kinds.texts.len()];
        let names = ["searches", "ranks", "expansions", "labels"];
        for ((name, length), bytes) in names.iter().zip(lengths).zip(first.unwrap_or_default()) {
            total += length;
            let (rows, dim) = shape;
            println!("{rows} x {dim}, {metric:?}, {length} {name}: {}", Checksum::of(&bytes));
        }
    }
    println!("{total} answers");
    Ok(())
}
