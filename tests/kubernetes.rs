//! What the Helm chart relies on: files of Secrets that are replaced by links, and an end of the
//! process that loses no request.

use std::fs;
use std::io::Write;
use std::net::TcpStream;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use tokio_rustls::rustls::ClientConnection;
use tokio_rustls::rustls::pki_types::ServerName;

use crate::support::{Reply, Service, Stops, TINY, api_key, kindred, prepared, read_reply};
use crate::tls::{client_config, pair};

/// A volume as Kubernetes makes it of a Secret: files are links into `..data`, which is a link to
/// the folder of one version.
struct Volume {
    folder: tempfile::TempDir,
    version: usize,
}

impl Volume {
    fn new(files: &[(&str, &str)]) -> Self {
        let mut volume = Self { folder: tempfile::tempdir().unwrap(), version: 0 };
        volume.replace(files);
        for (name, _) in files {
            symlink(Path::new("..data").join(name), volume.path(name)).unwrap();
        }
        volume
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Replaces all files in one step, as the kubelet does; then the older version is gone.
    fn replace(&mut self, files: &[(&str, &str)]) {
        let old = self.path(&format!("..version{}", self.version));
        self.version += 1;
        let name = format!("..version{}", self.version);
        fs::create_dir(self.path(&name)).unwrap();
        for (file, text) in files {
            fs::write(self.path(&name).join(file), text).unwrap();
        }
        symlink(&name, self.path("..data_tmp")).unwrap();
        fs::rename(self.path("..data_tmp"), self.path("..data")).unwrap();
        let _ = fs::remove_dir_all(old);
    }
}

/// Waits until it is true; the files are looked at every 50 ms.
fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(30);
    while !is_so() {
        assert!(Instant::now() < deadline, "not within 30 s: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[test]
fn keys_of_a_secret_that_changes_are_in_force_without_a_signal() {
    let (_place, model) = prepared(TINY);
    let ((first, line_of_first), (second, line_of_second)) = (api_key(&["a"]), api_key(&["b"]));
    let mut volume = Volume::new(&[("keys", &line_of_first)]);
    let file = volume.path("keys");
    let serve = |interval: &str| {
        let keys = ["--api-keys-file", text(&file), "--watch-files-ms", interval];
        Service::start(&[&["--model", text(&model)], &keys[..]].concat())
    };
    let (mut watching, mut other) = (serve("50"), serve("0"));
    let mut status = |key: &str| {
        watching.key = Some(key.to_owned());
        watching.get("/model").status
    };
    assert_eq!((status(&first), status(&second)), (200, 401));

    volume.replace(&[("keys", &format!("{line_of_first}\n{line_of_second}"))]);
    eventually("the second key is valid", || status(&second) == 200);
    assert_eq!(status(&first), 200, "both are");

    // A line that can't be used changes nothing, and is no end of it.
    volume.replace(&[("keys", "no key")]);
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!((status(&first), status(&second)), (200, 200));

    volume.replace(&[("keys", &line_of_second)]);
    eventually("the first key is no longer valid", || status(&first) == 401);
    assert_eq!(status(&second), 200);

    // Without the setting, only a reload reads them.
    other.key = Some(second);
    assert_eq!(other.get("/model").status, 401);
    other.signal("HUP");
    eventually("the signal is handled", || other.get("/model").status == 200);
}

#[test]
fn a_certificate_of_a_secret_that_changes_is_served_without_a_signal() {
    let ((first, first_key), (second, second_key)) = (pair("first"), pair("second"));
    let mut volume = Volume::new(&[("tls.crt", &first), ("tls.key", &first_key)]);
    let (_place, model) = prepared(TINY);
    let mut command = kindred(&["serve", "--listen", "127.0.0.1:0", "--watch-files-ms", "50"]);
    command.arg("--model").arg(&model).arg("--tls-certificate").arg(volume.path("tls.crt"));
    command.arg("--tls-private-key").arg(volume.path("tls.key"));
    let service = Service::spawn(command);
    let is_served = |certificate: &str| {
        let name = ServerName::try_from("localhost").unwrap();
        let config = Arc::new(client_config(certificate.as_bytes()));
        let mut client = ClientConnection::new(config, name).unwrap();
        client.complete_io(&mut service.connect()).is_ok()
    };
    assert!(is_served(&first) && !is_served(&second));
    volume.replace(&[("tls.crt", &second), ("tls.key", &second_key)]);
    eventually("the second certificate is served", || is_served(&second));
    assert!(!is_served(&first));
    // A key that does not belong to it changes nothing.
    volume.replace(&[("tls.crt", &first), ("tls.key", &second_key)]);
    std::thread::sleep(Duration::from_millis(300));
    assert!(is_served(&second));
}

/// A request on a connection that stays open. `None` if the other side refused, or closed without
/// an answer.
fn ask(connection: &mut TcpStream) -> Option<Reply> {
    connection.write_all(b"GET /nearest?word=east HTTP/1.1\r\nHost: h\r\n\r\n").ok()?;
    // An answer has a first byte at least.
    if connection.peek(&mut [0]).ok()? == 0 {
        return None;
    }
    Some(read_reply(connection))
}

/// Stops a replica while clients ask it, which learn a little later that they should ask another.
/// Returns the numbers of requests answered by the one that stops after it was told to, and lost.
fn stop_under_load(delay_ms: &str) -> (usize, usize) {
    /// How long clients still open connections to a replica that stops.
    const ENDPOINTS_LAG: Duration = Duration::from_millis(500);
    let (_place, model) = prepared(TINY);
    let (model, delay) = (["--model", text(&model)], ["--drain-delay-ms", delay_ms]);
    let mut stops = Service::start(&[&model[..], &delay].concat());
    let other = Service::start(&model);
    let [told, moved, done] = [(); 3].map(|()| AtomicBool::new(false));
    let [before, after, lost] = [(); 3].map(|()| AtomicUsize::new(0));
    std::thread::scope(|scope| {
        let until_here = Stops(&done);
        for _ in 0..4 {
            scope.spawn(|| {
                let connect = || {
                    let to = if moved.load(Ordering::SeqCst) { &other } else { &stops };
                    TcpStream::connect(&to.address).ok().map(|stream| (stream, to))
                };
                let mut open = None;
                while !done.load(Ordering::SeqCst) {
                    let was_told = told.load(Ordering::SeqCst);
                    open = open.or_else(connect);
                    let reply = open.as_mut().and_then(|(stream, _)| ask(stream));
                    let Some(reply) = reply else {
                        open = None;
                        lost.fetch_add(1, Ordering::SeqCst);
                        std::thread::sleep(Duration::from_millis(5));
                        continue;
                    };
                    assert_eq!(reply.status, 200);
                    let closes = reply.header("connection") == Some("close");
                    let (_, to) = open.as_ref().expect("it has answered");
                    if std::ptr::eq(*to, &stops) {
                        let counter = if was_told { &after } else { &before };
                        counter.fetch_add(1, Ordering::SeqCst);
                        // (Without a delay, what was in flight at the signal may be answered a
                        // little later.)
                        assert!(!was_told || closes || delay_ms == "0", "clients are told to go");
                    }
                    if closes {
                        open = None;
                    }
                    std::thread::sleep(Duration::from_millis(2));
                }
            });
        }
        eventually("there is load", || before.load(Ordering::SeqCst) > 100);
        stops.signal("TERM");
        if delay_ms != "0" {
            let is_draining = || stops.get("/health/ready").status == 503;
            eventually("it is not ready", is_draining);
            assert_eq!(stops.get("/health/live").status, 200);
        }
        told.store(true, Ordering::SeqCst);
        std::thread::sleep(ENDPOINTS_LAG);
        moved.store(true, Ordering::SeqCst);
        eventually("it accepts no more", || TcpStream::connect(&stops.address).is_err());
        drop(until_here);
    });
    assert_eq!(stops.exit_code(), Some(0));
    (after.into_inner(), lost.into_inner())
}

#[test]
fn with_a_drain_delay_no_request_is_lost_while_clients_move_to_another_replica() {
    let (after, lost) = stop_under_load("4000");
    assert!(after > 20 && lost == 0, "{after} answered meanwhile, {lost} lost");
    // Without, the port is closed before they know.
    let (_, lost) = stop_under_load("0");
    assert!(lost > 0, "the test loses none where some must be lost");
}
