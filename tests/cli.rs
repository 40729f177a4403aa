//! The commands beside `serve`, and what each says when it can't.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output};

use crate::support::{self, TINY, kindred, prepared};

fn run(arguments: &[&str], path: &Path) -> Output {
    kindred(arguments).arg(path).output().unwrap()
}

fn said(output: &Output) -> String {
    format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

#[test]
fn prepare_ends_with_a_summary_and_verify_agrees() {
    let scratch = tempfile::tempdir().unwrap();
    let input = scratch.path().join("in.txt");
    let out = scratch.path().join("model");
    fs::write(&input, "a 1 2\nb 3 4\nbad 5\na 6 7\n").unwrap();
    let prepare = |flags: &[&str]| {
        kindred(&["prepare"]).arg(&input).arg("--out").arg(&out).args(flags).output().unwrap()
    };
    let stopped = prepare(&[]);
    assert!(!stopped.status.success());
    assert!(
        said(&stopped).contains("in.txt, line 3: 1 component instead of 2"),
        "{}",
        said(&stopped)
    );
    assert!(!out.exists());

    let done = prepare(&["--skip-bad-rows"]);
    assert!(done.status.success(), "{}", said(&done));
    for part in ["2 rows × 2 dimensions", " s\n", "1 invalid row and 1 repeated word\n", "line 3"]
    {
        assert!(said(&done).contains(part), "{}", said(&done));
    }
    let again = prepare(&["--skip-bad-rows"]);
    assert!(!again.status.success() && said(&again).contains("--replace"), "{}", said(&again));

    let checked = run(&["verify"], &out);
    assert!(checked.status.success() && said(&checked).contains("2 rows × 2 dimensions"));
}

#[test]
fn prepare_warns_of_what_it_leaves_out_and_names_other_kinds_of_files() {
    let scratch = tempfile::tempdir().unwrap();
    let (input, out) = (scratch.path().join("in.vec"), scratch.path().join("model"));
    let prepare = |content: &[u8]| {
        fs::write(&input, content).unwrap();
        kindred(&["prepare", "--replace"]).arg(&input).arg("--out").arg(&out).output().unwrap()
    };
    let done = prepare(b"3 2\na 1 2\nb 3 4\n\n\n");
    let errors = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{errors}");
    for warning in [
        "warning: its header announces 3 rows, but it has 2\n",
        "warning: the empty lines at its end (2) were left out\n",
    ] {
        assert!(errors.contains(warning), "{errors}");
    }
    let whole = prepare(b"2 2\na 1 2\nb 3 4\n");
    assert!(whole.status.success() && !said(&whole).contains("warning"), "{}", said(&whole));
    let page = prepare(b"<!DOCTYPE html>\n<title>Sign in</title>\n");
    assert!(!page.status.success());
    assert!(
        said(&page).contains("in.vec: it is a web page (HTML), \"Sign in\""),
        "{}",
        said(&page)
    );
}

#[test]
fn verify_and_serve_refuse_what_is_damaged() {
    let (_place, model) = prepared(TINY);
    let words = model.join("words.txt");
    let mut text = fs::read(&words).unwrap();
    text[0] ^= 1;
    fs::write(&words, &text).unwrap();
    let output = run(&["verify"], &model);
    assert!(!output.status.success());
    assert!(
        said(&output).contains("words.txt is damaged")
            && said(&output).contains("prepare it again")
    );

    text.pop();
    fs::write(&words, &text).unwrap();
    let output = run(&["serve", "--listen", "127.0.0.1:0", "--model"], &model);
    assert!(!output.status.success());
    assert!(said(&output).contains("words.txt has 35 bytes instead of 36"), "{}", said(&output));
}

#[test]
fn what_can_not_be_served_is_said_with_the_cure() {
    let here = tempfile::tempdir().unwrap();
    let no_model = run(&["serve", "--listen", "127.0.0.1:0", "--model"], here.path());
    assert!(said(&no_model).contains("kindred prepare INPUT --out DIR"), "{}", said(&no_model));
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let (_place, model) = prepared(TINY);
    for (arguments, part) in [
        (vec!["serve", "--listen", &address, "--model"], "--listen"),
        (vec!["serve", "--listen", "nowhere", "--model"], "can't listen on nowhere"),
        (vec!["serve", "--device", "tpu", "--model"], "cuda:0,2"),
        (vec!["serve", "--placement", "split", "--model"], "use auto, replicate or shard"),
        (vec!["serve", "--placement", "other=shard", "--model"], "must name served models"),
        (vec!["serve", "--log-level", "=loud=", "--model"], "log_level"),
        (vec!["serve", "--log-level", "inf", "--model"], "did you mean info?"),
        (vec!["serve", "--log-level", "info,acces=debug", "--model"], "did you mean access?"),
        (vec!["serve", "--config", "/no/such.toml", "--model"], "/no/such.toml"),
    ] {
        let output = run(&arguments, &model);
        assert!(!output.status.success(), "{arguments:?}");
        assert!(said(&output).contains(part), "{arguments:?}: {}", said(&output));
    }
    let output = kindred(&["serve"]).env("KINDRED_LISEN", "1").output().unwrap();
    assert!(said(&output).contains("KINDRED_LISEN"), "{}", said(&output));
    // A variable that has no effect, because its name is misspelt, is an error wherever one could
    // have one.
    for command in [&["health"][..], &["nearest", "frog", "--url", "http://127.0.0.1:9"]] {
        let output = kindred(command).env("KINDRED_URLL", "http://127.0.0.1:9").output().unwrap();
        assert!(said(&output).contains("did you mean KINDRED_URL?"), "{}", said(&output));
    }
}

/// What a machine says that can't search on a GPU: which of these depends on the build and on it.
/// None if it can.
fn no_gpu() -> Option<&'static str> {
    if cfg!(not(feature = "cuda")) {
        return Some("built without its CUDA engine");
    }
    let driver = ["/proc/driver/nvidia/version", "/dev/nvidiactl", "/dev/dxg"];
    let there = driver.iter().any(|path| Path::new(path).exists());
    (!there).then_some("no NVIDIA GPU")
}

#[test]
fn a_gpu_that_is_not_there_is_an_error_if_insisted_on_and_a_line_of_the_log_if_not() {
    let (_place, model) = prepared(TINY);
    let Some(reason) = no_gpu() else {
        println!("skipped: this machine has a GPU");
        return;
    };
    for device in ["cuda", "cuda:3"] {
        let serve = ["serve", "--listen", "127.0.0.1:0", "--device", device, "--model"];
        let refused = run(&serve, &model);
        assert!(!refused.status.success());
        for part in [&format!("--device {device}:"), reason, "--device cpu"] {
            assert!(said(&refused).contains(part), "{part}: {}", said(&refused));
        }
    }
    let mut command = kindred(&["serve", "--listen", "127.0.0.1:0", "--model"]);
    command.arg(&model).stdout(std::process::Stdio::null()).stderr(std::process::Stdio::piped());
    let mut fallen_back = command.spawn().unwrap();
    let mut log = std::io::BufReader::new(fallen_back.stderr.take().unwrap());
    let (log, _) = support::until_listening(&mut log);
    fallen_back.kill().unwrap();
    fallen_back.wait().unwrap();
    for part in ["using the CPU", reason, "engine=\"cpu\""] {
        assert!(log.contains(part), "{part}: {log}");
    }
}

/// Standard output that nobody reads.
fn unread() -> std::process::Stdio {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    writer.into()
}

#[test]
fn nobody_needs_to_read_what_the_commands_say() {
    let scratch = tempfile::tempdir().unwrap();
    let out = scratch.path().join("model");
    let mut synth = kindred(&["synth", "--rows", "100", "--dim", "5", "--out"]);
    assert!(synth.arg(&out).stdout(unread()).status().unwrap().success());
    assert!(kindred(&["verify"]).arg(&out).stdout(unread()).status().unwrap().success());

    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let address = format!("127.0.0.1:{port}");
    let mut serve = kindred(&["serve", "--device", "cpu", "--listen", &address, "--model"]);
    let mut service = serve.arg(&out).stdout(unread()).spawn().unwrap();
    let until = std::time::Instant::now() + std::time::Duration::from_secs(20);
    let answer = loop {
        let answer = ureq::get(format!("http://{address}/health/ready")).call();
        if answer.is_ok() || std::time::Instant::now() > until {
            break answer;
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    };
    service.kill().unwrap();
    service.wait().unwrap();
    assert!(answer.is_ok(), "{answer:?}");
}

/// On /dev/full each write fails, as on a disk without room.
#[cfg(target_os = "linux")]
#[test]
fn a_result_that_can_not_be_written_is_an_error() {
    let (scratch, model) = prepared(TINY);
    let model = model.to_str().unwrap();
    let pairs = scratch.path().join("pairs.tsv");
    fs::write(&pairs, "east\tnorth\t1\nnorth\twest\t2\n").unwrap();
    let [text, folder, man] = ["new.txt", "new", "man"].map(|name| scratch.path().join(name));
    let path = |path: &Path| path.to_str().unwrap().to_owned();
    let (pairs, text, folder, man) = (path(&pairs), path(&text), path(&folder), path(&man));
    let vectors = path(&scratch.path().join("vectors.txt"));
    let service = support::Service::start(&["--device", "cpu", "--model", model]);
    for arguments in [
        &["api-key", "somebody"][..],
        &["verify", model],
        &["attributes", model],
        &["export", model, "--format", "glove", "--out", "-"],
        &["export", model, "--format", "glove", "--out", &text],
        &["nearest", "east", "--device", "cpu", "--model", model],
        &["analogy", "east + north", "--device", "cpu", "--model", model],
        &["similarity", "east", "north", "--model", model],
        &["rank", "west", "--word", "east", "--device", "cpu", "--model", model],
        &["eval", model, "--device", "cpu", "--similarities", &pairs],
        &["prepare", &vectors, "--out", &folder],
        &["synth", "--rows", "100", "--dim", "5", "--out", &folder, "--replace"],
        &["health", "--url", &service.url("")],
        &["completions", "bash"],
        &["man"],
        &["man", "--out", &man],
        &["--help"],
        &["nearest", "--help"],
        &["--version"],
    ] {
        let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let output = kindred(arguments).stdout(full).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {said}");
        assert!(said.contains("can't write") && said.contains("space"), "{arguments:?}: {said}");
    }
    let mut console = kindred(&["console", "--device", "cpu", "--model", model]);
    let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let mut console = console.stdin(std::process::Stdio::piped()).stdout(full).spawn().unwrap();
    console.stdin.take().unwrap().write_all(b"east\n").unwrap();
    assert_eq!(console.wait().unwrap().code(), Some(1));
}

#[cfg(unix)]
#[test]
fn variables_of_ours_that_can_not_be_read_stop_the_program() {
    use std::os::unix::ffi::OsStrExt;
    let not_utf8 = |bytes| std::ffi::OsStr::from_bytes(bytes).to_owned();
    for (arguments, name, value) in [
        // Without the file of keys everybody would be answered.
        (&["serve", "--listen", "127.0.0.1:0"][..], &b"KINDRED_API_KEYS_FILE"[..], &b"/k\xff"[..]),
        (&["serve", "--listen", "127.0.0.1:0"], b"KINDRED_API_KEYS_FILE\xff", b"/keys"),
        (&["health"], b"KINDRED_URL", b"http://h\xff"),
        (&["health", "--url", "http://127.0.0.1:9"], b"KINDRED_API_KEY", b"k\xff"),
        (&["nearest", "x", "--url", "http://127.0.0.1:9"], b"KINDRED_API_KEY", b"k\xff"),
    ] {
        let mut command = kindred(arguments);
        command.env(not_utf8(name), not_utf8(value));
        let mut child = command
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let until = std::time::Instant::now() + std::time::Duration::from_secs(20);
        while child.try_wait().unwrap().is_none() && std::time::Instant::now() < until {
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        let _ = child.kill();
        let output = child.wait_with_output().unwrap();
        let named = String::from_utf8_lossy(name).into_owned();
        let error = said(&output);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {error}");
        assert!(error.contains(&named) && error.contains("UTF-8"), "{arguments:?}: {error}");
    }
}

#[test]
fn the_table_of_a_large_model_is_kept_beside_it() {
    use std::io::{BufRead, BufReader};
    use std::process::Stdio;

    let scratch = tempfile::tempdir().unwrap();
    let out = scratch.path().join("large");
    let mut synth = kindred(&["synth", "--rows", "1000000", "--dim", "50", "--out"]);
    assert!(synth.arg(&out).output().unwrap().status.success());
    // Serves until the log has a line with these words, then stops; that line.
    let serve_until = |flags: &[&str], words: &str| {
        let mut serve = kindred(&["serve", "--device", "cpu", "--listen", "127.0.0.1:0"]);
        serve.args(flags).arg("--model").arg(&out).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut service = serve.spawn().unwrap();
        let mut log = BufReader::new(service.stderr.take().unwrap()).lines();
        let line = log.find_map(|line| line.ok().filter(|line| line.contains(words)));
        service.kill().unwrap();
        service.wait().unwrap();
        line.unwrap_or_else(|| panic!("the log has no line with `{words}`"))
    };
    let name = format!("large.{}.cpu-table", std::env::consts::ARCH);
    let table = scratch.path().join(name);
    serve_until(&["--keep-tables", "false"], "derived the scan table");
    assert!(!table.exists());
    assert!(serve_until(&[], "derived the scan table").contains("saved in"));
    assert!(table.exists());
    assert!(serve_until(&[], "the scan table").contains("loaded"));
    fs::write(&table, "something else").unwrap();
    assert!(serve_until(&[], "the scan table").contains("damaged"));
    assert!(serve_until(&[], "the scan table").contains("loaded"), "it was made again");
}

/// What a command prints, which ends well.
fn printed(mut command: Command) -> String {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    String::from_utf8(output.stdout).unwrap()
}

/// The names of all commands, as `--help` lists them.
fn commands() -> Vec<String> {
    let help = printed(kindred(&["--help"]));
    let listed = help.split("Commands:\n").nth(1).unwrap().split("\n\n").next().unwrap().to_owned();
    let name = |line: &str| line.strip_prefix("  ")?.split(' ').next().map(str::to_owned);
    let names: Vec<String> =
        listed.lines().filter_map(name).filter(|name| !name.is_empty() && name != "help").collect();
    assert!(names.len() >= 12, "{names:?}");
    names
}

#[test]
fn completions_and_pages_mention_every_command() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = printed(kindred(&["completions", shell]));
        for name in commands() {
            assert!(script.contains(&name), "{shell}: {name}");
        }
        assert!(script.contains("vocab-limit"), "{shell}");
    }
    let script = printed(kindred(&["completions", "bash"]));
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("kindred.bash");
    std::fs::write(&file, script).unwrap();
    match Command::new("bash").arg("-n").arg(&file).output() {
        Ok(checked) => assert!(checked.status.success(), "{}", said(&checked)),
        Err(e) => println!("not checked with bash: {e}"),
    }

    let page = printed(kindred(&["man"])).replace("\\-", "-");
    assert!(page.contains(".TH kindred 1"), "{page}");
    let pages = folder.path().join("man1");
    let mut write = kindred(&["man", "--out"]);
    write.arg(&pages);
    printed(write);
    for name in commands() {
        assert!(page.contains(&format!("kindred-{name}(1)")), "{name}");
        let page = std::fs::read_to_string(pages.join(format!("kindred-{name}.1"))).unwrap();
        assert!(page.contains("xamples:") || page.contains("xample:"), "{name}");
    }
}

#[test]
fn the_help_fits_on_a_screen_and_that_of_serve_has_the_settings() {
    for flag in ["--help", "-h"] {
        let mut command = kindred(&[flag]);
        command.env("COLUMNS", "80");
        let help = printed(command);
        assert!((24..=42).contains(&help.lines().count()), "{help}");
        assert!(help.lines().all(|line| line.chars().count() <= 80), "{help}");
        assert!(!help.contains("--http-threads") && help.contains("`kindred serve --help`"));
    }
    assert!(printed(kindred(&["serve", "--help"])).contains("--http-threads"));
    // They are taken without a command all the same.
    let cache = support::cache();
    let output = run(&["--listen", "nowhere", "--cache-dir"], &cache);
    assert!(said(&output).contains("can't listen on nowhere"), "{}", said(&output));
}

#[test]
fn every_command_has_help_with_examples() {
    assert!(printed(kindred(&["--help"])).contains("Examples:"));
    for name in commands() {
        let help = printed(kindred(&[&name, "--help"]));
        assert!(
            help.contains("Example") && help.contains(&format!("  kindred {name}")),
            "{name}: {help}"
        );
    }
}

#[test]
fn a_signal_during_prepare_leaves_nothing() {
    use std::io::Write;
    use std::process::Stdio;

    let scratch = tempfile::tempdir().unwrap();
    // A pipe that never ends keeps the program reading.
    let pipe = scratch.path().join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let mut command = kindred(&["prepare"]);
    command.arg(&pipe).arg("--out").arg(scratch.path().join("model"));
    let child = command.stderr(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let writing = std::thread::spawn({
        let pipe = pipe.clone();
        move || {
            let mut pipe = fs::File::options().write(true).open(pipe).unwrap();
            // Ends with a broken pipe, when the reader is gone.
            for row in 0u64.. {
                if writeln!(pipe, "word{row} 1 2 3 4 5 6 7 8").is_err() {
                    return;
                }
            }
        }
    });
    std::thread::sleep(std::time::Duration::from_millis(300));
    let id = child.id().to_string();
    assert!(Command::new("kill").args(["-s", "TERM", &id]).status().unwrap().success());
    let output = child.wait_with_output().unwrap();
    writing.join().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", said(&output));
    let parts = ["nothing was written", "the same command begins anew"];
    assert!(parts.iter().all(|part| said(&output).contains(part)), "{}", said(&output));
    let left: Vec<_> =
        fs::read_dir(scratch.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(left, ["pipe"]);
}
