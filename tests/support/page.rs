//! The commands of a page of the documentation, run as a reader would type them one after the
//! other.

use std::path::Path;
use std::process::Command;

use super::{Reply, Service, errors, kindred, program, top};

/// The command that sends JSON on the pages, up to its quote.
const POST: &str = "curl -H 'Content-Type: application/json' -d '";

/// The commands of a page before a heading: its indented lines, joined where one goes on in the
/// next.
pub fn commands(page: &str, heading: &str) -> Vec<String> {
    let page = std::fs::read_to_string(top().join(page)).expect("the page can be read");
    let (part, _) = page.split_once(heading).expect("the page has the heading");
    let mut commands: Vec<String> = Vec::new();
    let mut goes_on = false;
    for line in part.lines().filter_map(|line| line.strip_prefix("    ")) {
        let (line, continued) = line.strip_suffix('\\').map_or((line, false), |line| (line, true));
        match commands.last_mut() {
            Some(last) if goes_on => last.push_str(line.trim_start()),
            _ => commands.push(line.to_owned()),
        }
        goes_on = continued;
    }
    commands
}

/// Runs commands in a folder, which has the data. The last `kindred serve` answers the commands
/// with `curl` or `--url` after it; returns the replies of the former.
pub fn run(commands: &[String], folder: &Path) -> Vec<Reply> {
    let (mut service, mut replies) = (None::<Service>, Vec::new());
    for line in commands {
        if let Some(arguments) = line.strip_prefix("kindred serve ") {
            let mut command = kindred(&["serve", "--listen", "127.0.0.1:0", "--log-level", "warn"]);
            command.args(arguments.split(' ')).current_dir(folder);
            service = Some(Service::spawn(command));
        } else if let Some(json) = line.strip_prefix(POST) {
            let (json, address) = json.split_once("' ").expect("JSON in quotes");
            let path = address.strip_prefix("127.0.0.1:8080").expect("the usual address");
            let body = serde_json::from_str(json).expect("JSON");
            let service = service.as_ref().expect("it is served before");
            replies.push(service.post(path, &body));
        } else {
            let served = service.as_ref().map(|service| service.url(""));
            let line = match served {
                Some(url) => &line.replace("http://127.0.0.1:8080", url.trim_end_matches('/')),
                None => line,
            };
            let mut shell = Command::new("sh");
            let functions = "kindred() { \"$KINDRED\" \"$@\"; }\n\
                             command -v jq > /dev/null || jq() { cat; }\n";
            shell.args(["-ec", &format!("{functions}{line}")]).current_dir(folder);
            shell.env("KINDRED", program()).env("XDG_CACHE_HOME", folder);
            let output = shell.output().expect("a shell");
            assert!(output.status.success(), "{line}: {}", errors(&output));
            assert!(line.contains('>') || !output.stdout.is_empty(), "{line} prints nothing");
        }
    }
    replies
}
