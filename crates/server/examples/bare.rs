//! `bare -- ADDR`: an axum route that answers ten neighbours from nothing, with the headers and the size
//! of a real answer. What `kindred serve` is held against under load: nothing behind the same HTTP
//! stack on the same machine can be faster.

use axum::Router;
use axum::http::{HeaderValue, header};
use axum::response::IntoResponse;
use axum::routing::get;

const BODY: &str = r#"{"model":"synth","word":"basazonu","row":123456,"k":10,"neighbors":[{"word":"kutobani","row":1948190,"score":0.7324829478237482},{"word":"kutobani","row":1948190,"score":0.7124829478237482},{"word":"kutobani","row":1948190,"score":0.7024829478237482},{"word":"kutobani","row":1948190,"score":0.6924829478237482},{"word":"kutobani","row":1948190,"score":0.6824829478237482},{"word":"kutobani","row":1948190,"score":0.6724829478237482},{"word":"kutobani","row":1948190,"score":0.6624829478237482},{"word":"kutobani","row":1948190,"score":0.6524829478237482},{"word":"kutobani","row":1948190,"score":0.6424829478237482},{"word":"kutobani","row":1948190,"score":0.6324829478237482}]}"#;

async fn nearest() -> impl IntoResponse {
    let timing = HeaderValue::from_static("queue;dur=0.000, engine;dur=0.000, total;dur=0.000");
    let json = HeaderValue::from_static("application/json");
    (
        [(header::CONTENT_TYPE, json), (header::HeaderName::from_static("server-timing"), timing)],
        BODY,
    )
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let address = std::env::args().nth(1).ok_or("bare: say an address, such as 127.0.0.1:9090")?;
    let listener = tokio::net::TcpListener::bind(&address).await?;
    println!("bare: http://{}/nearest", listener.local_addr()?);
    let listener = axum::serve::ListenerExt::tap_io(listener, |connection| {
        let _ = connection.set_nodelay(true);
    });
    axum::serve(listener, Router::new().route("/nearest", get(nearest))).await?;
    Ok(())
}
