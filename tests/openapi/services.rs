//! Services with API keys, and those that are stopping, against openapi.yaml.

use std::io::Write;

use serde_json::json;

use super::{Contract, JSON, asked_for};
use crate::support::{Service, read_reply};

#[test]
fn a_service_with_keys_answers_as_documented() {
    let contract = Contract::read();
    let mut keys = tempfile::NamedTempFile::new().unwrap();
    writeln!(keys, "{} somebody", "0".repeat(64)).unwrap();
    let keys = keys.path().to_str().unwrap();
    let service = Service::start(&["--api-keys-file", keys, "--public-routes", ""]);
    for (method, path, _) in contract.operations() {
        let path = asked_for(path);
        let reply = service.send(&method, path.as_bytes(), &[JSON], b"");
        assert_eq!(reply.status, 401, "{method} {path}");
        contract.check(&method, &path, &reply);
    }
}

#[test]
fn a_stopping_service_answers_as_documented() {
    let contract = Contract::read();
    let service = Service::start(&["--threads", "1"]);
    // A connection in use is kept until its request is answered, so it can still ask.
    let body = json!({"queries": vec![json!({"word": "king", "k": 60}); 1024]}).to_string();
    let mut slow = service.connect();
    let head = "POST /nearest HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json";
    let request = format!("{head}\r\nContent-Length: {}\r\n\r\n{body}", body.len());
    slow.write_all(request.as_bytes()).unwrap();
    // Connections are taken in their order: once a later one is answered, the slow one has been
    // taken, and a little later its request as well.
    assert_eq!(service.get("/health/live").status, 200);
    std::thread::sleep(std::time::Duration::from_millis(20));
    service.signal("TERM");
    let reply = read_reply(&mut slow);
    assert_eq!(reply.status, 200);
    contract.check("POST", "/nearest", &reply);
}
