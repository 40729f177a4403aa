//! The HTTP client of commands that ask a service.

use std::sync::Arc;
use std::time::Duration;

use tokio_rustls::rustls::crypto::ring;
use ureq::Agent;
use ureq::tls::{Certificate, RootCerts, TlsConfig};

/// How long a service may take to let a client in.
const CONNECT: Duration = Duration::from_secs(10);
/// How long a request may take in all. The service's own bound is lower and says why.
pub(crate) const REQUEST: Duration = Duration::from_secs(600);

/// A client that takes every status for an answer. For HTTPS it trusts the certificates that this system trusts, or
/// those that SSL_CERT_FILE names; reading them takes a while, so it does not where nobody needs them.
pub(crate) fn agent(for_https: bool) -> Agent {
    let trusted =
        if for_https { rustls_native_certs::load_native_certs().certs } else { Vec::new() };
    let trusted = trusted.iter().map(|certificate| Certificate::from_der(certificate).to_owned());
    let tls = TlsConfig::builder()
        .unversioned_rustls_crypto_provider(Arc::new(ring::default_provider()))
        .root_certs(RootCerts::Specific(Arc::new(trusted.collect())));
    Agent::config_builder()
        .http_status_as_error(false)
        .max_redirects(0)
        .timeout_connect(Some(CONNECT))
        .timeout_global(Some(REQUEST))
        .tls_config(tls.build())
        .build()
        .into()
}
