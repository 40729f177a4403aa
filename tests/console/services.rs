//! The service or the model that is asked.

use std::process::{Output, Stdio};

use super::{err, neighbors, objects, out, piped};
use crate::support::{Service, TINY, cache, kindred, prepared};
use crate::tls::pair;
use serde_json::json;

#[test]
fn a_service_of_several_models_is_asked_for_one_and_with_its_key() {
    let (_place, model) = prepared(TINY);
    let second = format!("other={}", model.to_str().unwrap());
    let service =
        Service::start_with_keys(&["--model", model.to_str().unwrap(), "--model", &second]);
    let url = service.url("/models/other");
    let refused = kindred(&["nearest", "east", "--url", &url]).output().unwrap();
    assert_eq!(refused.status.code(), Some(1));
    let said = err(&refused);
    assert!(said.contains("API key"), "{said}");
    assert!(said.contains("set KINDRED_API_KEY or give --api-key"), "{said}");
    let key = service.key.clone().unwrap();
    let mut by_environment = kindred(&["nearest", "east", "--json", "--url", &url]);
    let answers = [
        by_environment.env("KINDRED_API_KEY", &key).output().unwrap(),
        kindred(&["nearest", "east", "--json", "--url", &url, "--api-key", &key]).output().unwrap(),
    ];
    for answer in answers {
        assert_eq!(objects(&answer)[0]["model"], json!("other"), "{}", err(&answer));
    }
    // The variable is none of the service's settings, and does not keep it from starting.
    let mut starts = kindred(&["serve", "--listen", "nowhere", "--model"]);
    let said = err(&starts.arg(&model).env("KINDRED_API_KEY", &key).output().unwrap());
    assert!(said.contains("can't listen on nowhere"), "{said}");
}

#[test]
fn a_service_is_compared_with_the_reference_of_its_own_model_only() {
    let (_place, model) = prepared(TINY);
    let model = model.to_str().unwrap();
    let service = Service::start(&["--model", model]);
    let url = service.url("");
    let ask = |arguments: &[&str]| {
        let asked = [&["nearest", "east", "--compare", "--url", &url], arguments].concat();
        kindred(&asked).output().unwrap()
    };
    let without = ask(&[]);
    assert_eq!(without.status.code(), Some(1));
    // A model that nothing is held against would be passed over without a word.
    let unused = kindred(&["nearest", "east", "--url", &url, "--model", model]).output().unwrap();
    assert_eq!(unused.status.code(), Some(1));
    assert!(err(&unused).contains("--compare"), "{}", err(&unused));
    assert!(err(&without).contains("--model DIR"), "{}", err(&without));
    let with = ask(&["--model", model]);
    assert_eq!(with.status.code(), Some(0), "{}", err(&with));
    assert!(err(&with).contains("identical: rows and score bits"), "{}", err(&with));
    let (_other, other) = prepared(&TINY.replace("north 0 1", "north 0 2"));
    let other = ask(&["--model", other.to_str().unwrap()]);
    assert_eq!(other.status.code(), Some(1));
    assert!(err(&other).contains("can't be compared"), "{}", err(&other));
    // A line of a console without a reference is wrong; the console goes on.
    let console = piped(kindred(&["console", "--url", &url]), ":compare\neast\n");
    assert!(err(&console).contains("line 1: --compare runs the reference"), "{}", err(&console));
    assert!(out(&console).starts_with("east\t"), "{}", out(&console));
}

#[test]
fn model_and_engine_come_from_the_settings_of_serve_and_the_network_from_none() {
    let (scratch, model) = prepared(TINY);
    let settings = scratch.path().join("kindred.toml");
    let text = "api_keys_file = '/no/such/file'\ntls_certificate = '/no/such/file'\nthreads = 1\n";
    std::fs::write(&settings, text).unwrap();
    let mut command = kindred(&["nearest", "east", "--json"]);
    command.env("KINDRED_CONFIG", &settings).env("KINDRED_MODEL", &model);
    let answer = command.env("KINDRED_DEVICE", "cpu").output().unwrap();
    assert_eq!(answer.status.code(), Some(0), "{}", err(&answer));
    assert_eq!(objects(&answer)[0]["model"], json!("tiny"));
    let wrong = kindred(&["nearest", "east"]).env("KINDRED_DEVIC", "cpu").output().unwrap();
    assert!(err(&wrong).contains("KINDRED_DEVIC"), "{}", err(&wrong));
    // Where another service answers, settings of one here do not matter.
    let service = Service::start(&["--model", model.to_str().unwrap()]);
    let mut asked = kindred(&["nearest", "east", "--url", &service.url("")]);
    assert!(asked.env("KINDRED_DEVIC", "cpu").output().unwrap().status.success());
    // The variables of those who ask do.
    let asked = asked.env("KINDRED_APIKEY", "x").output().unwrap();
    assert!(err(&asked).contains("did you mean KINDRED_API_KEY?"), "{}", err(&asked));
}

/// A service behind HTTPS with a certificate of the tests.
struct Secure {
    service: std::process::Child,
    port: String,
    folder: tempfile::TempDir,
}

impl Secure {
    fn start(certificate: &str) -> Self {
        use std::io::{BufRead, BufReader};
        let folder = tempfile::tempdir().unwrap();
        let (certificate, key) = pair(certificate);
        let path = |name: &str| folder.path().join(name);
        std::fs::write(path("cert.pem"), certificate).unwrap();
        std::fs::write(path("key.pem"), key).unwrap();
        std::fs::write(path("other.pem"), pair("second").0).unwrap();
        let mut serve =
            kindred(&["serve", "--listen", "127.0.0.1:0", "--log-level", "warn", "--cache-dir"]);
        serve.arg(cache()).arg("--tls-certificate").arg(path("cert.pem"));
        serve.arg("--tls-private-key").arg(path("key.pem")).stdout(Stdio::piped());
        let mut service = serve.spawn().unwrap();
        let mut lines = BufReader::new(service.stdout.take().unwrap()).lines();
        let line = lines.find_map(|line| line.ok().filter(|line| line.starts_with("Listening")));
        let line = line.expect("it says where it listens");
        let port = line.rsplit(':').next().unwrap().to_owned();
        Self { service, port, folder }
    }

    /// Asks it, by this name of this machine, and trusting the certificates of this file.
    fn ask(&self, host: &str, trusted: &str) -> Output {
        let url = format!("https://{host}:{}", self.port);
        let mut command = kindred(&["nearest", "frog", "--json", "--url", &url]);
        command.env("SSL_CERT_FILE", self.folder.path().join(trusted));
        command.env_remove("SSL_CERT_DIR").output().unwrap()
    }
}

impl Drop for Secure {
    fn drop(&mut self) {
        let _ = self.service.kill();
        let _ = self.service.wait();
    }
}

#[test]
fn services_behind_https_are_asked_if_their_certificate_is_trusted() {
    let service = Secure::start("first");
    let trusted = service.ask("localhost", "cert.pem");
    let untrusted = service.ask("localhost", "other.pem");
    let missing = service.ask("localhost", "missing.pem");
    let plain = format!("http://localhost:{}", service.port);
    let plain = kindred(&["nearest", "frog", "--url", &plain]).output();
    assert!(err(&missing).contains("missing.pem, which SSL_CERT_FILE"), "{}", err(&missing));
    let plain = err(&plain.unwrap());
    assert!(plain.contains("try --url https://localhost:"), "{plain}");
    assert!(err(&untrusted).contains("SSL_CERT_FILE"), "{}", err(&untrusted));
    assert_eq!(trusted.status.code(), Some(0), "{}", err(&trusted));
    assert_eq!(neighbors(&objects(&trusted)[0]).len(), 10);
    assert_eq!(untrusted.status.code(), Some(1));
    assert!(err(&untrusted).contains("certificate"), "{}", err(&untrusted));
}

#[test]
fn the_default_certificate_of_openssl_is_taken_if_it_is_trusted_itself() {
    let service = Secure::start("default");
    let trusted = service.ask("localhost", "cert.pem");
    assert_eq!(trusted.status.code(), Some(0), "{}", err(&trusted));
    assert_eq!(neighbors(&objects(&trusted)[0]).len(), 10);
    let untrusted = service.ask("localhost", "other.pem");
    assert_eq!(untrusted.status.code(), Some(1));
    assert!(err(&untrusted).contains("set SSL_CERT_FILE"), "{}", err(&untrusted));
    // Its only name is localhost.
    let other_name = service.ask("127.0.0.1", "cert.pem");
    assert_eq!(other_name.status.code(), Some(1));
    for part in ["does not have the name 127.0.0.1", "-addext subjectAltName=IP:127.0.0.1"] {
        assert!(err(&other_name).contains(part), "{part}: {}", err(&other_name));
    }
}

#[test]
fn this_machine_is_asked_without_a_proxy_and_errors_name_the_proxy() {
    let service = Service::with_default_model();
    // Nothing listens there, nor has any name server such a host.
    let proxied = |url: &str| {
        let mut command = kindred(&["nearest", "frog", "--url", url]);
        for name in ["HTTP_PROXY", "ALL_PROXY", "http_proxy"] {
            command.env(name, "http://me:secret@127.0.0.1:9");
        }
        command.env_remove("NO_PROXY").env_remove("no_proxy").output().unwrap()
    };
    let near = proxied(&service.url(""));
    assert_eq!(near.status.code(), Some(0), "{}", err(&near));
    let far = err(&proxied("http://kindred.invalid:8080"));
    assert!(far.contains("the proxy http://127.0.0.1:9") && far.contains("NO_PROXY"), "{far}");
    assert!(!far.contains("secret"), "{far}");
}
