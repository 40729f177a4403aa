//! The baseline of the load tests: one axum route, for GET and POST, that returns the bytes of a
//! typical answer. `axum::serve` runs it on threads that share all connections. `scripts/load-http`
//! compares the service with it.
//!
//!     cargo run --profile dist -p cli --example bare -- 127.0.0.1:8081 [HTTP_THREADS]
//!
//! 0 threads, the default, means half as many as there are cores. This gives the highest
//! throughput.

use std::error::Error;

use axum::Router;
use axum::body::Bytes;
use axum::http::{HeaderName, header};
use axum::routing::get;
use server::http::transport;
use tokio::runtime::Builder;

/// The answer to `/nearest?word=frog` of the built-in model.
const BODY: &str = r#"{"model":"demo","neighbors":[{"word":"frogs","score":0.6804725969872646,"row":10925},{"word":"toad","score":0.6519971100007262,"row":12073},{"word":"salamander","score":0.6431762106312104,"row":14184},{"word":"lizard","score":0.6284431762106312,"row":9412},{"word":"turtle","score":0.6199711000072621,"row":6120},{"word":"snake","score":0.6108047259698726,"row":4511},{"word":"tadpole","score":0.6017621063121043,"row":29218},{"word":"newt","score":0.5980472596987264,"row":20925},{"word":"amphibian","score":0.5919971100007262,"row":12973},{"word":"spider","score":0.5831762106312104,"row":5184}]}"#;
const TIMING: &str = r#"queue;dur=0.010, engine;desc="cuda";dur=0.123, total;dur=0.188"#;

fn main() -> Result<(), Box<dyn Error>> {
    let address = std::env::args().nth(1).ok_or("usage: bare ADDR [HTTP_THREADS]")?;
    let threads: usize = std::env::args().nth(2).map_or(Ok(0), |threads| threads.parse())?;
    let cores = std::thread::available_parallelism()?.get();
    let threads = if threads == 0 { (cores / 2).max(2) } else { threads };
    let runtime = Builder::new_multi_thread().worker_threads(threads).enable_all().build()?;
    let timing = HeaderName::from_static("server-timing");
    let headers = [(header::CONTENT_TYPE, "application/json"), (timing, TIMING)];
    let posted = headers.clone();
    let route = get(move || async move { (headers, BODY) })
        .post(move |_: Bytes| async move { (posted, BODY) });
    runtime.block_on(async {
        let listener = transport::start_listening(transport::bind(&address).await?)?;
        println!("Listening on http://{}", listener.local_addr()?);
        let router = Router::new().route("/nearest", route.clone()).route("/classify", route);
        Ok(axum::serve(transport::without_delay(listener), router).await?)
    })
}
