//! `kindred health`: checks whether a running service is ready.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio_rustls::rustls::{self, crypto::ring};
use ureq::Agent;
use ureq::tls::TlsConfig;

use super::CommandError;
use server::client::{self, is_loopback};
use server::config::{self, URL_VARIABLE};

/// The address of the service, if none is given.
const DEFAULT_URL: &str = "http://127.0.0.1:8080";

/// Asks a running service whether it is ready.
pub(super) fn health(url: Option<&str>, timeout_ms: u64) -> Result<(), CommandError> {
    config::check_variables()?;
    let url = match url {
        Some(url) => Some(url.to_owned()),
        None => config::variable(URL_VARIABLE)?,
    };
    let url = url.as_deref().unwrap_or(DEFAULT_URL).trim_end_matches('/');
    check_address(url).map_err(CommandError::Usage)?;
    let key = client::api_key(None)?;
    ask(url, key, Duration::from_millis(timeout_ms))?;
    say!("ready")
}

/// Allows HTTPS only for this machine: there the certificate need not be checked, and it is for
/// another name anyway.
fn check_address(url: &str) -> Result<(), String> {
    let uri = client::service_url(url).map_err(|(shown, reason)| {
        format!(
            "`{shown}` is not a service address: {reason}; set --url or {URL_VARIABLE}, for example to \
             {DEFAULT_URL}"
        )
    })?;
    match uri.host() {
        Some(host) if uri.scheme_str() == Some("https") && !is_loopback(host) => Err(format!(
            "`{host}` is another machine, and this command does not check certificates: run it on that \
             machine with https://127.0.0.1:8443, or use curl"
        )),
        _ => Ok(()),
    }
}

/// Asks the service whether it is ready. The error says why it is not.
fn ask(url: &str, key: Option<String>, within: Duration) -> Result<(), CommandError> {
    let not_ready = |reason: String| CommandError::NotReady { url: url.to_owned(), reason };
    let tls = TlsConfig::builder()
        .disable_verification(true)
        .unversioned_rustls_crypto_provider(Arc::new(ring::default_provider()));
    let agent: Agent = Agent::config_builder()
        .http_status_as_error(false)
        .timeout_global(Some(within))
        .max_redirects(0)
        // A proxy from the environment would be asked instead of the service.
        .proxy(None)
        .tls_config(tls.build())
        .build()
        .into();
    let mut request = agent.get(format!("{url}/health/ready"));
    if let Some(key) = key {
        request = request.header("Authorization", format!("Bearer {key}"));
    }
    let mut answer = request.call().map_err(|e| match e {
        ureq::Error::Timeout(_) => not_ready(format!("no answer within {} ms", within.as_millis())),
        ureq::Error::Protocol(e) if url.starts_with("http://") => not_ready(format!(
            "it does not speak HTTP ({e}); if it uses HTTPS, set --url or {URL_VARIABLE} to {}",
            url.replacen("http", "https", 1)
        )),
        e if speaks_no_tls(&e) => not_ready(format!(
            "it does not speak HTTPS ({e}); set --url or {URL_VARIABLE} to {}",
            url.replacen("https", "http", 1)
        )),
        e => not_ready(format!(
            "{e}; is the service running there? set its address with --url or {URL_VARIABLE}"
        )),
    })?;
    let status = answer.status();
    let body = answer.body_mut().read_to_vec().unwrap_or_default();
    let body: Value = serde_json::from_slice(&body).unwrap_or_default();
    match (status.as_u16(), body["status"].as_str(), body["detail"].as_str()) {
        (200, Some("ready"), _) => Ok(()),
        (200, ..) => Err(not_ready("the server there is not Kindred".to_owned())),
        (_, _, Some(detail)) => Err(not_ready(format!("{}: {detail}", status.as_u16()))),
        _ => Err(not_ready(format!("it answered with {status}"))),
    }
}

/// Whether the beginning of TLS was answered with something else.
fn speaks_no_tls(error: &ureq::Error) -> bool {
    matches!(client::tls_error(error), Some(rustls::Error::InvalidMessage(_)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn certificates_go_unchecked_on_this_machine_only() {
        for right in [
            "http://10.0.0.1",
            "http://kindred:8080/x",
            "https://127.0.0.1:1",
            "https://localhost/kindred",
            "https://[::1]:8443",
        ] {
            assert_eq!(check_address(right), Ok(()), "{right}");
        }
        for wrong in [
            "https://10.0.0.1",
            "https://localhost.example.org",
            "127.0.0.1:8080",
            "/x",
            "",
            "ftp://a",
        ] {
            assert!(check_address(wrong).is_err(), "{wrong}");
        }
    }
}
