//! Measures how many texts a second become vectors, one by one and in batches of 1,024 on all cores:
//!
//!     cargo run --release -p kindred --example time_texts -- MODEL TEXTS.txt
//!
//! `RAYON_NUM_THREADS=1` takes one core.

use std::env::args;
use std::error::Error;
use std::fs::read_to_string;
use std::time::{Duration, Instant};

use kindred::Model;
use kindred::question::EncodeOptions;

const ROUND: Duration = Duration::from_secs(2);

fn main() -> Result<(), Box<dyn Error>> {
    let (Some(model), Some(texts)) = (args().nth(1), args().nth(2)) else {
        return Err("usage: time_texts MODEL TEXTS.txt".into());
    };
    let (model, texts) = (Model::open(model)?, read_to_string(texts)?);
    let texts: Vec<&str> = texts.lines().collect();
    let options = EncodeOptions::default();
    for _ in 0..3 {
        let (since, mut single) = (Instant::now(), 0);
        while since.elapsed() < ROUND {
            for text in texts.iter().take(256) {
                std::hint::black_box(model.encode(text, &options)?);
                single += 1;
            }
        }
        let single = f64::from(single) / since.elapsed().as_secs_f64();
        let (since, mut together) = (Instant::now(), 0);
        for batch in texts.chunks(1024).cycle() {
            let encoded = model.encode_all(batch, &options);
            std::hint::black_box(
                encoded.map_err(|(place, error)| format!("text {place}: {error}"))?,
            );
            together += batch.len();
            if since.elapsed() > ROUND {
                break;
            }
        }
        let together = together as f64 / since.elapsed().as_secs_f64();
        println!("one by one {single:.0} texts/s, in batches {together:.0}");
    }
    Ok(())
}
