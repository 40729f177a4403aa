//! The structure of the repository: which crate and which module may use which, as ARCHITECTURE.md
//! draws it; that no two files import each other; that every source file begins with what it is
//! for; that names of one system are compiled only there; that every path that a document names
//! exists; and that the recipes of CONTRIBUTING.md are what changes touched.

mod circles;
mod dependencies;
pub(crate) mod files;
mod heads;
mod modules;
mod named_paths;
mod order;
mod platforms;
mod recipes;
mod systems;
mod tokens;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use order::Order;

const SECTION: &str = "Which module may use which";

/// The crates, by the names of their folders.
fn crates() -> BTreeSet<String> {
    let folders = fs::read_dir(files::top().join("crates")).expect("there are crates");
    let name = |entry: fs::DirEntry| entry.file_name().into_string().expect("UTF-8");
    folders.map(|entry| name(entry.expect("an entry"))).collect()
}

fn drawn() -> std::collections::BTreeMap<String, Order> {
    order::drawn(&files::read(&files::top(), Path::new("ARCHITECTURE.md")), SECTION)
}

#[test]
fn modules_use_only_those_below_them() {
    let drawn = drawn();
    let mut faults = Vec::new();
    for name in crates() {
        let modules = modules::of_crate(&files::top(), &Path::new("crates").join(&name));
        match drawn.get(&name) {
            Some(order) => {
                faults
                    .extend(order.faults(&modules).iter().map(|fault| format!("{name}: {fault}")));
            }
            None => faults.push(format!("{name}: ARCHITECTURE.md has no order of its modules")),
        }
    }
    assert!(faults.is_empty(), "by \"{SECTION}\" of ARCHITECTURE.md:\n{}", faults.join("\n"));
}

#[test]
fn no_two_files_import_each_other() {
    let mut folders: Vec<_> = crates().iter().map(|name| Path::new("crates").join(name)).collect();
    folders.push("bindings/python".into());
    let mut faults = Vec::new();
    for folder in folders {
        for (one, other) in circles::of_crate(&files::top(), &folder).strangers {
            let (source, one, other) = (folder.join("src"), one.display(), other.display());
            faults.push(format!("{}: {one} and {other}", source.display()));
        }
    }
    assert!(faults.is_empty(), "move what both need into a third file:\n{}", faults.join("\n"));
}

#[test]
fn crates_use_only_those_below_them() {
    let (drawn, crates) = (drawn(), crates());
    let order = &drawn["crates"];
    let known: BTreeSet<&str> = crates.iter().map(String::as_str).collect();
    assert_eq!(order.names(), known, "the crates, and the order of ARCHITECTURE.md");
    let mut faults = Vec::new();
    for name in &crates {
        let manifest =
            files::read(&files::top(), &Path::new("crates").join(name).join("Cargo.toml"));
        faults.extend(faults_of_manifest(order, name, &manifest));
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// What goes against the order in a crate's manifest. Tests may also use what stands beside their
/// crate.
fn faults_of_manifest(order: &Order, name: &str, manifest: &str) -> Vec<String> {
    let manifest: toml::Table = toml::from_str(manifest).expect("a manifest is TOML");
    let mut faults = Vec::new();
    for (section, may_be_beside) in
        [("dependencies", false), ("build-dependencies", false), ("dev-dependencies", true)]
    {
        let of_target = manifest.get("target").and_then(|target| target.as_table());
        let of_target = of_target.into_iter().flatten().map(|(_, target)| target.get(section));
        for dependencies in of_target.chain([manifest.get(section)]).flatten() {
            for dependency in dependencies.as_table().expect("a table").keys() {
                let (Some(from), Some(to)) = (order.level(name), order.level(dependency)) else {
                    continue;
                };
                if to > from || (to == from && !may_be_beside) {
                    faults.push(format!("crates/{name}/Cargo.toml: {section} has `{dependency}`"));
                }
            }
        }
    }
    faults
}

#[test]
fn a_crate_that_uses_one_above_it_is_named() {
    let order = &order::drawn("\n## X\n\n    crates: a < b, c < d\n", "X")["crates"];
    let faults = |manifest| faults_of_manifest(order, "b", manifest);
    assert_eq!(
        faults(
            "[dependencies]\na.workspace = true\nserde = \"1\"\n[dev-dependencies]\nc = { path = \"../c\" }"
        ),
        [""; 0]
    );
    for (manifest, fault) in [
        ("[dependencies]\nd.workspace = true", "dependencies has `d`"),
        ("[dependencies]\nc.workspace = true", "dependencies has `c`"),
        ("[build-dependencies.d]\nworkspace = true", "build-dependencies has `d`"),
        ("[dev-dependencies]\nd.workspace = true", "dev-dependencies has `d`"),
        ("[target.'cfg(unix)'.dependencies]\nd.workspace = true", "dependencies has `d`"),
    ] {
        assert_eq!(faults(manifest), [format!("crates/b/Cargo.toml: {fault}")]);
    }
}

#[test]
fn every_source_file_begins_with_what_it_is_for() {
    let faults = heads::faults(&files::top());
    assert!(faults.is_empty(), "these do not:\n{}", faults.join("\n"));
}

#[test]
fn names_of_one_system_are_compiled_only_there() {
    let mut folders: Vec<_> = crates().iter().map(|name| Path::new("crates").join(name)).collect();
    folders.push("bindings/python".into());
    let faults = folders.iter().flat_map(|folder| platforms::faults(&files::top(), folder));
    let faults: Vec<String> = faults.collect();
    assert!(faults.is_empty(), "put them under a `cfg`, with a fallback:\n{}", faults.join("\n"));
}

#[test]
fn every_path_that_a_document_names_exists() {
    let faults = named_paths::faults(&files::top());
    assert!(faults.is_empty(), "these do not:\n{}", faults.join("\n"));
}

/// What the chart has of docker's. They are copies, so that its folder is all that it needs.
const COPIES: [(&str, &str); 2] = [
    ("deploy/helm/kindred/files/rules.yml", "docker/prometheus/rules.yml"),
    ("deploy/helm/kindred/files/dashboard.json", "docker/grafana/kindred.json"),
];

#[test]
fn the_chart_has_the_rules_and_the_dashboard_of_docker() {
    for (copy, original) in COPIES {
        let [copied, own] =
            [copy, original].map(|path| files::read(&files::top(), Path::new(path)));
        assert!(copied == own, "they differ: cp {original} {copy}");
    }
}

/// The symbolic links below a folder.
fn links(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).expect("the folder can be listed") {
        let entry = entry.expect("an entry");
        let kind = entry.file_type().expect("a type");
        if kind.is_symlink() {
            found.push(entry.path());
        } else if kind.is_dir() {
            found.extend(links(&entry.path()));
        }
    }
    found
}

/// Tools that deploy from a repository refuse links out of a folder, and some systems have none.
#[test]
fn folders_that_are_deployed_have_no_links() {
    for folder in ["deploy/helm", "deploy/systemd", "docker"] {
        assert_eq!(links(&files::top().join(folder)), [""; 0].map(PathBuf::from));
    }
    #[cfg(unix)]
    {
        let scratch = tempfile::tempdir().expect("a folder");
        let (inner, link) = (scratch.path().join("inner"), scratch.path().join("inner/link"));
        fs::create_dir(&inner).expect("it can be made");
        std::os::unix::fs::symlink("nowhere", &link).expect("it can be made");
        assert_eq!(links(scratch.path()), [link]);
    }
}
