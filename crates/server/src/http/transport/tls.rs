//! TLS: the certificate in force, and its replacement while the service runs.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use arc_swap::ArcSwap;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::{self, PemObject};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{self, ServerConfig};
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
}

impl InForce {
    /// The service's own certificate, the first of the chain. `None` if its form can't be read.
    fn certificate(&self) -> Option<Certificate<'_>> {
        Certificate::read(&self.chain[0])
    }

    /// Logs a warning if the certificate is not valid now, so that clients refuse it.
    fn warn_if_not_valid(&self, path: &Path) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let fault = self.certificate().and_then(|certificate| fault_at(&certificate, now as i64));
        if let Some(fault) = fault {
            warn!("the certificate in {} {fault}", path.display());
        }
    }
}

/// Why clients refuse a certificate at this time, in seconds since 1970; `None` if it is valid.
fn fault_at(certificate: &Certificate<'_>, now: i64) -> Option<&'static str> {
    if certificate.not_after < now {
        return Some("has expired: renew it, and reload");
    }
    let cure = "is not valid yet: check from when it is valid, and the clock of this machine";
    (certificate.not_before > now).then_some(cure)
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
                read.warn_if_not_valid(&certificate);
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
        self.in_force.load().certificate().map(|certificate| certificate.not_after)
    }

    /// Reads the files again. The new certificate applies once the returned function is called;
    /// until then the old one stays.
    pub(super) fn reload(&self) -> Result<impl FnOnce() -> String + '_, ConfigError> {
        let new = Arc::new(read(&self.certificate, &self.private_key)?);
        Ok(move || {
            new.warn_if_not_valid(&self.certificate);
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
    const CERTIFICATE: &str = "tls_certificate";
    const KEY: &str = "tls_private_key";
    let text = content(CERTIFICATE, certificate)?;
    let chain = CertificateDer::pem_slice_iter(&text)
        .collect::<Result<Vec<_>, _>>()
        .map_err(|e| bad(CERTIFICATE, certificate, not_pem(&e), None))?;
    if chain.is_empty() {
        let reason = no_certificate(&text, certificate);
        return Err(bad(CERTIFICATE, certificate, reason, None));
    }
    let text = content(KEY, private_key)?;
    let key = PrivateKeyDer::from_pem_slice(&text).map_err(|e| {
        let is_encrypted = text.windows(9).any(|part| part == b"ENCRYPTED");
        let reason = match &e {
            _ if is_encrypted => {
                let file = private_key.display();
                format!("it is encrypted; decrypt it: openssl pkey -in {file} -out NEW")
            }
            pem::Error::NoItemsFound => {
                let cure = match is_binary(&text) {
                    true => as_pem("pkey", private_key),
                    false => "give a key in PKCS #8, PKCS #1 or SEC 1, not encrypted".to_owned(),
                };
                format!("it has no `-----BEGIN PRIVATE KEY-----`; {cure}")
            }
            e => not_pem(e),
        };
        // Not with its source, which may have the key.
        bad(KEY, private_key, reason, None)
    })?;
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .and_then(|builder| builder.with_no_client_auth().with_single_cert(chain.clone(), key))
        .map_err(|e| {
            // Only a key that can't be parsed is so general an error.
            if matches!(e, rustls::Error::General(_)) {
                let reason = "it is damaged, or of a kind that can't be used: take RSA of \
                              2048 to 4096 bits, ECDSA over P-256 or P-384, or Ed25519";
                return bad(KEY, private_key, reason.into(), Some(e.into()));
            }
            let with = private_key.display();
            let reason = match &e {
                rustls::Error::InconsistentKeys(_) => format!(
                    "its first certificate is not that of the key in {with}; give the certificate \
                     of this key first, then those that vouch for it"
                ),
                // webpki's error, which rustls does not name.
                e if format!("{e:?}").contains("UnsupportedCertVersion") => format!(
                    "it can't be used with the key in {with}: {e}; it is of version 1: make one of \
                     version 3, as `openssl req -x509` does"
                ),
                e => format!("it can't be used with the key in {with}: {e}"),
            };
            bad(CERTIFICATE, certificate, reason, Some(e.into()))
        })?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(InForce { chain, config: Arc::new(config) })
}

/// The fault of a file without a certificate in PEM, and the cure.
fn no_certificate(content: &[u8], path: &Path) -> String {
    let has = |part: &[u8]| content.windows(part.len()).any(|found| found == part);
    let cure = if is_binary(content) {
        as_pem("x509", path)
    } else if has(b"PRIVATE KEY-----") {
        "it is a private key, for the setting `tls_private_key`".to_owned()
    } else if has(b"CERTIFICATE REQUEST-----") {
        "it is a request, of which an authority makes the certificate".to_owned()
    } else {
        "give the certificate, then those that vouch for it".to_owned()
    };
    format!("it has no `-----BEGIN CERTIFICATE-----`; {cure}")
}

/// Whether this is DER, of which certificates, keys and PKCS #12 consist if they are not text.
fn is_binary(content: &[u8]) -> bool {
    const SEQUENCE: u8 = 0x30;
    content.first() == Some(&SEQUENCE) && std::str::from_utf8(content).is_err()
}

/// How to convert a binary file with this command of OpenSSL.
fn as_pem(command: &str, path: &Path) -> String {
    let file = path.display();
    format!(
        "it is binary; convert DER by openssl {command} -inform der -in {file} -out NEW, and PKCS \
         #12 by openssl pkcs12 -nodes -in {file} -out NEW"
    )
}

/// The content of a file, without the byte order mark that some editors write before it.
fn content(setting: &'static str, path: &Path) -> Result<Vec<u8>, ConfigError> {
    let mut content = std::fs::read(path).map_err(|source| ConfigError::UnreadableFile {
        setting,
        path: path.to_owned(),
        source,
    })?;
    if content.starts_with(b"\xef\xbb\xbf") {
        content.drain(..3);
    }
    Ok(content)
}

/// The fault of a text that is not PEM. It repeats no line, which may have the key.
fn not_pem(error: &pem::Error) -> String {
    match error {
        pem::Error::MissingSectionEnd { end_marker } if is_label(end_marker) => {
            let label = String::from_utf8_lossy(end_marker);
            format!("it is not whole PEM: `-----END {label}-----` is missing; copy it again")
        }
        pem::Error::MissingSectionEnd { .. } | pem::Error::IllegalSectionStart { .. } => {
            "it is not PEM: BEGIN and END must stand in lines of their own; copy it line by line"
                .to_owned()
        }
        pem::Error::Base64Decode(_) => {
            "it is not PEM: the lines between BEGIN and END are not base64; copy it again"
                .to_owned()
        }
        other => format!("it is not PEM: {other}"),
    }
}

/// Whether these bytes are a label such as `PRIVATE KEY`, rather than a whole file in one line.
fn is_label(bytes: &[u8]) -> bool {
    bytes.len() < 40 && bytes.iter().all(|byte| byte.is_ascii_uppercase() || *byte == b' ')
}

fn bad(
    setting: &str,
    path: &Path,
    reason: String,
    source: Option<Box<dyn Error + Send + Sync>>,
) -> ConfigError {
    let file = format!("{}, which the setting `{setting}` names", path.display());
    ConfigError::BadFile { file, reason, source }
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
    fn clients_refuse_a_certificate_before_and_after_its_time() {
        let dated = |not_before, not_after| Certificate {
            not_before,
            not_after,
            common_name: None,
            has_alternative_names: true,
        };
        for (certificate, said) in [
            (dated(1, 99), Some("has expired")),
            (dated(101, 200), Some("is not valid yet")),
            (dated(100, 100), None),
        ] {
            let fault = fault_at(&certificate, 100);
            assert_eq!(fault.is_some(), said.is_some(), "{fault:?}");
            assert!(said.is_none_or(|said| fault.unwrap().starts_with(said)), "{fault:?}");
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
            (&good.1, &good.1, "cert.pem", "it is a private key, for the setting"),
            (&b"0\x82\x03\x9d"[..], &good.1, "cert.pem", "by openssl x509 -inform der -in"),
            (&good.0, &b"0\x82\x03\x9d"[..], "key.pem", "by openssl pkey -inform der -in"),
            (
                &b"-----BEGIN CERTIFICATE REQUEST-----\nAAAA\n\
                  -----END CERTIFICATE REQUEST-----\n"[..],
                &good.1,
                "cert.pem",
                "it is a request",
            ),
            (&good.0, &b""[..], "key.pem", "BEGIN PRIVATE KEY"),
            (&good.0, &good.0, "key.pem", "BEGIN PRIVATE KEY"),
            (&good.0, &other_key, "cert.pem", "not that of the key in"),
            (&good.0, &other_key, "cert.pem", "key.pem"),
            (
                &b"-----BEGIN CERTIFICATE-----\nAAAA\n"[..],
                &good.1,
                "cert.pem",
                "`-----END CERTIFICATE-----` is missing",
            ),
            (
                &good.0,
                &b"-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n\
                  -----END ENCRYPTED PRIVATE KEY-----\n"[..],
                "key.pem",
                "it is encrypted; decrypt it: openssl pkey -in",
            ),
            (
                &good.0,
                &b"-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n\nAAAA\n\
                  -----END RSA PRIVATE KEY-----\n"[..],
                "key.pem",
                "it is encrypted",
            ),
            (
                &good.0,
                &b"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"[..],
                "key.pem",
                "take RSA of 2048 to 4096 bits",
            ),
        ] {
            std::fs::write(&files.certificate, certificate).unwrap();
            std::fs::write(&files.private_key, key).unwrap();
            let error = tls.reload().err().unwrap_or_else(|| panic!("{named} {said}")).to_string();
            assert!(error.contains(named) && error.contains(said), "{error}");
            assert!(Arc::ptr_eq(&tls.config(), &config), "{error}");
        }
        // A key whose line breaks are lost is not repeated, neither as text nor as numbers.
        std::fs::write(&files.certificate, &good.0).unwrap();
        let whole = String::from_utf8(good.1.clone()).unwrap();
        let whole = &whole[whole.find("-----BEGIN").unwrap()..];
        for line in [whole.replace('\n', " "), whole.replacen("-----\n", "-----", 1)] {
            std::fs::write(&files.private_key, line).unwrap();
            let error = tls.reload().err().unwrap().to_string();
            assert!(error.contains("must stand in lines of their own"), "{error}");
            assert!(error.len() < 400, "{error}");
        }
        for (path, content) in [(&files.certificate, &good.0), (&files.private_key, &good.1)] {
            std::fs::write(path, [&b"\xef\xbb\xbf"[..], &content[..]].concat()).unwrap();
        }
        assert!(tls.reload().is_ok(), "a byte order mark is no fault");
        std::fs::remove_file(&files.private_key).unwrap();
        assert!(tls.reload().err().unwrap().to_string().contains("key.pem"));
        files.write("second");
        assert_eq!(tls.expiry(), Some(4_733_510_400), "the end of 2119");
        assert!(tls.reload().unwrap()().contains("a new certificate"));
        assert!(!Arc::ptr_eq(&tls.config(), &config));
        assert!(tls.reload().unwrap()().contains("the same certificate"));
    }
}
