//! The unit deploy/systemd/kindred.service: its times and limits fit the settings, systemd takes
//! every line, and it is hardened.
//!
//! Without `systemd-analyze` (250 or later) the tests that need it are reported as ignored.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use crate::support::{program, top};
use clap::CommandFactory as _;
use libtest_mimic::{Failed, Trial};

const UNIT: &str = "deploy/systemd/kindred.service";

/// The highest exposure that is allowed, in tenths of systemd's 0 to 10.
const EXPOSURE: &str = "20";

pub(crate) fn trials() -> Vec<Trial> {
    let missing = !has_systemd();
    if missing {
        println!("some skipped: no systemd-analyze of 250 or later");
    }
    let trial = |name: &str, test: fn() -> Result<(), Failed>| {
        Trial::test(format!("systemd::{name}"), test)
    };
    vec![
        trial("the_unit_fits_the_settings", fits_the_settings),
        trial("systemd_takes_every_line", every_line).with_ignored_flag(missing),
        trial("the_unit_is_hardened", hardened).with_ignored_flag(missing),
    ]
}

fn has_systemd() -> bool {
    let Ok(output) = Command::new("systemd-analyze").arg("--version").output() else {
        return false;
    };
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let version = said.split_whitespace().nth(1).and_then(|number| number.parse().ok());
    version.is_some_and(|version: u32| version >= 250)
}

fn unit() -> Result<String, Failed> {
    Ok(fs::read_to_string(top().join(UNIT))?)
}

/// The value of a line, which is there once.
fn value<'a>(unit: &'a str, key: &str) -> &'a str {
    let values = unit.lines().filter_map(|line| line.strip_prefix(key)?.strip_prefix('='));
    let values: Vec<&str> = values.collect();
    let [value] = values[..] else { panic!("{key}: {values:?}") };
    value
}

fn fits_the_settings() -> Result<(), Failed> {
    let unit = unit()?;
    let settings: toml::Table = fs::read_to_string(top().join("config/kindred.toml"))?.parse()?;
    let setting = |name: &str| settings[name].as_integer().expect("a whole number");
    let number = |key: &str| -> Result<i64, Failed> { Ok(value(&unit, key).parse()?) };
    let drain = setting("drain_delay_ms") + setting("drain_timeout_ms");
    assert!(number("TimeoutStopSec")? * 1000 >= drain + 5000);
    assert!(number("LimitNOFILE")? >= setting("max_connections") + 256);
    // As `kindred serve --help` explains exit codes: 70 asks for a restart, 2 does not.
    assert_eq!(value(&unit, "Restart"), "on-failure");
    assert_eq!(value(&unit, "RestartPreventExitStatus"), "2");
    // Loading may take longer than systemd's 90 s, which would kill it.
    assert_eq!((value(&unit, "Type"), value(&unit, "TimeoutStartSec")), ("notify", "15min"));
    // States are told over a Unix socket.
    assert!(value(&unit, "RestrictAddressFamilies").contains("AF_UNIX"));

    let command: Vec<&str> = value(&unit, "ExecStart").split(' ').collect();
    assert_eq!(command[0], "/usr/local/bin/kindred");
    cli::Cli::command().try_get_matches_from(&command)?;
    // The guide installs the program and the settings where the unit looks for them.
    let guide = fs::read_to_string(top().join("docs/operating.md"))?;
    for path in ["/usr/local/bin/", "/etc/kindred.toml", "/var/lib/kindred", UNIT] {
        assert!(guide.contains(path), "docs/operating.md does not name {path}");
    }
    Ok(())
}

/// What `systemd-analyze` says of a unit that starts this program.
fn analyze(arguments: &[&str], unit: &str) -> Result<Output, Failed> {
    let scratch = tempfile::tempdir()?;
    let path = scratch.path().join(Path::new(UNIT).file_name().expect("a file"));
    let program = program();
    let program = program.to_str().ok_or("a path in UTF-8")?;
    fs::write(&path, unit.replace("/usr/local/bin/kindred", program))?;
    Ok(Command::new("systemd-analyze").args(arguments).arg(&path).output()?)
}

fn every_line() -> Result<(), Failed> {
    let unit = unit()?;
    // A line that systemd does not know is ignored, with a message.
    let said = |unit: &str| -> Result<String, Failed> {
        let output = analyze(&["verify", "--man=no"], unit)?;
        Ok(String::from_utf8([output.stdout, output.stderr].concat())?)
    };
    assert_eq!(said(&unit)?, "");
    for (line, other) in [("ProtectSystem=", "ProtectSytem="), ("=@system-service", "=@systems")] {
        assert!(unit.contains(line));
        assert_ne!(said(&unit.replace(line, other))?, "", "{other}");
    }
    Ok(())
}

fn hardened() -> Result<(), Failed> {
    let unit = unit()?;
    let threshold = format!("--threshold={EXPOSURE}");
    let arguments = ["security", "--offline=true", "--no-pager", &threshold];
    let output = analyze(&arguments, &unit)?;
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    // Without one of its lines it is exposed more.
    for line in ["CapabilityBoundingSet=\n", "SystemCallFilter=@system-service\n"] {
        assert!(unit.contains(line));
        let output = analyze(&arguments, &unit.replace(line, ""))?;
        assert!(!output.status.success(), "{line}");
    }
    Ok(())
}
