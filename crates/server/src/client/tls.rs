//! TLS to a service. ureq's own, except that a trusted certificate may also be the service's own:
//! that is how `openssl req -x509` makes one, and how curl and other programs over OpenSSL take it.
//! rustls refuses it as that of an authority, and ureq takes no verifier.

use std::fmt;
use std::io::{Read, Write};
use std::sync::Arc;

use tokio_rustls::rustls::client::danger::{
    HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier,
};
use tokio_rustls::rustls::client::{WebPkiServerVerifier, verify_server_name};
use tokio_rustls::rustls::crypto::{
    CryptoProvider, WebPkiSupportedAlgorithms, ring, verify_tls12_signature, verify_tls13_signature,
};
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use tokio_rustls::rustls::server::ParsedCertificate;
use tokio_rustls::rustls::{
    CertificateError, ClientConfig, ClientConnection, DigitallySignedStruct, Error, RootCertStore,
    SignatureScheme, StreamOwned,
};
use ureq::unversioned::transport::{
    Buffers, ConnectionDetails, Connector, Either, LazyBuffers, NextTimeout, Transport,
    TransportAdapter,
};

use crate::certificate::Certificate;

/// Puts TLS around connections for `https`, at the end of a chain of connectors.
#[derive(Debug)]
pub(super) struct TlsConnector {
    config: Arc<ClientConfig>,
}

impl TlsConnector {
    /// Trusts these certificates: as those of authorities, and as a service's own.
    pub(super) fn new(trusted: Vec<CertificateDer<'static>>) -> Result<Self, Error> {
        let provider = Arc::new(ring::default_provider());
        let verifier = Verifier::new(trusted, provider.clone());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier))
            .with_no_client_auth();
        Ok(Self { config: Arc::new(config) })
    }
}

/// Verifies a service's certificate as rustls does, unless it is itself one of those trusted.
#[derive(Debug)]
struct Verifier {
    /// `None` if no certificate is trusted.
    authorities: Option<Arc<WebPkiServerVerifier>>,
    trusted: Vec<CertificateDer<'static>>,
    algorithms: WebPkiSupportedAlgorithms,
}

impl Verifier {
    fn new(trusted: Vec<CertificateDer<'static>>, provider: Arc<CryptoProvider>) -> Self {
        let algorithms = provider.signature_verification_algorithms;
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(trusted.iter().cloned());
        // Fails only without any.
        let authorities =
            WebPkiServerVerifier::builder_with_provider(roots.into(), provider).build();
        Self { authorities: authorities.ok(), trusted, algorithms }
    }

    /// Checks the time and the name of a certificate that is trusted itself.
    fn check(
        certificate: &CertificateDer<'_>,
        host: &ServerName<'_>,
        now: UnixTime,
    ) -> Result<(), Error> {
        let fields = Certificate::read(certificate).ok_or(CertificateError::BadEncoding)?;
        let now = i64::try_from(now.as_secs()).unwrap_or(i64::MAX);
        if now < fields.not_before {
            return Err(CertificateError::NotValidYet.into());
        }
        if now > fields.not_after {
            return Err(CertificateError::Expired.into());
        }
        if fields.has_alternative_names {
            return verify_server_name(&ParsedCertificate::try_from(certificate)?, host);
        }
        // The only name of older certificates.
        let is_host = |name: &str| name.eq_ignore_ascii_case(&host.to_str());
        match fields.common_name.is_some_and(is_host) {
            true => Ok(()),
            false => Err(CertificateError::NotValidForName.into()),
        }
    }
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let verified = match &self.authorities {
            Some(authorities) => authorities.verify_server_cert(
                end_entity,
                intermediates,
                server_name,
                ocsp_response,
                now,
            ),
            None => Err(CertificateError::UnknownIssuer.into()),
        };
        let is_trusted = || self.trusted.iter().any(|one| one[..] == end_entity[..]);
        if verified.is_err() && is_trusted() {
            return Self::check(end_entity, server_name, now)
                .map(|()| ServerCertVerified::assertion());
        }
        verified
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signed, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signed, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

impl<In: Transport> Connector<In> for TlsConnector {
    type Out = Either<In, TlsTransport>;

    fn connect(
        &self,
        details: &ConnectionDetails<'_>,
        chained: Option<In>,
    ) -> Result<Option<Self::Out>, ureq::Error> {
        let Some(transport) = chained else { return Ok(None) };
        if !details.needs_tls() || transport.is_tls() {
            return Ok(Some(Either::A(transport)));
        }
        let host = details.uri.host().unwrap_or_default();
        let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        let host = ServerName::try_from(host)
            .map_err(|_| ureq::Error::Tls("no certificate can have the name of this host"))?;
        let mut connection = ClientConnection::new(self.config.clone(), host)?;
        let mut socket = TransportAdapter::new(transport.boxed(), details.current_time.clone());
        socket.set_timeout(details.timeout);
        connection.complete_io(&mut socket)?;
        let (input, output) =
            (details.config.input_buffer_size(), details.config.output_buffer_size());
        let buffers = LazyBuffers::new(input, output);
        let stream = StreamOwned::new(connection, socket);
        Ok(Some(Either::B(TlsTransport { buffers, stream })))
    }
}

/// A connection with TLS.
pub(super) struct TlsTransport {
    buffers: LazyBuffers,
    stream: StreamOwned<ClientConnection, TransportAdapter>,
}

impl fmt::Debug for TlsTransport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TlsTransport").finish_non_exhaustive()
    }
}

impl Transport for TlsTransport {
    fn buffers(&mut self) -> &mut dyn Buffers {
        &mut self.buffers
    }

    fn transmit_output(&mut self, amount: usize, timeout: NextTimeout) -> Result<(), ureq::Error> {
        self.stream.get_mut().set_timeout(timeout);
        self.stream.write_all(&self.buffers.output()[..amount])?;
        Ok(())
    }

    fn await_input(&mut self, timeout: NextTimeout) -> Result<bool, ureq::Error> {
        self.stream.get_mut().set_timeout(timeout);
        let amount = self.stream.read(self.buffers.input_append_buf())?;
        self.buffers.input_appended(amount);
        Ok(amount > 0)
    }

    fn is_open(&mut self) -> bool {
        self.stream.get_mut().get_mut().is_open()
    }

    fn is_tls(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::time::Duration;

    use tokio_rustls::rustls::pki_types::pem::PemObject;

    use super::*;

    fn certificate(name: &str) -> CertificateDer<'static> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/tls");
        CertificateDer::from_pem_file(folder.join(name)).unwrap()
    }

    fn verify(trusted: &[&str], shown: &str, host: &str, now: u64) -> Result<(), Error> {
        let trusted = trusted.iter().map(|name| certificate(name)).collect();
        let verifier = Verifier::new(trusted, Arc::new(ring::default_provider()));
        let host = ServerName::try_from(host).unwrap();
        let now = UnixTime::since_unix_epoch(Duration::from_secs(now));
        verifier.verify_server_cert(&certificate(shown), &[], &host, &[], now).map(drop)
    }

    #[test]
    fn a_certificate_as_openssl_makes_it_is_taken_from_who_is_trusted_and_from_nobody_else() {
        /// In 2026, and the ends of 2019 and of 2120.
        const TIMES: [u64; 3] = [1_780_000_000, 1_577_836_799, 4_765_132_799];
        let [now, before, after] = TIMES;
        for one in ["first.pem", "default.pem"] {
            assert_eq!(verify(&[one], one, "localhost", now), Ok(()), "{one}");
            assert_eq!(verify(&["second.pem", one], one, "LOCALHOST", now), Ok(()), "{one}");
            for (trusted, host, now) in [
                (&["second.pem"][..], "localhost", now),
                (&[], "localhost", now),
                (&[one], "localhost.example", now),
                (&[one], "127.0.0.1", now),
                (&[one], "localhost", before),
                (&[one], "localhost", after),
            ] {
                let verified = verify(trusted, one, host, now);
                assert!(verified.is_err(), "{one}: {trusted:?} {host} {now}");
            }
        }
        let why = verify(&["default.pem"], "default.pem", "example.org", now).unwrap_err();
        assert_eq!(why, Error::from(CertificateError::NotValidForName));
        let why = verify(&["default.pem"], "default.pem", "localhost", after).unwrap_err();
        assert_eq!(why, Error::from(CertificateError::Expired));
    }
}
