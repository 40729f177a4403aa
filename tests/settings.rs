//! The settings of the real program: which mistakes end it, with which exit code and when; that a
//! log in JSON is all that it writes; and what it tells the service manager.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};

use crate::support::{
    Service, TINY, api_key, errors, json_lines, kindred, prepared, until_listening,
};
use crate::tls::pair;

/// A model and files of settings, right and wrong.
struct Place {
    folder: tempfile::TempDir,
    model: PathBuf,
}

impl Place {
    fn new() -> Self {
        let (folder, model) = prepared(TINY);
        let place = Self { folder, model };
        let ((certificate, key), (_, other_key)) = (pair("first"), pair("second"));
        for (name, text) in [
            ("cert.pem", &certificate[..]),
            ("key.pem", &key),
            ("other-key.pem", &other_key),
            ("keys", &api_key(&["somebody"]).1),
            ("no-keys", "nothing"),
            ("no.toml", "listen 5"),
            ("unknown.toml", "lisen = '127.0.0.1:0'"),
        ] {
            fs::write(place.path(name), text).unwrap();
        }
        fs::create_dir(place.path("empty")).unwrap();
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The program with these arguments, in which `@name` stands for a file of this place.
    fn serve(&self, arguments: &[&str]) -> Command {
        let mut command = kindred(&["serve", "--model"]);
        command.arg(&self.model);
        let is_listening = arguments.contains(&"--listen");
        for argument in arguments {
            match argument.strip_prefix('@') {
                Some(name) => command.arg(self.path(name)),
                None => command.arg(argument),
            };
        }
        if !is_listening {
            command.args(["--listen", "127.0.0.1:0"]);
        }
        command
    }
}

/// Mistakes, each with a part of the message. The model of the place is right, and comes first.
const MISTAKES: [(&[&str], &str); 21] = [
    (&["--thraeds", "1"], "--thraeds"),
    (&["--threads", "many"], "many"),
    (&["--threads", "1025"], "`threads`"),
    (&["--log-level", "inf"], "did you mean info?"),
    (&["--config", "/no/such.toml"], "/no/such.toml"),
    (&["--config", "@no.toml"], "is not TOML"),
    (&["--config", "@unknown.toml"], "did you mean listen?"),
    (&["--listen", "nowhere"], "can't listen on nowhere"),
    (&["--listen", "127.0.0.1:99999"], "can't listen on 127.0.0.1:99999"),
    // An address for documents, which no machine has.
    (&["--listen", "192.0.2.1:0"], "can't listen on 192.0.2.1:0"),
    (&["--api-keys-file", "/no/such/keys"], "api_keys_file"),
    (&["--api-keys-file", "@no-keys"], "line 1"),
    (&["--tls-certificate", "@cert.pem"], "tls_private_key"),
    (&["--tls-certificate", "@cert.pem", "--tls-private-key", "@other-key.pem"], "other-key.pem"),
    (&["--public-routes", "/nowhere"], "public_routes"),
    (&["--cors-origins", "example.org"], "cors_origins"),
    (&["--placement", "other=shard"], "must name served models"),
    (&["--model", "/no/such/model"], "there is no such folder"),
    (&["--model", "@empty"], "vectors.safetensors"),
    (&["--model", "other=@keys"], "there is no such folder"),
    (&["--head", "/no/such/head"], "is not a head"),
];

#[test]
fn mistakes_in_settings_end_the_program_with_2_before_an_engine_is_made() {
    let place = Place::new();
    for (arguments, part) in MISTAKES {
        for check in [&[][..], &["--check"]] {
            let output = place.serve(&[arguments, check].concat()).output().unwrap();
            let said = errors(&output);
            assert_eq!(output.status.code(), Some(2), "{arguments:?} {check:?}: {said}");
            assert!(said.contains(part), "{arguments:?} {check:?}: {said}");
            assert!(!said.contains("the engine is ready"), "{arguments:?}: {said}");
            assert!(output.stdout.is_empty(), "{arguments:?}: {output:?}");
        }
    }
    for (variable, value) in [("KINDRED_THREADS", "many"), ("KINDRED_LISEN", "127.0.0.1:0")] {
        let output = place.serve(&[]).env(variable, value).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{variable}: {}", errors(&output));
        assert!(errors(&output).contains(variable), "{}", errors(&output));
    }
    // Without the command's name, too.
    let arguments = ["--listen", "127.0.0.1:0", "--model", "/no/such/model"];
    let output = kindred(&arguments).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", errors(&output));
}

#[test]
fn what_is_no_mistake_in_settings_ends_it_with_1() {
    let place = Place::new();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let output = place.serve(&["--listen", &address]).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", errors(&output));
    assert!(errors(&output).contains("--listen"), "{}", errors(&output));
    assert!(!errors(&output).contains("opened the model"), "{}", errors(&output));
    // A folder of a model that is damaged.
    let words = place.model.join("words.txt");
    let mut text = fs::read(&words).unwrap();
    text.pop();
    fs::write(&words, text).unwrap();
    for check in [&[][..], &["--check"]] {
        let output = place.serve(check).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{}", errors(&output));
        assert!(errors(&output).contains("words.txt"), "{}", errors(&output));
    }
}

#[test]
fn settings_are_checked_without_serving() {
    let place = Place::new();
    let check = |arguments: &[&str]| {
        let tls = ["--tls-certificate", "@cert.pem", "--tls-private-key", "@key.pem"];
        let all = [&["--check", "--api-keys-file", "@keys"][..], &tls, arguments].concat();
        place.serve(&all).output().unwrap()
    };
    let valid = |output: &Output, stdout: &[u8]| {
        assert_eq!(output.status.code(), Some(0), "{}", errors(output));
        assert_eq!(output.stdout, stdout);
        assert!(!errors(output).contains("the engine is ready"), "{}", errors(output));
    };
    valid(&check(&[]), b"The settings are valid.\n");
    // Beside the service that has them.
    let service = Service::start(&["--model", place.model.to_str().unwrap()]);
    valid(&check(&["--listen", &service.address]), b"The settings are valid.\n");
    assert_eq!(service.get("/health/ready").status, 200);

    let in_json = check(&["--log-format", "json"]);
    valid(&in_json, b"");
    let last = json_lines(&errors(&in_json)).pop().unwrap();
    assert_eq!(last["message"], "the settings are valid");
}

#[test]
fn a_mistake_is_a_line_of_json_where_the_log_is_in_json() {
    let place = Place::new();
    let settings = place.path("json.toml");
    fs::write(&settings, "log_format = 'json'\nthreads = 'many'").unwrap();
    let check = |output: &Output, part: &str| {
        assert_eq!(output.status.code(), Some(2), "{}", errors(output));
        assert!(output.stdout.is_empty(), "{output:?}");
        let last = json_lines(&errors(output)).pop().expect("it says why");
        assert_eq!((&last["level"], &last["exit_code"]), (&json!("ERROR"), &json!(2)), "{last}");
        assert!(last["message"].as_str().unwrap().contains(part), "{part}: {last}");
        assert!(last["timestamp"].is_string(), "{last}");
    };
    for (arguments, part) in MISTAKES {
        let flag = place.serve(&[arguments, &["--log-format", "json"]].concat()).output();
        check(&flag.unwrap(), part);
        let mut command = place.serve(arguments);
        check(&command.env("KINDRED_LOG_FORMAT", "json").output().unwrap(), part);
    }
    check(&place.serve(&["--config", "@json.toml"]).output().unwrap(), "`threads`");
    // Typing mistakes in the name of a command are those of a container's, too.
    let mut misspelt = kindred(&["sevre"]);
    check(&misspelt.env("KINDRED_LOG_FORMAT", "json").output().unwrap(), "sevre");
    // Other commands have no log.
    for arguments in [&["health", "--timeout-ms", "0"][..], &["nearest"]] {
        let output = kindred(arguments).env("KINDRED_LOG_FORMAT", "json").output().unwrap();
        assert_eq!(output.status.code(), Some(2));
        let said = errors(&output);
        assert!(serde_json::from_str::<Value>(&said).is_err() && !said.is_empty(), "{said}");
    }
}

/// A service whose log is piped, and which has said where it listens: itself, what it said, and
/// the rest of its log.
fn started(mut command: Command) -> (std::process::Child, String, String, impl Read) {
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut log = BufReader::new(child.stderr.take().unwrap());
    let (text, address) = until_listening(&mut log);
    (child, address, text, log)
}

fn tell(child: &std::process::Child, signal: &str) {
    let id = child.id().to_string();
    assert!(Command::new("kill").args(["-s", signal, &id]).status().unwrap().success());
}

/// Stops a service, and returns its exit code, its standard output and the rest of its log.
fn stopped(mut child: std::process::Child, mut log: impl Read) -> (Option<i32>, String, String) {
    tell(&child, "TERM");
    let (mut rest, mut output) = (String::new(), String::new());
    log.read_to_string(&mut rest).unwrap();
    child.stdout.take().unwrap().read_to_string(&mut output).unwrap();
    (child.wait().unwrap().code(), output, rest)
}

/// Reads a log to the end of the first line that has this part.
fn until(log: &mut impl BufRead, part: &str) -> String {
    let (mut text, mut begin) = (String::new(), 0);
    while !text[begin..].contains(part) {
        begin = text.len();
        assert!(log.read_line(&mut text).unwrap() > 0, "it ended without {part}:\n{text}");
    }
    text
}

#[test]
fn a_second_stop_signal_ends_the_drain_and_is_named_as_the_cause() {
    let place = Place::new();
    let (child, _, _, log) = started(place.serve(&["--drain-delay-ms", "60000"]));
    let mut log = BufReader::new(log);
    tell(&child, "TERM");
    until(&mut log, "accepting requests for drain_delay_ms");
    let (code, _, rest) = stopped(child, log);
    assert_eq!(code, Some(1), "{rest}");
    assert!(rest.contains("stopped without draining, because of a second stop signal"), "{rest}");
    assert!(!rest.contains("took longer"), "{rest}");
}

#[test]
fn a_reload_warns_of_settings_that_it_does_not_put_in_force() {
    let place = Place::new();
    let set = |text: &str| fs::write(place.path("kindred.toml"), text).unwrap();
    set("access_log_one_in = 7");
    let (child, _, _, log) = started(place.serve(&["--config", "@kindred.toml"]));
    let mut log = BufReader::new(log);
    for (text, is_said) in [
        ("access_log_one_in = 7\nmemory_reserve_mb = 1", false),
        ("access_log_one_in = 8", true),
        ("access_log_one_in = 7", false),
    ] {
        set(text);
        tell(&child, "HUP");
        let said = until(&mut log, "unchanged");
        let warning = "changed settings need a restart to take effect: access_log_one_in";
        assert_eq!(said.contains(warning), is_said, "{text}: {said}");
    }
    assert_eq!(stopped(child, log).0, Some(0));
}

#[test]
fn a_service_whose_log_is_in_json_writes_nothing_else() {
    let place = Place::new();
    // More connections than it may have files: a warning.
    let arguments = ["--log-format", "json", "--max-connections", "1000000"];
    let (child, address, text, log) = started(place.serve(&arguments));
    let reply = ureq::get(format!("http://{address}/nearest?word=east")).call().unwrap();
    assert_eq!(reply.status(), 200);
    let (code, output, rest) = stopped(child, log);
    assert_eq!((code, &output[..]), (Some(0), ""));
    let lines = json_lines(&(text + &rest));
    let has = |message: &str| lines.iter().any(|line| line["message"] == message);
    assert!(has("starting kindred") && has("listening") && has("stopped"), "{lines:?}");
    let listening: Vec<&Value> = lines.iter().filter(|line| line["scheme"] == "http").collect();
    assert_eq!(listening.len(), 1, "{lines:?}");

    // As text, there is a welcome.
    let (child, _, _, log) = started(place.serve(&[]));
    let (code, output, _) = stopped(child, log);
    assert_eq!(code, Some(0));
    assert!(output.contains("Listening on http://"), "{output}");
}

#[cfg(unix)]
#[test]
fn the_service_manager_is_told_when_it_is_ready_reloads_and_stops() {
    use std::os::unix::net::UnixDatagram;
    use std::time::Duration;

    let place = Place::new();
    let path = place.path("notify");
    let socket = UnixDatagram::bind(&path).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let next = || {
        let mut buffer = [0; 200];
        let length = socket.recv(&mut buffer).unwrap();
        String::from_utf8(buffer[..length].to_vec()).unwrap()
    };
    let reloads = |child: &std::process::Child| {
        tell(child, "HUP");
        let message = next();
        let time = message.strip_prefix("RELOADING=1\nMONOTONIC_USEC=").expect(&message);
        assert!(time.parse::<u64>().unwrap() > 0, "{message}");
        assert_eq!(next(), "READY=1");
    };
    let mut command = place.serve(&[]);
    command.env("NOTIFY_SOCKET", &path);
    let (child, address, _, log) = started(command);
    assert_eq!(next(), "READY=1");
    let ready = ureq::get(format!("http://{address}/health/ready")).call().unwrap();
    assert_eq!(ready.status(), 200, "it is as ready as it says");
    reloads(&child);
    // One that fails ends, too.
    fs::rename(&place.model, place.path("elsewhere")).unwrap();
    reloads(&child);
    let (code, _, rest) = stopped(child, log);
    assert!(rest.contains("the reload failed"), "{rest}");
    assert_eq!((code, next()), (Some(0), "STOPPING=1".to_owned()));

    // A manager that is gone keeps nobody from serving.
    let place = Place::new();
    let mut command = place.serve(&[]);
    command.env("NOTIFY_SOCKET", "/no/such/socket");
    let (child, address, _, log) = started(command);
    let ready = ureq::get(format!("http://{address}/health/ready")).call().unwrap();
    assert_eq!(ready.status(), 200);
    let (code, _, rest) = stopped(child, log);
    assert!(rest.contains("can't send \"STOPPING=1\" to the service manager"), "{rest}");
    assert_eq!(code, Some(0));
}
