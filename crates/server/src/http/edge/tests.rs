//! Tests of reloading keys and certificates, over connections.

use std::convert::Infallible;
use std::fs;
use std::path::{Path, PathBuf};

use axum::body::Body;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};
use tower::service_fn;

use super::*;
use crate::http::transport::{self, HttpThreads};

struct Files {
    _folder: tempfile::TempDir,
    certificate: PathBuf,
    private_key: PathBuf,
    keys: PathBuf,
}

impl Files {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str| folder.path().join(name);
        let (certificate, private_key, keys) = (file("cert.pem"), file("key.pem"), file("keys"));
        let files = Self { _folder: folder, certificate, private_key, keys };
        files.write_certificate("first");
        files.write_key("a");
        files
    }

    /// Writes the `first` or the `second` certificate of tests/tls with its key. Returns it as PEM.
    fn write_certificate(&self, name: &str) -> String {
        let pairs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/tls");
        fs::copy(pairs.join(format!("{name}.pem")), &self.certificate).unwrap();
        fs::copy(pairs.join(format!("{name}-key.pem")), &self.private_key).unwrap();
        fs::read_to_string(&self.certificate).unwrap()
    }

    fn write_key(&self, name: &str) -> String {
        let (key, line) = keys::make(name, keys::Rights::Ask).unwrap();
        fs::write(&self.keys, line).unwrap();
        key
    }

    fn edge(&self) -> Arc<Edge> {
        Edge::new(&Config {
            tls_certificate: self.certificate.clone(),
            tls_private_key: self.private_key.clone(),
            api_keys_file: self.keys.clone(),
            ..Config::defaults()
        })
        .unwrap()
    }
}

async fn connect(address: &str, certificate: &str) -> std::io::Result<TlsStream<TcpStream>> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap()).unwrap();
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let socket = TcpStream::connect(address).await?;
    TlsConnector::from(Arc::new(config))
        .connect(ServerName::try_from("localhost").unwrap(), socket)
        .await
}

async fn answer(stream: &mut TlsStream<TcpStream>) -> String {
    stream.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n").await.unwrap();
    let mut buffer = [0; 1024];
    let length = stream.read(&mut buffer).await.unwrap();
    String::from_utf8_lossy(&buffer[..length]).into_owned()
}

#[tokio::test]
async fn new_connections_see_a_new_certificate_and_old_ones_go_on() {
    let files = Files::new();
    let first = files.write_certificate("first");
    let edge = files.edge();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let (stop, stopped) = oneshot::channel::<()>();
    let served = edge.clone();
    let server = tokio::spawn(async move {
        let threads = HttpThreads::start(1).unwrap();
        let service = service_fn(|_: Request| async {
            Ok::<_, Infallible>(Response::new(Body::from("done")))
        });
        transport::serve(listener, &threads, served.transport(), |_| service, async {
            stopped.await.unwrap();
        })
        .await;
    });
    let mut old = connect(&address, &first).await.unwrap();
    assert!(answer(&mut old).await.ends_with("done"));

    let second = files.write_certificate("second");
    assert!(connect(&address, &second).await.is_err(), "not before the reload");
    let said = edge.reload().unwrap();
    assert!(said.iter().any(|line| line.contains("a new certificate")), "{said:?}");
    let mut new = connect(&address, &second).await.unwrap();
    assert!(connect(&address, &first).await.is_err());
    for stream in [&mut old, &mut new] {
        assert!(answer(stream).await.ends_with("done"));
    }

    fs::write(&files.private_key, "nothing").unwrap();
    assert!(edge.reload().unwrap_err().to_string().contains("key.pem"));
    let mut still = connect(&address, &second).await.unwrap();
    assert!(answer(&mut still).await.ends_with("done"));
    drop((old, new, still));
    stop.send(()).unwrap();
    server.await.unwrap();
}

#[test]
fn a_reload_changes_everything_or_nothing() {
    let files = Files::new();
    let edge = files.edge();
    let opens = |key: &str| {
        let request = axum::http::Request::get("/nearest")
            .header("host", "a")
            .header("authorization", format!("Bearer {key}"));
        edge.admit(&mut request.body(Body::empty()).unwrap()).is_ok()
    };
    let key = files.write_key("b");
    fs::write(&files.certificate, "nothing").unwrap();
    let config = edge.transport().tls().unwrap();
    assert!(edge.reload().is_err());
    assert!(!opens(&key), "the certificate is bad, so the good file of keys waits too");
    files.write_certificate("second");
    fs::write(&files.keys, "nothing").unwrap();
    assert!(edge.reload().is_err());
    assert!(Arc::ptr_eq(&edge.transport().tls().unwrap(), &config));
    let key = files.write_key("c");
    assert_eq!(edge.reload().unwrap().len(), 2);
    assert!(opens(&key) && !Arc::ptr_eq(&edge.transport().tls().unwrap(), &config));
    let reloads = edge.reloads();
    let failures = Reloadable::ALL.map(|of| (of, reloads.failures(of)));
    let once = [(Reloadable::Certificate, 1), (Reloadable::Keys, 1)];
    assert_eq!(failures[..2], [(Reloadable::Model, 0), (Reloadable::Head, 0)]);
    assert_eq!(failures[2..], once);
    assert_eq!(reloads.certificate_expiry(), Some(4_733_510_400));
    assert_eq!(Edge::new(&Config::defaults()).unwrap().reloads().certificate_expiry(), None);
}
