//! `kindred health`: whether a service is ready, by flags and by the environment.

use std::io::{Read, Write};

use crate::support::{Service, errors, kindred};

#[test]
fn health_is_what_the_service_says_of_itself() {
    let service = Service::with_default_model();
    let health = |url: &str| {
        // A proxy of the environment is for other machines.
        let mut command = kindred(&["health", "--timeout-ms", "300", "--url", url]);
        command.env("HTTP_PROXY", "http://127.0.0.1:9").output().unwrap()
    };
    for end in ["", "/"] {
        let output = health(&service.url(end));
        assert_eq!(
            (output.status.code(), &*output.stdout),
            (Some(0), &b"ready\n"[..]),
            "{output:?}"
        );
    }

    // Others than a service that is ready, each asked once.
    let other = |answer: &'static str| {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let served = std::thread::spawn(move || {
            let (mut connection, _) = listener.accept().unwrap();
            let _ = connection.read(&mut [0; 4096]);
            connection.write_all(answer.as_bytes()).unwrap();
            // Until the other side hangs up.
            let _ = connection.read(&mut [0; 4096]);
        });
        let output = health(&url);
        served.join().unwrap();
        output
    };
    let unready = "HTTP/1.1 503 S\r\nContent-Length: 26\r\n\r\n{\"detail\": \"is draining\"} ";
    let stranger = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
    for (output, why) in [
        (other(unready), "503: is draining"),
        (other(stranger), "is not Kindred"),
        (other("HTTP/1.1 401 U\r\nContent-Length: 0\r\n\r\n"), "401"),
        (other(""), "no answer within 300 ms"),
        // An alert of TLS.
        (
            other("\x15\x03\x03\0\x02\x02\x46"),
            "if it uses HTTPS, set --url or KINDRED_URL to https://",
        ),
        (health(&service.url("").replacen("http", "https", 1)), "it does not speak HTTPS"),
        (health("http://127.0.0.1:9"), "refused"),
        (health("https://example.org"), "another machine"),
        (health(&service.url("/nearest")), "404"),
    ] {
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        assert!(errors(&output).contains(why), "{why}: {}", errors(&output));
    }
}

#[test]
fn health_takes_address_and_key_from_the_environment() {
    let asked = |name: &str, variable: bool| {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/{name}", listener.local_addr().unwrap());
        let served = std::thread::spawn(move || {
            let (mut connection, _) = listener.accept().unwrap();
            let mut request = vec![0; 4096];
            let read = connection.read(&mut request).unwrap();
            let answer = "HTTP/1.1 200 OK\r\nContent-Length: 18\r\n\r\n{\"status\":\"ready\"}";
            connection.write_all(answer.as_bytes()).unwrap();
            String::from_utf8_lossy(&request[..read]).into_owned()
        });
        let mut command = kindred(&["health"]);
        command.env("KINDRED_API_KEY", "a-key");
        if variable {
            command.env("KINDRED_URL", &url);
        } else {
            command.args(["--url", &url]).env("KINDRED_URL", "http://127.0.0.1:9");
        }
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", errors(&output));
        served.join().unwrap()
    };
    for variable in [true, false] {
        let request = asked("behind", variable).to_lowercase();
        assert!(request.starts_with("get /behind/health/ready "), "{request}");
        assert!(request.contains("authorization: bearer a-key"), "{request}");
    }
    // Nor is either a setting that `serve` does not know.
    let mut serve = kindred(&["serve", "--listen", "nowhere"]);
    serve.env("KINDRED_URL", "http://127.0.0.1:9");
    assert!(errors(&serve.output().unwrap()).contains("can't listen on nowhere"));
    let secret = kindred(&["health", "--url", "http://me:secret@127.0.0.1"]).output().unwrap();
    assert!(errors(&secret).contains("password") && !errors(&secret).contains("secret"));
}
