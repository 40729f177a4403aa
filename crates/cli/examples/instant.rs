//! The whole service over an engine that makes up its answers, so that only the cost of everything
//! but the search is left. `scripts/load-http` can compare it with `bare`.
//!
//!     cargo run --profile dist -p cli --example instant -- 127.0.0.1:8082 --microseconds 200
//!
//! Other settings come from KINDRED_* variables. With `--release`, this example is not optimised.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Parser;
use cli::commands::{CommandError, serve_with};
use contract::{
    Device, EngineDescription, EngineError, FullPassEngine, HeadEngine, Hit, Query, QueryVector,
    Row, SearchEngine,
};
use server::config::{Config, ServeFlags};
use server::models::one_engine;

/// Serves made-up answers.
#[derive(Parser)]
struct Arguments {
    /// Address and port
    address: String,
    /// Microseconds that a pass takes
    #[arg(long, default_value_t = 0)]
    microseconds: u64,
    /// Keep the core busy during a pass, like a CPU engine; the default is to sleep, as the host
    /// does while a GPU works
    #[arg(long)]
    spin: bool,
}

struct Instantly {
    rows: u32,
    pass: Duration,
    spin: bool,
}

impl Device for Instantly {
    fn description(&self) -> EngineDescription {
        let detail = format!("made-up answers, {} µs a pass", self.pass.as_micros());
        EngineDescription { name: "instant", detail }
    }
}

impl SearchEngine for Instantly {
    fn preferred_batch(&self, waiting: usize) -> usize {
        waiting.min(1024)
    }

    fn search(&mut self, batch: &[&Query]) -> Result<Vec<Vec<Hit>>, EngineError> {
        if self.spin {
            let started = Instant::now();
            while started.elapsed() < self.pass {
                std::hint::spin_loop();
            }
        } else if !self.pass.is_zero() {
            std::thread::sleep(self.pass);
        }
        let hits = |first: u32, k: usize| {
            let row = |index: u32| Row(first.wrapping_add(index.wrapping_mul(7919)) % self.rows);
            let hit = |index: u32| Hit {
                row: row(index),
                // Scores have as many digits as real ones.
                score: 1.0 / (1.7 + f64::from(first % 89 + index) / 97.0),
            };
            (1..=k.min(self.rows as usize) as u32).map(hit).collect()
        };
        let answers = batch.iter().map(|query| match &query.vectors()[0].vector {
            QueryVector::Row(row) => hits(row.0, query.k),
            QueryVector::Components(_) => hits(0, query.k),
        });
        Ok(answers.collect())
    }
}

impl FullPassEngine for Instantly {}

impl HeadEngine for Instantly {}

fn run(arguments: &Arguments) -> Result<(), CommandError> {
    let flags = ServeFlags { listen: Some(arguments.address.clone()), ..Default::default() };
    let (pass, spin) = (Duration::from_micros(arguments.microseconds), arguments.spin);
    let read_settings = {
        let flags = flags.clone();
        move || Config::load(&flags)
    };
    let make_engines = one_engine(move |model, _warm| {
        Ok(Box::new(Instantly { rows: model.rows() as u32, pass, spin }))
    });
    serve_with(&Config::load(&flags)?, read_settings, make_engines)
}

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("instant: {error}");
            ExitCode::FAILURE
        }
    }
}
