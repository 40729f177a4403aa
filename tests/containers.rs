//! What of docker/ can be checked without pulling an image: `scripts/check-containers`, with the
//! program under test. An image has the default features, and so has the program that TEST_KINDRED
//! names.

use std::process::Command;

use libtest_mimic::{Failed, Trial};

use crate::support::{program, top};

pub(crate) fn trials() -> Vec<Trial> {
    let trial = |name: &str, what: &str, test: fn() -> Result<(), Failed>| {
        let is_another = cfg!(any(feature = "cuda", feature = "parquet", feature = "traces"))
            && std::env::var_os("TEST_KINDRED").is_none();
        let why_not = match (what, is_another) {
            ("image", true) => Some("the program has further features".into()),
            _ => run(&["can", what]).err(),
        };
        if let Some(why) = &why_not {
            println!("{name} is skipped: {}", why.message().unwrap_or_default().trim());
        }
        Trial::test(format!("containers::{name}"), test).with_ignored_flag(why_not.is_some())
    };
    vec![
        trial("compose_finds_no_fault_and_nothing_has_rights", "compose", || run(&["compose"])),
        trial("the_image_is_small_and_runs_as_nobody_on_a_read_only_root", "image", || {
            run(&["image", "--binary", program().to_str().ok_or("a UTF-8 path")?])
        }),
    ]
}

fn run(arguments: &[&str]) -> Result<(), Failed> {
    let script = top().join("scripts/check-containers");
    let output = Command::new(script).args(arguments).output()?;
    let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    if output.status.success() { Ok(()) } else { Err(said.into()) }
}
