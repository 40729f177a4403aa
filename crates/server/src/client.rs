//! The HTTP client of commands that query a service.

mod tls;

use std::env;
use std::error::Error;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use rustls_native_certs::{load_certs_from_paths, load_native_certs};
use tokio_rustls::rustls;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::CertificateDer;
use ureq::http::Uri;
use ureq::tls::{RootCerts, TlsConfig};
use ureq::unversioned::resolver::DefaultResolver;
use ureq::unversioned::transport::{ConnectProxyConnector, Connector, TcpConnector};
use ureq::{Agent, Proxy};

use self::tls::TlsConnector;
use crate::config::{self, API_KEY_VARIABLE, ConfigError};

/// Time limit for connecting to a service.
const CONNECT: Duration = Duration::from_secs(10);
/// Time limit for a whole request. The service's own limit is lower, and its error says why.
pub const REQUEST: Duration = Duration::from_secs(600);

/// The variable that names a file of certificates to trust instead of the system's.
const CERTIFICATES_VARIABLE: &str = "SSL_CERT_FILE";

/// Why there is no client.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// A variable of the environment.
    #[error(transparent)]
    Variable(#[from] ConfigError),
    /// The API key can't be one.
    #[error("the API key has characters that no key has; `kindred api-key` makes keys")]
    Key,
    /// There are no certificates to trust.
    #[error(
        "no certificates in {}, which {variable} names: {source}; without that variable the \
         system's are trusted",
        path.display(), variable = CERTIFICATES_VARIABLE
    )]
    Certificates {
        /// The file.
        path: PathBuf,
        /// Why none of it is a certificate.
        source: Box<dyn Error + Send + Sync>,
    },
    /// TLS can't be set up.
    #[error("can't set up TLS: {0}")]
    Tls(#[from] rustls::Error),
}

/// Parses the URL of a service. The error is the URL in a form that may be shown, and what is wrong
/// with it.
pub fn service_url(text: &str) -> Result<Uri, (String, &'static str)> {
    url(text, "it must have no user and password; a key goes into KINDRED_API_KEY")
}

/// As [`service_url`], for any URL that has no query. `no_user` is what is wrong with one that has
/// a user.
pub fn url(url: &str, no_user: &'static str) -> Result<Uri, (String, &'static str)> {
    let parsed = url.parse::<Uri>();
    let authority = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = authority.split(['/', '?', '#']).next().unwrap_or_default();
    let port = authority.rsplit_once(':').map_or("", |(_, port)| port);
    let port_is_none = !port.is_empty() && !port.ends_with(']') && port.parse::<u16>().is_err();
    let parsed = parsed.ok().filter(|_| !port_is_none);
    // If the text is not a URL, a password may be anywhere before the last @.
    let searched = if parsed.is_some() { authority } else { url };
    if searched.contains('@') {
        let host = searched.rsplit('@').next().unwrap_or_default();
        return Err((format!("…@{host}"), no_user));
    }
    let bad = |reason| (url.to_owned(), reason);
    let parsed = parsed.ok_or_else(|| bad("that is no URL"))?;
    if !matches!(parsed.scheme_str(), Some("http" | "https")) || parsed.host().is_none() {
        return Err(bad("it must begin with http:// or https://"));
    }
    if parsed.query().is_some() {
        return Err(bad("it must have no query"));
    }
    if url.contains('#') {
        return Err(bad("it must have no fragment"));
    }
    Ok(parsed)
}

/// Whether the host of a URL is this machine.
pub fn is_loopback(host: &str) -> bool {
    let address = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    host.eq_ignore_ascii_case("localhost") || address.is_ok_and(|address| address.is_loopback())
}

/// The proxy from the environment, if requests to this URL go through it. Requests to this machine
/// never use a proxy.
fn proxy_to(url: &Uri) -> Option<Proxy> {
    let is_near = url.host().is_some_and(is_loopback);
    Proxy::try_from_env().filter(|proxy| !is_near && !proxy.is_no_proxy(url))
}

/// The address of the proxy, without its password.
pub fn proxy_name(url: &Uri) -> Option<String> {
    let proxy = proxy_to(url)?;
    let scheme = proxy.protocol().to_string().to_lowercase();
    Some(format!("{scheme}://{}:{}", proxy.host(), proxy.port()))
}

/// The API key to send: the given one, else the one from the environment, else none.
pub fn api_key(given: Option<&str>) -> Result<Option<String>, ClientError> {
    let key = match given {
        Some(key) => Some(key.to_owned()),
        None => config::variable(API_KEY_VARIABLE)?,
    };
    if key.as_ref().is_some_and(|key| !key.bytes().all(|byte| byte.is_ascii_graphic())) {
        return Err(ClientError::Key);
    }
    Ok(key)
}

/// A client that treats every status as an answer, not as an error, with a time limit for a whole
/// request. For HTTPS it trusts the system's certificates, or those in the file that SSL_CERT_FILE
/// names, which may be the service's own. Reading them takes a while, so they are not read for
/// plain HTTP.
///
/// # Errors
/// If SSL_CERT_FILE names a file without certificates.
pub fn agent(url: &Uri, timeout: Duration) -> Result<Agent, ClientError> {
    // For plain HTTP, no certificate is trusted: not that of an HTTPS proxy either.
    let tls = TlsConfig::builder()
        .unversioned_rustls_crypto_provider(Arc::new(ring::default_provider()))
        .root_certs(RootCerts::Specific(Arc::default()));
    let config = Agent::config_builder()
        .http_status_as_error(false)
        .max_redirects(0)
        .timeout_connect(Some(CONNECT.min(timeout)))
        .timeout_global(Some(timeout))
        .proxy(proxy_to(url))
        .tls_config(tls.build())
        .build();
    if url.scheme_str() != Some("https") {
        return Ok(config.into());
    }
    let connector =
        ().chain(ConnectProxyConnector::default())
            .chain(TcpConnector::default())
            .chain(TlsConnector::new(trusted()?)?);
    Ok(Agent::with_parts(config, connector, DefaultResolver::default()))
}

/// The error of TLS that a request ended with, if it was one.
pub fn tls_error(error: &ureq::Error) -> Option<&rustls::Error> {
    match error {
        ureq::Error::Rustls(error) => Some(error),
        ureq::Error::Io(error) => error.get_ref().and_then(|e| e.downcast_ref()),
        _ => None,
    }
}

fn trusted() -> Result<Vec<CertificateDer<'static>>, ClientError> {
    let file = env::var_os(CERTIFICATES_VARIABLE).filter(|file| !file.is_empty());
    if let Some(path) = file.map(PathBuf::from) {
        let found = load_certs_from_paths(Some(&path), None);
        if found.certs.is_empty() {
            let source = match found.errors.into_iter().next() {
                Some(error) => error.into(),
                None => "it has none in the form of PEM".into(),
            };
            return Err(ClientError::Certificates { path, source });
        }
    }
    Ok(load_native_certs().certs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_refused_for_what_would_be_lost_and_passwords_are_not_repeated() {
        for right in ["http://a", "https://[::1]:8443/models/x", "http://a/models/b@c"] {
            assert!(service_url(right).is_ok(), "{right}");
        }
        for (wrong, part) in [
            ("http://a/#x", "fragment"),
            ("http://a?x", "query"),
            ("ftp://a", "http://"),
            ("a:1", "http://"),
            ("http://a b", "no URL"),
            ("http://user:secret@a:80/x", "password"),
            ("http://user:sec/ret@a", "password"),
            ("user:secret@a", "password"),
            ("http://user:secret @a/#x", "password"),
        ] {
            let (shown, reason) = service_url(wrong).unwrap_err();
            assert!(reason.contains(part), "{wrong}: {reason}");
            assert!(!shown.contains("sec") && !shown.contains("ret"), "{shown}");
        }
    }

    #[test]
    fn this_machine_has_several_names() {
        for near in ["localhost", "LOCALHOST", "127.0.0.1", "127.8.8.8", "[::1]"] {
            assert!(is_loopback(near), "{near}");
        }
        for far in ["localhost.example.org", "10.0.0.1", "[::2]", ""] {
            assert!(!is_loopback(far), "{far}");
        }
    }
}
