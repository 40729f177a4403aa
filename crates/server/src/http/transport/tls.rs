//! TLS: the certificate in force, and its replacement while the service runs.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use arc_swap::ArcSwap;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::{self, PemObject};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tracing::warn;

use crate::certificate::Certificate;
use crate::config::ConfigError;

/// A certificate and its key, from two PEM files.
pub(super) struct Tls {
    certificate: PathBuf,
    private_key: PathBuf,
    /// The certificate in force has its own session store, so that no session of another
    /// certificate is resumed.
    in_force: ArcSwap<InForce>,
}

struct InForce {
    chain: Vec<CertificateDer<'static>>,
    config: Arc<ServerConfig>,
    /// Until when the service's own certificate, the first of the chain, is valid.
    expiry: Option<i64>,
}

impl InForce {
    /// Logs a warning if the certificate is no longer valid, so that clients refuse it.
    fn warn_if_expired(&self, path: &Path) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        if self.expiry.is_some_and(|expiry| expiry < now as i64) {
            warn!("the certificate in {} has expired: renew it, and reload", path.display());
        }
    }
}

impl Tls {
    /// Reads the certificate and its key from these files; `None` if neither file is named.
    pub(super) fn open(
        certificate: &Path,
        private_key: &Path,
    ) -> Result<Option<Self>, ConfigError> {
        let is_none = |path: &Path| path.as_os_str().is_empty();
        let (has, lacks) = match (is_none(certificate), is_none(private_key)) {
            (true, true) => return Ok(None),
            (false, false) => {
                let (certificate, private_key) = (certificate.to_owned(), private_key.to_owned());
                let read = read(&certificate, &private_key)?;
                read.warn_if_expired(&certificate);
                let in_force = ArcSwap::from_pointee(read);
                return Ok(Some(Self { certificate, private_key, in_force }));
            }
            (false, true) => ("tls_certificate", "tls_private_key"),
            (true, false) => ("tls_private_key", "tls_certificate"),
        };
        Err(ConfigError::Half { has, lacks })
    }

    /// The configuration for a new connection.
    pub(super) fn config(&self) -> Arc<ServerConfig> {
        self.in_force.load().config.clone()
    }

    /// Until when the certificate in force is valid, in seconds since 1970. `None` if it does not
    /// say so in a form that can be read.
    pub(super) fn expiry(&self) -> Option<i64> {
        self.in_force.load().expiry
    }

    /// Reads the files again. The new certificate applies once the returned function is called;
    /// until then the old one stays.
    pub(super) fn reload(&self) -> Result<impl FnOnce() -> String + '_, ConfigError> {
        let new = Arc::new(read(&self.certificate, &self.private_key)?);
        Ok(move || {
            new.warn_if_expired(&self.certificate);
            let old = self.in_force.swap(new.clone());
            let path = self.certificate.display();
            let same = if old.chain == new.chain {
                "the same certificate as before"
            } else {
                "a new certificate"
            };
            format!("{path}: {same}, for new connections")
        })
    }
}

fn read(certificate: &Path, private_key: &Path) -> Result<InForce, ConfigError> {
    let bad = |setting: &str, path: &Path, reason: String, source| ConfigError::BadFile {
        file: format!("{}, which the setting `{setting}` names", path.display()),
        reason,
        source,
    };
    let unreadable = |setting, path: &Path, error: pem::Error| match error {
        pem::Error::Io(source) => {
            ConfigError::UnreadableFile { setting, path: path.to_owned(), source }
        }
        pem::Error::NoItemsFound if setting == "tls_private_key" => bad(
            setting,
            path,
            "it has no `-----BEGIN PRIVATE KEY-----` (PKCS #8, PKCS #1 or SEC 1, not encrypted)"
                .into(),
            None,
        ),
        other => bad(setting, path, format!("it is not PEM: {other:?}"), Some(other.into())),
    };
    let chain = CertificateDer::pem_file_iter(certificate)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|e| unreadable("tls_certificate", certificate, e))?;
    if chain.is_empty() {
        let reason = "it has no `-----BEGIN CERTIFICATE-----`; give the certificate, then those that vouch for it";
        return Err(bad("tls_certificate", certificate, reason.into(), None));
    }
    let key = PrivateKeyDer::from_pem_file(private_key)
        .map_err(|e| unreadable("tls_private_key", private_key, e))?;
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .and_then(|builder| builder.with_no_client_auth().with_single_cert(chain.clone(), key))
        .map_err(|e| {
            let with = private_key.display();
            // webpki's error, which rustls does not name.
            let cure = match format!("{e:?}").contains("UnsupportedCertVersion") {
                true => "; it is of version 1: make one of version 3, as `openssl req -x509` does",
                false => "",
            };
            let reason = format!("it can't be used with the key in {with}: {e}{cure}");
            bad("tls_certificate", certificate, reason, Some(e.into()))
        })?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    let expiry = Certificate::read(&chain[0]).map(|certificate| certificate.not_after);
    Ok(InForce { chain, config: Arc::new(config), expiry })
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Files {
        _folder: tempfile::TempDir,
        certificate: PathBuf,
        private_key: PathBuf,
    }

    impl Files {
        fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            let (certificate, private_key) =
                (folder.path().join("cert.pem"), folder.path().join("key.pem"));
            let files = Self { _folder: folder, certificate, private_key };
            files.write("first");
            files
        }

        /// Writes the `first` or the `second` certificate of tests/tls with its key.
        fn write(&self, name: &str) {
            let pairs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/tls");
            std::fs::copy(pairs.join(format!("{name}.pem")), &self.certificate).unwrap();
            std::fs::copy(pairs.join(format!("{name}-key.pem")), &self.private_key).unwrap();
        }

        fn open(&self) -> Result<Option<Tls>, ConfigError> {
            Tls::open(&self.certificate, &self.private_key)
        }
    }

    #[test]
    fn both_files_or_neither() {
        assert!(Tls::open(Path::new(""), Path::new("")).unwrap().is_none());
        let files = Files::new();
        for (certificate, key, lacks) in [
            (files.certificate.as_path(), Path::new(""), "tls_private_key"),
            (Path::new(""), files.private_key.as_path(), "tls_certificate"),
        ] {
            let said = Tls::open(certificate, key).err().unwrap().to_string();
            assert!(said.contains(lacks), "{said}");
        }
        assert!(files.open().unwrap().is_some());
    }

    #[test]
    fn bad_files_are_errors_that_name_them_and_leave_the_old_ones_in_force() {
        let files = Files::new();
        let tls = files.open().unwrap().unwrap();
        let config = tls.config();
        let good = (
            std::fs::read(&files.certificate).unwrap(),
            std::fs::read(&files.private_key).unwrap(),
        );
        let others = Files::new();
        others.write("second");
        let other_key = std::fs::read(&others.private_key).unwrap();
        for (certificate, key, named, said) in [
            (&b""[..], &good.1[..], "cert.pem", "BEGIN CERTIFICATE"),
            (
                &b"-----BEGIN CERTIFICATE-----\n?\n-----END CERTIFICATE-----\n"[..],
                &good.1,
                "cert.pem",
                "PEM",
            ),
            (
                &b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"[..],
                &good.1,
                "cert.pem",
                "can't be used",
            ),
            (&good.1, &good.1, "cert.pem", "BEGIN CERTIFICATE"),
            (&good.0, &b""[..], "key.pem", "BEGIN PRIVATE KEY"),
            (&good.0, &good.0, "key.pem", "BEGIN PRIVATE KEY"),
            (&good.0, &other_key, "cert.pem", "key.pem"),
        ] {
            std::fs::write(&files.certificate, certificate).unwrap();
            std::fs::write(&files.private_key, key).unwrap();
            let error = tls.reload().err().unwrap_or_else(|| panic!("{named} {said}")).to_string();
            assert!(error.contains(named) && error.contains(said), "{error}");
            assert!(Arc::ptr_eq(&tls.config(), &config), "{error}");
        }
        std::fs::remove_file(&files.private_key).unwrap();
        assert!(tls.reload().err().unwrap().to_string().contains("key.pem"));
        files.write("second");
        assert_eq!(tls.expiry(), Some(4_733_510_400), "the end of 2119");
        assert!(tls.reload().unwrap()().contains("a new certificate"));
        assert!(!Arc::ptr_eq(&tls.config(), &config));
        assert!(tls.reload().unwrap()().contains("the same certificate"));
    }
}
