use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::http::Uri;
use serde_json::Value;
use tokio_rustls::rustls::crypto::ring;
use ureq::Agent;
use ureq::tls::TlsConfig;

use super::CommandError;
use crate::cli::HealthArguments;

/// Asks a running service whether it is ready.
///
/// # Errors
/// If it is not, if nothing answers, or if the address can't be one.
pub fn health(arguments: &HealthArguments) -> Result<(), CommandError> {
    let url = arguments.url.trim_end_matches('/');
    check_address(url).map_err(CommandError::Usage)?;
    let not_ready = |reason| CommandError::NotReady { url: url.to_owned(), reason };
    ask(url, Duration::from_millis(arguments.timeout_ms)).map_err(not_ready)?;
    say!("ready");
    Ok(())
}

/// HTTPS is for this very machine: who asks there knows whom, and the certificate is for another name.
fn check_address(url: &str) -> Result<(), String> {
    let uri: Option<Uri> = url.parse().ok();
    let scheme_and_host = uri.as_ref().and_then(|uri| Some((uri.scheme_str()?, uri.host()?)));
    match scheme_and_host {
        Some(("http", _)) => Ok(()),
        Some(("https", host)) if is_loopback(host) => Ok(()),
        Some(("https", host)) => Err(format!(
            "`{host}` is another machine, and certificates are not checked here: ask on the machine itself, as \
             https://127.0.0.1:8443, or use curl"
        )),
        _ => Err(format!("`{url}` is no address of a service; give one as http://127.0.0.1:8080")),
    }
}

fn is_loopback(host: &str) -> bool {
    let address = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    host == "localhost" || address.is_ok_and(|address| address.is_loopback())
}

/// Whether the service there is ready, or why not.
fn ask(url: &str, within: Duration) -> Result<(), String> {
    let tls = TlsConfig::builder()
        .disable_verification(true)
        .unversioned_rustls_crypto_provider(Arc::new(ring::default_provider()));
    let agent: Agent = Agent::config_builder()
        .http_status_as_error(false)
        .timeout_global(Some(within))
        .max_redirects(0)
        // One of the environment would be asked instead.
        .proxy(None)
        .tls_config(tls.build())
        .build()
        .into();
    let mut answer = agent.get(format!("{url}/health/ready")).call().map_err(|e| match e {
        ureq::Error::Timeout(_) => format!("no answer within {} ms", within.as_millis()),
        e => format!("{e}; does it run there? --url says where"),
    })?;
    let status = answer.status();
    let body: Value = answer.body_mut().read_json().unwrap_or_default();
    match (status.as_u16(), body["status"].as_str(), body["detail"].as_str()) {
        (200, Some("ready"), _) => Ok(()),
        (200, ..) => Err("what answers there is no Kindred".to_owned()),
        (_, _, Some(detail)) => Err(format!("{}: {detail}", status.as_u16())),
        _ => Err(format!("it answered {status}")),
    }
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
