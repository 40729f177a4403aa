//! The whole service over the CPU engine, with failures on demand: for tests of what happens to requests when the
//! engine fails, and for load tests with a known cost of a pass.
//!
//!     cargo run --release -p server --example faulty -- 127.0.0.1:8082 --pass-microseconds 5000 --max-batch 8
//!     cargo run -p server --example faulty -- 127.0.0.1:8082 --fail 100=panic,200=hang
//!
//! Passes are counted from 1 for the life of the process, across all engines. The self-check of a new engine takes 4
//! passes, a readiness check takes 1. Other settings come from KINDRED_* variables.

use std::fmt::Display;
use std::process::ExitCode;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use clap::Parser;
use contract::{
    Engine, EngineDescription, EngineError, FullPassAnswer, FullPassPart, FullPassQuery, Hit,
    Query, QueryBatch,
};
use gpu_core::GpuError;
use kindred::device::Device;
use kindred::engines::{self, EngineStartError, KeptHeads, Wanted};
use server::commands::{CommandError, serve_with};
use server::config::{Config, ServeFlags};

// The same allocator as in the program itself.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Serves with an engine that fails on demand.
#[derive(Parser)]
struct Arguments {
    /// Address and port [default: the setting `listen`]
    address: Option<String>,
    /// Minimum duration of a pass, in microseconds
    #[arg(long, value_name = "N", default_value_t = 0)]
    pass_microseconds: u64,
    /// Maximum number of queries in a pass
    #[arg(long, value_name = "N", default_value_t = usize::MAX)]
    max_batch: usize,
    /// Passes that fail, and how: error, panic or hang, as in 5=error,9=hang
    #[arg(long, value_name = "PASS=HOW", value_delimiter = ',')]
    fail: Vec<Fault<PassFault>>,
    /// Attempts to make the engine that fail, from 1, and how: error, panic, hang or memory
    #[arg(long, value_name = "N=HOW", value_delimiter = ',')]
    fail_start: Vec<Fault<StartFault>>,
    /// From this pass on, each answer lacks its best hit, except answers of full passes that run in slices
    #[arg(long, value_name = "PASS", default_value_t = u64::MAX)]
    wrong_answers_from: u64,
}

#[derive(Clone, Copy)]
enum PassFault {
    Error,
    Panic,
    Hang,
}

#[derive(Clone, Copy)]
enum StartFault {
    Error,
    Panic,
    Hang,
    Memory,
}

impl FromStr for PassFault {
    type Err = String;
    fn from_str(how: &str) -> Result<Self, String> {
        Ok(match how {
            "error" => Self::Error,
            "panic" => Self::Panic,
            "hang" => Self::Hang,
            _ => return Err(format!("`{how}` is not error, panic or hang")),
        })
    }
}

impl FromStr for StartFault {
    type Err = String;
    fn from_str(how: &str) -> Result<Self, String> {
        Ok(match how {
            "error" => Self::Error,
            "panic" => Self::Panic,
            "hang" => Self::Hang,
            "memory" => Self::Memory,
            _ => return Err(format!("`{how}` is not error, panic, hang or memory")),
        })
    }
}

/// What fails, and how. `number` is that of the pass or of the attempt, counted from 1.
#[derive(Clone, Copy)]
struct Fault<How> {
    number: u64,
    how: How,
}

impl<How: FromStr<Err = String>> FromStr for Fault<How> {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let (number, how) = text.split_once('=').ok_or("write NUMBER=HOW, as in 5=error")?;
        let say = |e: &dyn Display| format!("`{number}`: {e}");
        Ok(Self { number: number.parse().map_err(|e| say(&e))?, how: how.parse()? })
    }
}

impl<How: Copy> Fault<How> {
    fn at(faults: &[Self], number: u64) -> Option<How> {
        faults.iter().find(|fault| fault.number == number).map(|fault| fault.how)
    }
}

/// The state that outlives an engine.
struct Plan {
    arguments: Arguments,
    passes: AtomicU64,
    starts: AtomicU64,
}

struct Faulty {
    engine: Box<dyn Engine>,
    plan: Arc<Plan>,
}

fn hang() -> ! {
    loop {
        std::thread::park();
    }
}

impl Faulty {
    fn make(
        plan: &Arc<Plan>,
        make: impl FnOnce() -> Result<Box<dyn Engine>, EngineStartError>,
    ) -> Result<Box<dyn Engine>, EngineStartError> {
        let attempt = plan.starts.fetch_add(1, Ordering::Relaxed) + 1;
        match Fault::at(&plan.arguments.fail_start, attempt) {
            None => Ok(Box::new(Self { engine: make()?, plan: plan.clone() })),
            Some(StartFault::Panic) => panic!("as ordered: attempt {attempt} to make an engine"),
            Some(StartFault::Hang) => hang(),
            Some(how) => {
                let source = if matches!(how, StartFault::Memory) {
                    let (name, parts) = ("a GPU made up".into(), "the table, as ordered".into());
                    GpuError::DoesNotFit {
                        name,
                        parts,
                        needed: 9 << 30,
                        free: 1 << 30,
                        total: 8 << 30,
                    }
                } else {
                    GpuError::NoDevice { reason: "as ordered".into() }
                };
                Err(EngineStartError::Gpu { device: Device::Cuda(None), source })
            }
        }
    }

    /// Runs a pass, with the fault that was ordered for it. Returns its result, and whether to make that result wrong.
    fn pass<T>(
        &mut self,
        pass: impl FnOnce(&mut dyn Engine) -> Result<T, EngineError>,
    ) -> Result<(T, bool), EngineError> {
        let number = self.plan.passes.fetch_add(1, Ordering::Relaxed) + 1;
        let arguments = &self.plan.arguments;
        match Fault::at(&arguments.fail, number) {
            Some(PassFault::Error) => {
                return Err(EngineError::Device(format!("as ordered, in pass {number}")));
            }
            Some(PassFault::Panic) => panic!("as ordered, in pass {number}"),
            Some(PassFault::Hang) => hang(),
            None => {}
        }
        let started = Instant::now();
        let found = pass(&mut *self.engine)?;
        let least = Duration::from_micros(arguments.pass_microseconds);
        std::thread::sleep(least.saturating_sub(started.elapsed()));
        Ok((found, number >= arguments.wrong_answers_from))
    }
}

fn without_best(hits: &mut Vec<Hit>) {
    hits.drain(..1.min(hits.len()));
}

impl Engine for Faulty {
    fn description(&self) -> EngineDescription {
        let detail = self.engine.description().detail;
        EngineDescription { name: "faulty", detail }
    }

    fn preferred_batch(&self, waiting: usize) -> usize {
        self.engine.preferred_batch(waiting).min(self.plan.arguments.max_batch)
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        self.engine.counters()
    }

    fn search_cost(&self, query: &Query) -> usize {
        self.engine.search_cost(query)
    }

    fn search(&mut self, batch: &QueryBatch<'_>) -> Result<Vec<Vec<Hit>>, EngineError> {
        let (mut found, is_wrong) = self.pass(|engine| engine.search(batch))?;
        if is_wrong {
            found.iter_mut().for_each(without_best);
        }
        Ok(found)
    }

    /// Only the first slice is counted as a pass.
    fn full_pass_part(
        &mut self,
        parts: &mut [FullPassPart],
        from: usize,
        go_on: &(dyn Fn() -> bool + Sync),
    ) -> Result<Option<usize>, EngineError> {
        if from > 0 {
            return self.engine.full_pass_part(parts, from, go_on);
        }
        Ok(self.pass(|engine| engine.full_pass_part(parts, from, go_on))?.0)
    }

    fn full_pass(
        &mut self,
        queries: &[&FullPassQuery],
    ) -> Result<Vec<FullPassAnswer>, EngineError> {
        let (mut found, is_wrong) = self.pass(|engine| engine.full_pass(queries))?;
        if is_wrong {
            for answer in &mut found {
                without_best(&mut answer.hits);
                answer.ranks.iter_mut().for_each(|one| one.rank = one.rank.map(|rank| rank + 1));
            }
        }
        Ok(found)
    }
}

fn run(arguments: Arguments) -> Result<(), CommandError> {
    let flags = ServeFlags { listen: arguments.address.clone(), ..Default::default() };
    let config = Config::load(&flags)?;
    let read_settings = move || Config::load(&flags);
    let (threads, keep_tables) = (config.threads, config.keep_tables);
    let wanted = Wanted { device: Device::Cpu, threads, keep_tables, heads: KeptHeads::default() };
    let plan = Arc::new(Plan { arguments, passes: 0.into(), starts: 0.into() });
    serve_with(&config, read_settings, move |model, warm| {
        let mut engine = Faulty::make(&plan, || engines::make(&model, wanted, warm))?;
        engines::self_check(&mut *engine, &model)?;
        Ok(engine)
    })
}

fn main() -> ExitCode {
    match run(Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("faulty: {error}");
            ExitCode::from(error.exit_code())
        }
    }
}
