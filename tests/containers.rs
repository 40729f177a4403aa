//! What of docker/ can be checked without pulling an image: `scripts/check-containers`, with the program under test.

mod support;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use libtest_mimic::{Arguments, Failed, Trial};

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let trial = |name: &str, what: &str, test: fn() -> Result<(), Failed>| {
        let why_not = run(&["can", what]).err();
        if let Some(why) = &why_not {
            println!("{name} is skipped: {}", why.message().unwrap_or_default().trim());
        }
        Trial::test(name, test).with_ignored_flag(why_not.is_some())
    };
    let trials = vec![
        trial("compose_finds_no_fault_and_nothing_has_rights", "compose", || run(&["compose"])),
        trial("the_image_is_small_and_runs_as_nobody_on_a_read_only_root", "image", || {
            run(&["image", "--binary", support::program().to_str().ok_or("a UTF-8 path")?])
        }),
    ];
    libtest_mimic::run(&arguments, trials).exit_code()
}

fn top() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn run(arguments: &[&str]) -> Result<(), Failed> {
    let script = top().join("scripts/check-containers");
    let output = Command::new(script).args(arguments).output()?;
    let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    if output.status.success() { Ok(()) } else { Err(said.into()) }
}
