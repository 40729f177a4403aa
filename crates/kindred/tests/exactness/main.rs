//! Random questions of every kind to random models, on every engine: the same rows and the same
//! bits as plain loops over plain values, which share no code with what they judge.
//!
//!     scripts/test --test exactness                         # two hundred questions
//!     TEST_QUESTIONS=10000 scripts/test --test exactness    # a few minutes
//!
//! Each engine is a test, which asks all of the questions. TEST_SEED is another seed. With the
//! feature `cuda` there are those of a GPU, too; without a GPU they are listed as ignored.

mod ask;
mod draw;
mod engines;
#[path = "../../../filters/src/tests/naive.rs"]
mod naive;
mod oracle;
mod question;
#[path = "../integration/random.rs"]
mod random;
mod world;

use std::str::FromStr;
use std::sync::{Arc, OnceLock};

use draw::Draw;
use engines::Make;
use libtest_mimic::{Arguments, Trial};
use oracle::Found;
use question::Question;
use world::World;

/// Questions, unless TEST_QUESTIONS says otherwise.
const QUESTIONS: usize = 200;

/// Questions to a model.
const OF_A_WORLD: usize = 25;

/// Differences that are printed.
const MOST_PRINTED: usize = 3;

/// A model, and questions with their answers.
pub(crate) struct Case {
    number: usize,
    world: World,
    asked: Vec<(Question, Option<Found>)>,
}

impl Case {
    fn new(seed: u64, number: usize, questions: usize) -> Self {
        let mut draw = Draw::new(seed.wrapping_mul(1 << 32).wrapping_add(number as u64));
        let world = World::new(number, &mut draw);
        let asked = (0..questions).map(|_| {
            let question = Question::new(&world, &mut draw);
            let answer = oracle::answer(&world, &question);
            (question, answer)
        });
        let asked = asked.collect();
        Self { number, world, asked }
    }
}

/// The cases of a run. Each is made when an engine needs it first, and kept for the others.
struct Cases {
    seed: u64,
    questions: usize,
    made: Vec<OnceLock<Case>>,
}

impl Cases {
    fn new(seed: u64, questions: usize) -> Self {
        let made = (0..questions.div_ceil(OF_A_WORLD)).map(|_| OnceLock::new()).collect();
        Self { seed, questions, made }
    }

    fn each(&self) -> impl Iterator<Item = &Case> {
        self.made.iter().enumerate().map(|(number, case)| {
            let questions = OF_A_WORLD.min(self.questions - number * OF_A_WORLD);
            case.get_or_init(|| Case::new(self.seed, number, questions))
        })
    }

    /// Asks an engine all questions; fails if an answer differs.
    fn ask(&self, name: &str, make: &Make) -> Result<(), String> {
        let (mut asked, mut said, mut wrong) = (0, 0, 0);
        let mut printed = Vec::new();
        for case in self.each() {
            asked += case.asked.len();
            let answers = case.asked.iter().filter_map(|(_, answer)| answer.as_ref());
            said += answers.filter(|answer| answer.says_something()).count();
            let differences = ask::differences(case, make);
            wrong += differences.len();
            let rest = MOST_PRINTED - printed.len();
            printed.extend(differences.into_iter().take(rest));
        }
        println!("{name}: {asked} questions, {said} with rows in the answer: {wrong} differ");
        if wrong > 0 {
            let which = format!("{wrong} differ with TEST_SEED={}", self.seed);
            return Err(format!("{which}\n{}", printed.join("\n")));
        }
        // Otherwise little would have been compared.
        if 2 * said < asked {
            Err(format!("only {said} of {asked} answers have rows"))
        } else {
            Ok(())
        }
    }
}

/// The number that a variable of the environment has.
fn number<T: FromStr>(variable: &str, otherwise: T) -> T {
    let written = std::env::var(variable).ok();
    written.map_or(otherwise, |text| {
        text.parse().unwrap_or_else(|_| panic!("{variable} must be a number, not {text}"))
    })
}

fn main() {
    let mut arguments = Arguments::from_args();
    let cases = Arc::new(Cases::new(number("TEST_SEED", 1), number("TEST_QUESTIONS", QUESTIONS)));
    let trial = |(name, make): (String, Make)| {
        let cases = cases.clone();
        let named = name.clone();
        Trial::test(name, move || Ok(cases.ask(&named, &make)?))
    };
    let (on_gpu, has_gpu) = engines::on_gpu();
    let mut trials: Vec<Trial> = engines::on_cpu().into_iter().map(trial).collect();
    trials.extend(on_gpu.into_iter().map(trial).map(|one| one.with_ignored_flag(!has_gpu)));
    if has_gpu {
        // All tests share its memory.
        arguments.test_threads.get_or_insert(1);
    }
    libtest_mimic::run(&arguments, trials).exit();
}
