//! Names that only some systems have, in code that others compile, too: paths such as
//! `std::os::unix`, files such as `/proc/self/stat`, and crates that the manifest has for some
//! systems only. What counts are the conditions (`cfg`) of the code, of the modules that it is in,
//! and of the `mod` declarations that lead to its file.
//!
//! Not everything is known here: `scripts/check-platforms` has the compiler check it.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::files;
use super::systems::{self, Systems};
use super::tokens::{Token, tokens_and_texts};

/// Parts of paths, and the systems that have them.
const NAMES: [(&[&str], Systems); 20] = [
    (&["os", "unix"], Systems::UNIX),
    (&["os", "fd"], Systems::UNIX),
    (&["os", "linux"], Systems::LINUX),
    (&["os", "macos"], Systems::MACOS),
    (&["os", "windows"], Systems::WINDOWS),
    (&["signal", "unix"], Systems::UNIX),
    (&["signal", "windows"], Systems::WINDOWS),
    (&["UnixStream"], Systems::UNIX),
    (&["UnixListener"], Systems::UNIX),
    (&["UnixDatagram"], Systems::UNIX),
    (&["PermissionsExt"], Systems::UNIX),
    // Of memmap2, rustix and libc.
    (&["advise"], Systems::UNIX),
    (&["advise_range"], Systems::UNIX),
    (&["Advice"], Systems::UNIX),
    (&["HugePage"], Systems::LINUX),
    (&["renameat_with"], Systems::UNIX),
    (&["CpuSet"], Systems::LINUX),
    (&["sched_getaffinity"], Systems::LINUX),
    (&["sched_setaffinity"], Systems::LINUX),
    (&["arch_prctl"], Systems::LINUX),
];

/// Beginnings of texts, and the systems that have such files.
const FILES: [(&str, Systems); 4] = [
    ("/proc/", Systems::LINUX),
    ("/sys/", Systems::LINUX),
    ("/dev/", Systems::UNIX),
    ("/etc/", Systems::UNIX),
];

/// Words that begin what does not end with a comma.
const OF_ITEMS: [&str; 22] = [
    "async",
    "const",
    "enum",
    "extern",
    "fn",
    "for",
    "if",
    "impl",
    "let",
    "loop",
    "macro_rules",
    "match",
    "mod",
    "return",
    "static",
    "struct",
    "trait",
    "type",
    "union",
    "unsafe",
    "use",
    "while",
];

/// The faults of the crate in this folder, with file and line.
pub(crate) fn faults(top: &Path, folder: &Path) -> Vec<String> {
    let crates = crates_of_systems(&files::read(top, &folder.join("Cargo.toml")));
    let mut all = files::below(top, &folder.join("src"), |name| name.ends_with(".rs"));
    let build = folder.join("build.rs");
    if top.join(&build).exists() {
        all.push(build);
    }
    let is_root = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str());
        matches!(name, Some("lib.rs" | "main.rs" | "build.rs"))
    };
    let mut waiting: Vec<(PathBuf, Systems)> =
        all.iter().filter(|path| is_root(path)).map(|path| (path.clone(), Systems::ALL)).collect();
    let (mut read, mut faults) = (BTreeSet::new(), Vec::new());
    loop {
        while let Some((path, systems)) = waiting.pop() {
            // A module may also be elsewhere: beside another crate's build script.
            if !all.contains(&path) || !read.insert(path.clone()) {
                continue;
            }
            let (found, modules) = of_file(&path, &files::read(top, &path), systems, &crates);
            faults.extend(found);
            waiting.extend(modules);
        }
        // What no `mod` leads to, such as a program of its own.
        match all.iter().find(|path| !read.contains(*path)) {
            Some(path) => waiting.push((path.clone(), Systems::ALL)),
            None => break,
        }
    }
    faults
}

/// The crates that a manifest has for some systems only.
fn crates_of_systems(manifest: &str) -> Vec<(String, Systems)> {
    let manifest: toml::Table = toml::from_str(manifest).expect("a manifest is TOML");
    let of_target = manifest.get("target").and_then(|target| target.as_table());
    let of_target = of_target.into_iter().flatten().filter_map(|(condition, target)| {
        let crates = target.get("dependencies")?.as_table()?;
        let systems = systems::of_cfg(condition);
        Some(crates.keys().map(move |name| (name.replace('-', "_"), systems)))
    });
    of_target.flatten().collect()
}

/// The faults of a file that is compiled on these systems; and the files of its modules, with the
/// systems that they are compiled on.
fn of_file(
    path: &Path,
    text: &str,
    systems: Systems,
    crates: &[(String, Systems)],
) -> (Vec<String>, Vec<(PathBuf, Systems)>) {
    let parent = path.parent().expect("a file is in a folder");
    let stem = path.file_stem().and_then(|stem| stem.to_str()).expect("UTF-8");
    let folder = match stem {
        "lib" | "main" | "mod" | "build" => parent.to_owned(),
        stem => parent.join(stem),
    };
    let tokens = tokens_and_texts(text);
    let mut reader = Reader { path, tokens, crates, faults: Vec::new(), modules: Vec::new() };
    reader.group(0, systems, &folder);
    (reader.faults, reader.modules)
}

struct Reader<'a> {
    path: &'a Path,
    tokens: Vec<(usize, Token)>,
    crates: &'a [(String, Systems)],
    faults: Vec<String>,
    modules: Vec<(PathBuf, Systems)>,
}

impl Reader<'_> {
    fn sign(&self, at: usize) -> Option<char> {
        match self.tokens.get(at) {
            Some((_, Token::Sign(sign))) => Some(*sign),
            _ => None,
        }
    }

    fn word(&self, at: usize) -> Option<&str> {
        match self.tokens.get(at) {
            Some((_, Token::Word(word))) => Some(word),
            _ => None,
        }
    }

    /// Reads up to the sign that closes the group that this is in. Returns its place.
    fn group(&mut self, mut at: usize, mut systems: Systems, folder: &Path) -> usize {
        while at < self.tokens.len() && !matches!(self.sign(at), Some(')' | ']' | '}')) {
            if self.sign(at) == Some('#') && self.sign(at + 1) == Some('!') {
                let (end, condition, _) = self.attribute(at + 2);
                systems = systems.and(condition);
                at = end;
            } else if self.sign(at) == Some('#') && self.sign(at + 1) == Some('[') {
                at = self.with_attributes(at, systems, folder);
            } else {
                at = self.token(at, systems, folder);
            }
        }
        at
    }

    /// Reads an attribute from its `[` on. Returns the place behind it, the systems that it leaves,
    /// and the file that it names.
    fn attribute(&self, at: usize) -> (usize, Systems, Option<String>) {
        let (mut end, mut depth) = (at, 0);
        while end < self.tokens.len() {
            match self.sign(end) {
                Some('[' | '(' | '{') => depth += 1,
                Some(']' | ')' | '}') => depth -= 1,
                _ => {}
            }
            end += 1;
            if depth == 0 {
                break;
            }
        }
        let inside = &self.tokens[(at + 1).min(end)..end];
        let file = match inside {
            [(_, Token::Word(word)), _, (_, Token::Text(file)), ..] if word == "path" => {
                Some(file.clone())
            }
            _ => None,
        };
        (end, systems::of_tokens(inside), file)
    }

    /// Reads attributes and what they belong to: an item, a statement, an expression, a field or an
    /// arm.
    fn with_attributes(&mut self, mut at: usize, mut systems: Systems, folder: &Path) -> usize {
        let mut named = None;
        loop {
            match (self.sign(at), self.tokens.get(at)) {
                (Some('#'), _) => {
                    let (end, condition, file) = self.attribute(at + 1);
                    systems = systems.and(condition);
                    named = file.or(named);
                    at = end;
                }
                (_, Some((_, Token::Doc(_)))) => at += 1,
                _ => break,
            }
        }
        if let Some(file) = named {
            // From the folder of this file, wherever the module is.
            let parent = self.path.parent().expect("a file is in a folder");
            self.modules.push((parent.join(file), systems));
        }
        let mut first = at;
        if self.word(first) == Some("pub") {
            first += 1;
            if self.sign(first) == Some('(') {
                while self.sign(first).is_some_and(|sign| sign != ')') || self.word(first).is_some()
                {
                    first += 1;
                }
                first += 1;
            }
        }
        if self.word(first) == Some("mod") && self.sign(first + 2) == Some('{') {
            return self.token(first, systems, folder);
        }
        let is_item = self.word(first).is_some_and(|word| OF_ITEMS.contains(&word));
        while at < self.tokens.len() {
            match self.sign(at) {
                Some(')' | ']' | '}') => return at,
                Some(';') => return at + 1,
                Some(',') if !is_item => return at + 1,
                Some('{') => {
                    at = self.token(at, systems, folder);
                    let goes_on = self.word(at) == Some("else")
                        || matches!(self.sign(at), Some('.' | '?' | ';' | ','));
                    if !goes_on {
                        return at;
                    }
                }
                _ => at = self.token(at, systems, folder),
            }
        }
        at
    }

    /// Reads a token, or a group of them. Returns the place behind it.
    fn token(&mut self, at: usize, systems: Systems, folder: &Path) -> usize {
        let (line, token) = self.tokens[at].clone();
        match token {
            Token::Sign('(' | '[' | '{') => return self.group(at + 1, systems, folder) + 1,
            Token::Word(word) if word == "mod" => {
                if let Some(name) = self.word(at + 1).map(str::to_owned) {
                    let folder = folder.join(&name);
                    if self.sign(at + 2) == Some(';') {
                        self.modules.push((folder.with_extension("rs"), systems));
                        self.modules.push((folder.join("mod.rs"), systems));
                    } else if self.sign(at + 2) == Some('{') {
                        return self.group(at + 3, systems, &folder) + 1;
                    }
                }
            }
            Token::Word(word) => {
                for (name, has) in self.names(at, &word) {
                    self.check(line, &name, systems, has);
                }
            }
            Token::Text(text) => {
                for (start, has) in FILES {
                    if text.starts_with(start) {
                        self.check(line, &format!("{text:?}"), systems, has);
                    }
                }
            }
            _ => {}
        }
        at + 1
    }

    /// The known names that begin at this word.
    fn names(&self, at: usize, word: &str) -> Vec<(String, Systems)> {
        let is_path = matches!(self.tokens.get(at + 1), Some((_, Token::Path)));
        let of_crates = self.crates.iter().filter(|(name, _)| is_path && name == word);
        let mut found: Vec<_> = of_crates.cloned().collect();
        for (path, has) in NAMES {
            let is_it = match path {
                [name] => *name == word,
                [first, second] => *first == word && is_path && self.leads_to(at + 2, second),
                _ => false,
            };
            if is_it {
                found.push((path.join("::"), has));
            }
        }
        found
    }

    /// Whether what follows `::` is this name, or a group that has it.
    fn leads_to(&self, at: usize, name: &str) -> bool {
        if self.sign(at) != Some('{') {
            return self.word(at) == Some(name);
        }
        let group = (at..self.tokens.len()).take_while(|&at| self.sign(at) != Some(';'));
        group.into_iter().any(|at| self.word(at) == Some(name))
    }

    fn check(&mut self, line: usize, name: &str, systems: Systems, has: Systems) {
        let without = systems.names_besides(has);
        if !without.is_empty() {
            let (path, without) = (self.path.display(), without.join(" and "));
            self.faults.push(format!("{path}:{line}: {name} is not on {without}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults_of(text: &str) -> Vec<String> {
        let crates = [("rustix".to_owned(), Systems::UNIX), ("libc".to_owned(), Systems::LINUX)];
        let (faults, _) = of_file(Path::new("src/a.rs"), text, Systems::ALL, &crates);
        faults.into_iter().map(|fault| fault.replace("src/a.rs:", "")).collect()
    }

    #[test]
    fn names_without_a_condition_are_faults() {
        for (text, fault) in [
            ("use std::os::unix::fs::FileExt;", "1: os::unix is not on Windows"),
            ("use std::{\n fs, os::{fd::AsFd},\n};", "2: os::fd is not on Windows"),
            ("\nfn f() { rustix::fs::sync(); }", "2: rustix is not on Windows"),
            ("#[cfg(unix)] fn f() { libc::sync() }", "1: libc is not on macOS"),
            ("const A: &str = \"/proc/self\";", "1: \"/proc/self\" is not on macOS and Windows"),
            ("#[cfg(windows)] fn f() { map.advise(x) }", "1: advise is not on Windows"),
            ("#[cfg(not(unix))] use std::os::linux::x;", "1: os::linux is not on Windows"),
            ("#[cfg(feature = \"x\")] use libc::c_int;", "1: libc is not on macOS and Windows"),
            ("use tokio::signal::windows::ctrl_c;", "1: signal::windows is not on Linux and macOS"),
        ] {
            assert_eq!(faults_of(text), [fault], "{text}");
        }
    }

    #[test]
    fn names_under_a_condition_are_none() {
        for text in [
            "#![cfg(unix)]\nuse std::os::unix::fs::FileExt;",
            "#[cfg(unix)]\n#[allow(x)]\n/// Text.\npub(crate) fn f() -> Result<A, B> { rustix::f() }",
            "#[cfg(target_os = \"linux\")] mod linux { fn f() { libc::f(\"/proc/stat\"); } }",
            "mod a { #![cfg(unix)] use rustix::fs; }",
            "fn f() { #[cfg(unix)] { rustix::f(); } g() }",
            "fn f() { #[cfg(unix)] if a { b } else { rustix::f() } }",
            "fn f() { #[cfg(unix)] let (a, b) = (rustix::f(), rustix::g()); }",
            "struct S { #[cfg(unix)] a: rustix::A, b: u8 }",
            "struct S(#[cfg(unix)] rustix::A);",
            "fn f() { match a { #[cfg(unix)] A::B => rustix::f(), _ => 0 } }",
            "#[cfg(windows)] use std::os::windows::fs::FileExt;",
            "/// See std::os::unix and rustix::fs.\nfn f() {}\n// rustix::fs",
            "fn rustix() { my.rustix() }",
        ] {
            assert_eq!(faults_of(text), [""; 0], "{text}");
        }
    }

    #[test]
    fn a_condition_ends_with_what_it_belongs_to() {
        for text in [
            "#[cfg(unix)] fn f() {} fn g() { rustix::g() }",
            "#[cfg(unix)] use a::{b, c}; use rustix::g;",
            "struct S { #[cfg(unix)] a: u8, b: rustix::A }",
            "struct S(#[cfg(unix)] u8); type A = rustix::A;",
            "fn f() { #[cfg(unix)] g(); rustix::f() }",
            "fn f() { #[cfg(unix)] { g() } rustix::f() }",
            "fn f() { match a { #[cfg(unix)] A::B => 1, _ => rustix::f() } }",
            "mod a { #![cfg(unix)] } use rustix::g;",
            "#[cfg(unix)] mod a { fn f() {} } use rustix::g;",
        ] {
            assert_eq!(faults_of(text), ["1: rustix is not on Windows"], "{text}");
        }
    }

    #[test]
    fn modules_have_the_conditions_of_their_declarations() {
        let text = "mod a;\n#[cfg(unix)] pub mod b;\n#[cfg(test)] mod c { #[cfg(windows)] mod d; }\n\
                    #[path = \"../e.rs\"] #[cfg(windows)] mod f;";
        let (_, modules) = of_file(Path::new("src/x/mod.rs"), text, Systems::ALL, &[]);
        let has =
            |path: &str, systems| assert!(modules.contains(&(path.into(), systems)), "{path}");
        has("src/x/a.rs", Systems::ALL);
        has("src/x/a/mod.rs", Systems::ALL);
        has("src/x/b.rs", Systems::UNIX);
        has("src/x/c/d.rs", Systems::WINDOWS);
        has("src/x/../e.rs", Systems::WINDOWS);
        let (_, modules) = of_file(Path::new("src/x.rs"), "mod a;", Systems::UNIX, &[]);
        assert_eq!(modules[0], ("src/x/a.rs".into(), Systems::UNIX));
    }

    #[test]
    fn a_crate_for_some_systems_is_known_from_the_manifest() {
        let manifest =
            "[dependencies]\na = \"1\"\n[target.'cfg(unix)'.dependencies]\nb-c.workspace = true";
        assert_eq!(crates_of_systems(manifest), [("b_c".to_owned(), Systems::UNIX)]);
    }
}
