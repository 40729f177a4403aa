//! A service behind a URL.

use std::time::{Duration, Instant};

use serde_json::Value;
use ureq::Agent;
use ureq::http::Uri;

use super::ConsoleError;
use super::service::{Reply, Service, Times};
use crate::cli::Place;
use crate::client;
use crate::config::API_KEY_VARIABLE;

/// The most bytes that an answer may have: a thousand neighbours with all that can be said of them are far fewer.
const MOST_BYTES: u64 = 256 << 20;

/// A running service, or one of several models of it.
pub(super) struct Remote {
    agent: Agent,
    /// Without a slash at its end.
    url: String,
    api_key: Option<String>,
}

impl Remote {
    /// Nothing is asked yet.
    pub(super) fn new(url: &str, place: &Place) -> Result<Self, ConsoleError> {
        let bad = |reason: &str| ConsoleError::BadUrl { url: url.into(), reason: reason.into() };
        let parsed: Uri = url.parse().map_err(|_| bad("that is no URL"))?;
        if !matches!(parsed.scheme_str(), Some("http" | "https")) || parsed.host().is_none() {
            return Err(bad("it must begin with http:// or https://"));
        }
        if parsed.query().is_some() {
            return Err(bad("it must have no query"));
        }
        let from_environment =
            || std::env::var(API_KEY_VARIABLE).ok().filter(|key| !key.is_empty());
        let api_key = place.api_key.clone().or_else(from_environment);
        if api_key.as_ref().is_some_and(|key| !key.bytes().all(|byte| byte.is_ascii_graphic())) {
            let reason = "the API key has characters that no key has; `kindred api-key` makes keys";
            return Err(ConsoleError::BadLine(reason.to_owned()));
        }
        let agent = client::agent(parsed.scheme_str() == Some("https"));
        Ok(Self { agent, url: url.trim_end_matches('/').to_owned(), api_key })
    }
}

impl Service for Remote {
    fn ask(
        &self,
        path: &str,
        body: Option<&Value>,
        patience: Option<Duration>,
    ) -> Result<Reply, ConsoleError> {
        let mut request = ureq::http::Request::builder().uri(format!("{}{path}", self.url));
        if let Some(key) = &self.api_key {
            request = request.header("Authorization", format!("Bearer {key}"));
        }
        let bad = |e: ureq::http::Error| ConsoleError::BadUrl {
            url: self.url.clone(),
            reason: e.to_string(),
        };
        let in_time = |bound: Option<Duration>| bound.or(Some(client::REQUEST));
        let asked = Instant::now();
        let answer = match body {
            Some(body) => {
                let request = request.method("POST").header("Content-Type", "application/json");
                let request = request.body(body.to_string()).map_err(bad)?;
                let request = self.agent.configure_request(request);
                self.agent.run(request.timeout_global(in_time(patience)).build())
            }
            None => {
                let request = self.agent.configure_request(request.body(()).map_err(bad)?);
                self.agent.run(request.timeout_global(in_time(patience)).build())
            }
        };
        let unreachable = |e: ureq::Error| ConsoleError::Unreachable {
            url: self.url.clone(),
            reason: e.to_string(),
        };
        let mut response = answer.map_err(unreachable)?;
        let status = response.status().as_u16();
        let timing = response.headers().get("server-timing").cloned();
        let body = response.body_mut().with_config().limit(MOST_BYTES).read_to_vec();
        let body = body.map_err(unreachable)?;
        let round_trip = Some(asked.elapsed().as_secs_f64() * 1e3);
        let times = timing.and_then(|timing| Times::read(timing.to_str().ok()?));
        let times = times.map(|times| Times { round_trip, ..times });
        Ok(Reply { status, body, times })
    }

    fn name(&self) -> String {
        self.url.clone()
    }
}
