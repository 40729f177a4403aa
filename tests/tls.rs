//! TLS of the real program, with the certificates that tests/tls/make-certificates made.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::support::{self, kindred};
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

type Stream = StreamOwned<ClientConnection, TcpStream>;

/// A service with a certificate for localhost.
struct Secure {
    child: Child,
    address: String,
    folder: tempfile::TempDir,
}

impl Secure {
    fn start(arguments: &[&str]) -> Self {
        Self::start_with("first", arguments)
    }

    /// With the certificate of this name.
    fn start_with(certificate: &str, arguments: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        write_pair(&folder, certificate);
        let (certificate, key) = (folder.path().join("cert.pem"), folder.path().join("key.pem"));
        let mut command = kindred(&["serve", "--listen", "127.0.0.1:0", "--log-level", "info"]);
        command.arg("--cache-dir").arg(support::cache());
        command.arg("--tls-certificate").arg(certificate).arg("--tls-private-key").arg(key);
        let mut child =
            command.args(arguments).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let mut welcome = String::new();
        while !welcome.contains("Ctrl-C") {
            assert!(output.read_line(&mut welcome).unwrap() > 0, "{welcome}");
        }
        assert!(!welcome.contains("http://"), "{welcome}");
        let address =
            welcome.split("https://").nth(1).unwrap().split_whitespace().next().unwrap().to_owned();
        Self { child, address, folder }
    }

    fn certificate(&self) -> PathBuf {
        self.folder.path().join("cert.pem")
    }

    /// A client that trusts this certificate and nothing else, after its handshake.
    fn connect(&self, certificate: &[u8], protocols: &[&str]) -> std::io::Result<Stream> {
        let mut config = client_config(certificate);
        config.alpn_protocols = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
        let name = ServerName::try_from("localhost").unwrap();
        let mut client = ClientConnection::new(Arc::new(config), name).unwrap();
        let mut socket = self.plain();
        client.complete_io(&mut socket)?;
        Ok(StreamOwned::new(client, socket))
    }

    /// A connection without TLS.
    fn plain(&self) -> TcpStream {
        let socket = TcpStream::connect(&self.address).unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        socket
    }

    /// That a new client is served with the certificate that is in the file now.
    fn check_serves(&self) {
        let mut stream =
            self.connect(&fs::read(self.certificate()).unwrap(), &["http/1.1"]).unwrap();
        assert!(ask(&mut stream).starts_with("HTTP/1.1 200 "));
    }
}

impl Drop for Secure {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A certificate for localhost, signed by itself, and its key, as PEM: the `first` or the `second`;
/// or the `default` of openssl, which is that of an authority, without alternative names.
pub(crate) fn pair(name: &str) -> (String, String) {
    let read = |file: String| fs::read_to_string(support::top().join("tests/tls").join(file));
    (read(format!("{name}.pem")).unwrap(), read(format!("{name}-key.pem")).unwrap())
}

fn write_pair(folder: &tempfile::TempDir, name: &str) {
    let (certificate, key) = pair(name);
    fs::write(folder.path().join("cert.pem"), certificate).unwrap();
    fs::write(folder.path().join("key.pem"), key).unwrap();
}

pub(crate) fn client_config(certificate: &[u8]) -> ClientConfig {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(certificate).unwrap()).unwrap();
    ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth()
}

/// Asks on a connection that stays open, and reads the answer.
fn ask(stream: &mut Stream) -> String {
    stream.write_all(b"GET /nearest?word=frog HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    let (mut answer, mut buffer) = (String::new(), [0; 4096]);
    while !answer.ends_with("]}") {
        let length = stream.read(&mut buffer).unwrap();
        assert!(length > 0, "{answer}");
        answer.push_str(std::str::from_utf8(&buffer[..length]).unwrap());
    }
    answer
}

#[test]
fn requests_are_answered_over_tls_and_only_to_who_trusts_the_certificate() {
    let service = Secure::start(&[]);
    let certificate = fs::read(service.certificate()).unwrap();
    let mut stream = service.connect(&certificate, &["http/1.1"]).unwrap();
    for _ in 0..3 {
        assert!(ask(&mut stream).contains("\"frogs\""));
    }
    let (other, _) = pair("second");
    assert!(service.connect(other.as_bytes(), &["http/1.1"]).is_err());
}

#[test]
fn http_2_is_offered_over_tls_and_spoken() {
    let service = Secure::start(&[]);
    let certificate = fs::read(service.certificate()).unwrap();
    for (offered, taken) in [
        (&["h2", "http/1.1"][..], Some(&b"h2"[..])),
        (&["http/1.1"], Some(b"http/1.1")),
        (&[], None),
    ] {
        let stream = service.connect(&certificate, offered).unwrap();
        assert_eq!(stream.conn.alpn_protocol(), taken);
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let mut config = client_config(&certificate);
        config.alpn_protocols = vec![b"h2".to_vec()];
        let socket = tokio::net::TcpStream::connect(&service.address).await.unwrap();
        let connector = tokio_rustls::TlsConnector::from(Arc::new(config));
        let stream =
            connector.connect(ServerName::try_from("localhost").unwrap(), socket).await.unwrap();
        http_2(stream, "https://localhost").await;
        // Without TLS it would be by prior knowledge; here it is not even HTTP.
    });
}

#[test]
fn http_2_is_spoken_without_tls_to_who_begins_with_it() {
    let service = support::Service::with_default_model();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let socket = tokio::net::TcpStream::connect(&service.address).await.unwrap();
        http_2(socket, "http://localhost").await;
    });
}

/// Many requests at once on one connection.
async fn http_2<S>(stream: S, origin: &str)
where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + 'static,
{
    use hyper_util::rt::{TokioExecutor, TokioIo};
    let handshake =
        hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream));
    let (sender, connection) = handshake.await.unwrap();
    tokio::spawn(connection);
    let mut asked = Vec::new();
    for _ in 0..50 {
        let mut sender = sender.clone();
        let uri = format!("{origin}/nearest?word=frog");
        asked.push(tokio::spawn(async move {
            sender.ready().await.unwrap();
            let request = hyper::Request::get(uri).body(axum::body::Body::empty()).unwrap();
            let answer = sender.send_request(request).await.unwrap();
            assert_eq!(answer.status(), 200);
            assert_eq!(answer.version(), hyper::Version::HTTP_2);
            let body =
                axum::body::to_bytes(axum::body::Body::new(answer.into_body()), 1 << 20).await;
            assert!(String::from_utf8(body.unwrap().to_vec()).unwrap().contains("\"frogs\""));
        }));
    }
    for answer in asked {
        answer.await.unwrap();
    }
}

#[test]
fn what_is_no_tls_is_closed_and_hurts_nobody() {
    let service = Secure::start(&[]);
    for sent in [
        &b"GET /health/live HTTP/1.1\r\nHost: localhost\r\n\r\n"[..],
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        &[0; 5000],
    ] {
        let mut socket = service.plain();
        let begun = Instant::now();
        socket.write_all(sent).unwrap();
        let mut said = Vec::new();
        let _ = socket.read_to_end(&mut said);
        assert!(begun.elapsed() < Duration::from_secs(5), "it hangs");
        assert!(!said.starts_with(b"HTTP"), "{}", String::from_utf8_lossy(&said));
        service.check_serves();
    }
}

#[test]
fn a_handshake_that_stalls_is_closed_and_keeps_nobody_waiting() {
    let service = Secure::start(&["--header-read-timeout-ms", "500", "--http-threads", "1"]);
    let mut silent = service.plain();
    // The first bytes of a greeting that says it is longer.
    let mut half = service.plain();
    half.write_all(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03").unwrap();
    // Shakes hands, and then says nothing.
    let certificate = fs::read(service.certificate()).unwrap();
    let mut mute = service.connect(&certificate, &["http/1.1"]).unwrap();
    let begun = Instant::now();
    service.check_serves();
    assert!(begun.elapsed() < Duration::from_millis(400), "others wait: {:?}", begun.elapsed());
    for socket in [&mut silent, &mut half, &mut mute.sock] {
        let _ = socket.read_to_end(&mut Vec::new()).expect("it is closed");
    }
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    service.check_serves();
}

#[test]
fn bad_certificates_stop_the_start_with_the_file_and_the_cure() {
    let folder = tempfile::tempdir().unwrap();
    write_pair(&folder, "first");
    let (certificate, key) = (folder.path().join("cert.pem"), folder.path().join("key.pem"));
    // A key of another certificate.
    fs::write(&key, pair("second").1).unwrap();
    let mut command = kindred(&["serve", "--listen", "127.0.0.1:0"]);
    command.arg("--tls-certificate").arg(&certificate).arg("--tls-private-key").arg(&key);
    let output = command.output().unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success(), "{error}");
    assert!(error.contains("cert.pem") && error.contains("key.pem"), "{error}");
}

#[test]
fn health_is_asked_over_tls_too() {
    for certificate in ["first", "default"] {
        let service = Secure::start_with(certificate, &[]);
        let health = |scheme: &str| {
            let url = format!("{scheme}://{}", service.address);
            kindred(&["health", "--url", &url]).output().unwrap().status.code()
        };
        assert_eq!((health("https"), health("http")), (Some(0), Some(1)), "{certificate}");
    }
}
