//! `instant -- ADDR [MICROSECONDS]`: the real service with the built-in model, over an engine that finds
//! the first rows for everyone, at once or after so many microseconds. What is left to measure is the
//! service's own cost, on any machine.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use model_store::{Engine, EngineDescription, EngineError, Hit, QueryBatch, Row};
use server::http::{AppState, router};
use server::queue::{self, Limits};

struct Instantly(Duration);

impl Engine for Instantly {
    fn description(&self) -> EngineDescription {
        EngineDescription { name: "instant", detail: format!("{:?} a pass", self.0) }
    }

    fn preferred_batch(&self) -> usize {
        1024
    }

    fn search(&mut self, batch: &QueryBatch<'_>) -> Result<Vec<Vec<Hit>>, EngineError> {
        let started = Instant::now();
        let hit = |row| Hit { row: Row(row), score: 0.732_482_947_823_748_2 };
        let hits = batch.queries().iter().map(|query| (0..query.k() as u32).map(hit).collect());
        let hits = hits.collect();
        // As a device is waited for: by looking all the time.
        while started.elapsed() < self.0 {
            std::hint::spin_loop();
        }
        Ok(hits)
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let address = arguments.first().ok_or("instant: say an address, such as 127.0.0.1:8080")?;
    let pass = Duration::from_micros(arguments.get(1).map_or(Ok(0), |n| n.parse())?);
    let model = Arc::new(server::default_model::open(Path::new(""))?);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let limits = Limits { capacity_queries: 8192, max_batch_queries: 1024 };
    let (queue, engine) =
        queue::start(limits, Some(runtime.handle().clone()), move || Ok(Box::new(Instantly(pass))))?;
    let (timeout, readiness) = (Duration::from_secs(30), Duration::from_secs(5));
    let state = AppState::new(model, queue, engine.description.clone(), timeout, readiness);
    runtime.block_on(async {
        let listener = tokio::net::TcpListener::bind(address).await?;
        println!("instant: http://{}/nearest?word=frog", listener.local_addr()?);
        let listener = axum::serve::ListenerExt::tap_io(listener, |connection| {
            let _ = connection.set_nodelay(true);
        });
        axum::serve(listener, router(state)).await
    })?;
    Ok(())
}
