//! The whole service over the CPU engine, with failures on demand: for tests of what happens to
//! requests when the engine fails, and for load tests with a known cost of a pass.
//!
//!     cargo run --release -p cli --example faulty -- 127.0.0.1:8082 --pass-microseconds 5000 --max-batch 8
//!     cargo run -p cli --example faulty -- 127.0.0.1:8082 --fail 100=panic,200=hang
//!     cargo run -p cli --example faulty -- 127.0.0.1:8082 --replicas 3 --fail-replica 1:100=error
//!
//! Passes are counted from 1 for the life of the process, across all engines. The self-check of a
//! new engine takes 4 passes, a readiness check takes 1. Other settings come from KINDRED_*
//! variables.

use std::fmt::Display;
use std::process::ExitCode;
use std::str::FromStr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use clap::Parser;
use cli::commands::{CommandError, serve_with};
use contract::{
    Engine, EngineDescription, EngineError, FullPassAnswer, FullPassEngine, FullPassPart,
    FullPassQuery, HeadEngine, Hit, Query, SearchEngine,
};
use cpu_core::CpuEngine;
use gpu_core::GpuError;
use kindred::ModelStore;
use kindred::device::{Device, Gpus, Placement};
use kindred::engines::{self, EngineStartError, HadGpu, KeptHeads, Maker, Makers, Wanted};
use server::config::{Config, ServeFlags};
use server::models::MakeEngines;
use shards::{Shards, split_evenly};

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
    /// Engines that share the queue
    #[arg(long, value_name = "N", default_value_t = 1)]
    replicas: usize,
    /// Parts of the rows, each with an engine of its own
    #[arg(long, value_name = "N", default_value_t = 1)]
    shards: usize,
    /// As --fail, of one replica, from 0, whose passes are counted apart, as in 1:5=error
    #[arg(long, value_name = "REPLICA:PASS=HOW", value_delimiter = ',')]
    fail_replica: Vec<OfReplica>,
    /// After how long a pass that hangs goes on; 0 for never
    #[arg(long, value_name = "N", default_value_t = 0)]
    hang_milliseconds: u64,
    /// Maximum number of engines that there is memory for
    #[arg(long, value_name = "N", default_value_t = usize::MAX)]
    most_engines: usize,
    /// Attempts to make the engine that fail, from 1, and how: error, panic, hang or memory
    #[arg(long, value_name = "N=HOW", value_delimiter = ',')]
    fail_start: Vec<Fault<StartFault>>,
    /// From this pass on, each answer lacks its best hit, except answers of full passes that run in
    /// slices
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

/// A fault in a pass of one replica.
#[derive(Clone, Copy)]
struct OfReplica {
    replica: usize,
    fault: Fault<PassFault>,
}

impl FromStr for OfReplica {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let (replica, fault) = text.split_once(':').ok_or("write REPLICA:PASS=HOW")?;
        let replica = replica.parse().map_err(|e| format!("`{replica}`: {e}"))?;
        Ok(Self { replica, fault: fault.parse()? })
    }
}

/// The state that outlives an engine.
struct Plan {
    arguments: Arguments,
    passes: AtomicU64,
    /// By replica.
    own_passes: Vec<AtomicU64>,
    starts: AtomicU64,
    /// How many engines there are.
    engines: Mutex<usize>,
}

struct Faulty {
    engine: Box<dyn Engine>,
    replica: usize,
    plan: Arc<Plan>,
    _memory: Memory,
}

/// Counts an engine while it exists.
struct Memory(Arc<Plan>);

impl Memory {
    fn take(plan: &Arc<Plan>) -> Option<Self> {
        let mut engines = plan.engines.lock().expect("nothing panics while it holds this lock");
        (*engines < plan.arguments.most_engines).then(|| {
            *engines += 1;
            Self(plan.clone())
        })
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        *self.0.engines.lock().expect("nothing panics while it holds this lock") -= 1;
    }
}

fn hang() -> ! {
    loop {
        std::thread::park();
    }
}

fn no_memory() -> EngineStartError {
    let (name, parts) = ("a GPU made up".into(), "the table, as ordered".into());
    let source =
        GpuError::DoesNotFit { name, parts, needed: 9 << 30, free: 1 << 30, total: 8 << 30 };
    EngineStartError::Gpu { device: Device::Cuda(Gpus::First), source }
}

impl Faulty {
    fn make(
        plan: &Arc<Plan>,
        replica: usize,
        make: impl FnOnce() -> Result<Box<dyn Engine>, EngineStartError>,
    ) -> Result<Box<dyn Engine>, EngineStartError> {
        let attempt = plan.starts.fetch_add(1, Ordering::Relaxed) + 1;
        match Fault::at(&plan.arguments.fail_start, attempt) {
            None => {
                let _memory = Memory::take(plan).ok_or_else(no_memory)?;
                Ok(Box::new(Self { engine: make()?, replica, plan: plan.clone(), _memory }))
            }
            Some(StartFault::Panic) => panic!("as ordered: attempt {attempt} to make an engine"),
            Some(StartFault::Hang) => hang(),
            Some(StartFault::Memory) => Err(no_memory()),
            Some(StartFault::Error) => {
                let source = GpuError::NoDevice { source: "as ordered".into() };
                Err(EngineStartError::Gpu { device: Device::Cuda(Gpus::First), source })
            }
        }
    }

    /// Runs a pass, with the fault that was ordered for it. Returns its result, and whether to make
    /// that result wrong.
    fn pass<T>(
        &mut self,
        pass: impl FnOnce(&mut dyn Engine) -> Result<T, EngineError>,
    ) -> Result<(T, bool), EngineError> {
        let number = self.plan.passes.fetch_add(1, Ordering::Relaxed) + 1;
        let arguments = &self.plan.arguments;
        let own = self.plan.own_passes[self.replica].fetch_add(1, Ordering::Relaxed) + 1;
        let of_replica = arguments
            .fail_replica
            .iter()
            .find(|of| of.replica == self.replica && of.fault.number == own)
            .map(|of| of.fault.how);
        match Fault::at(&arguments.fail, number).or(of_replica) {
            Some(PassFault::Error) => {
                return Err(EngineError::Device(format!("as ordered, in pass {number}").into()));
            }
            Some(PassFault::Panic) => panic!("as ordered, in pass {number}"),
            Some(PassFault::Hang) if arguments.hang_milliseconds == 0 => hang(),
            Some(PassFault::Hang) => {
                std::thread::sleep(Duration::from_millis(arguments.hang_milliseconds));
            }
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

impl contract::Device for Faulty {
    fn description(&self) -> EngineDescription {
        let detail = self.engine.description().detail;
        EngineDescription { name: "faulty", detail }
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        self.engine.counters()
    }
}

impl SearchEngine for Faulty {
    fn preferred_batch(&self, waiting: usize) -> usize {
        self.engine.preferred_batch(waiting).min(self.plan.arguments.max_batch)
    }

    fn search_cost(&self, query: &Query) -> usize {
        self.engine.search_cost(query)
    }

    fn search(&mut self, batch: &[&Query]) -> Result<Vec<Vec<Hit>>, EngineError> {
        let (mut found, is_wrong) = self.pass(|engine| engine.search(batch))?;
        if is_wrong {
            found.iter_mut().for_each(without_best);
        }
        Ok(found)
    }
}

impl FullPassEngine for Faulty {
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

impl HeadEngine for Faulty {}

/// One engine of several, each with some of the rows.
fn sharded(model: &Arc<ModelStore>, shards: usize) -> Result<Box<dyn Engine>, EngineStartError> {
    let part = |_, rows| -> Result<Box<dyn Engine>, EngineStartError> {
        let options = cpu_core::Options { threads: 1, ..Default::default() };
        Ok(Box::new(CpuEngine::over(rows, options)?))
    };
    match Shards::new(model.clone(), split_evenly(model.rows(), shards), part) {
        Ok(engine) => Ok(Box::new(engine)),
        Err(shards::StartError::Engine(error)) => Err(error),
        Err(other) => Err(EngineStartError::Broken(other.to_string())),
    }
}

fn run(arguments: Arguments) -> Result<(), CommandError> {
    let flags = ServeFlags { listen: arguments.address.clone(), ..Default::default() };
    let config = Config::load(&flags)?;
    let read_settings = move || Config::load(&flags);
    let (threads, keep_tables) = (config.threads, config.keep_tables);
    let (device, placement, heads) = (Device::Cpu, Placement::Auto, KeptHeads::default());
    let had_gpu = HadGpu::default();
    let (staging, room) = (None, 0);
    let wanted = Wanted { device, placement, threads, keep_tables, heads, had_gpu, staging, room };
    let (replicas, shards) = (arguments.replicas.max(1), arguments.shards);
    let plan = Arc::new(Plan {
        arguments,
        passes: 0.into(),
        own_passes: (0..replicas).map(|_| 0.into()).collect(),
        starts: 0.into(),
        engines: Mutex::default(),
    });
    let make_engines: MakeEngines = Arc::new(move |model, _, _, _| {
        let maker = |replica| -> Maker {
            let (plan, model, wanted) = (plan.clone(), model.clone(), wanted.clone());
            Box::new(move |warm| {
                let make = || match shards {
                    0 | 1 => engines::make(&model, &wanted, warm),
                    _ => sharded(&model, shards),
                };
                let mut engine = Faulty::make(&plan, replica, make)?;
                engines::self_check(&mut *engine, &model)?;
                Ok(engine)
            })
        };
        Ok(Makers { each: (0..replicas).map(maker).collect(), placed: None })
    });
    serve_with(&config, read_settings, make_engines)
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
