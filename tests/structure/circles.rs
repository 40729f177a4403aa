//! Which files of a crate import each other, read out of their `use` declarations and the paths in
//! their code.
//!
//! An import is of the file that has the item, also where a module between them has its name by a
//! `use`. Tests, links in documentation and `mod x;` are no imports.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::modules::{files_of_crate, module_path, read_tree};
use super::tokens::{Token, tokens};

/// How many names may stand for one another before a path is given up: they can go round in
/// circles, too.
const MOST_NAMES: usize = 8;

/// Two files, the first before the second in order.
pub(crate) type Pair = (PathBuf, PathBuf);

/// The pairs of files that import each other.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Circles {
    /// Neither is a module inside the other.
    pub(crate) strangers: BTreeSet<Pair>,
    /// One is. It may use what the other defines, as `use super::Thing` does.
    pub(crate) families: BTreeSet<Pair>,
}

/// Reads the library of the crate in this folder.
pub(crate) fn of_crate(top: &Path, folder: &Path) -> Circles {
    of_files(&files_of_crate(top, folder))
}

/// Reads files, by their paths below `src`.
fn of_files(files: &[(PathBuf, String)]) -> Circles {
    let mut names = Names::default();
    let mut paths = Vec::new();
    let is_test = |module: &[String]| module.iter().any(|name| name == "tests");
    for (file, text) in files {
        let module = module_path(file);
        if !is_test(&module) {
            names.files.insert(module.clone(), file);
            let found = names.read(file, module, text);
            paths.extend(found.into_iter().map(|path| (file, path)));
        }
    }
    let mut imports = BTreeSet::new();
    for (from, path) in paths {
        for to in names.files_of(&path, MOST_NAMES) {
            imports.insert((from.as_path(), to));
        }
    }
    let mut circles = Circles::default();
    for &(a, b) in imports.iter().filter(|&&(a, b)| a < b && imports.contains(&(b, a))) {
        let (one, other) = (module_path(a), module_path(b));
        let is_family = one.starts_with(&other) || other.starts_with(&one);
        let pairs = if is_family { &mut circles.families } else { &mut circles.strangers };
        pairs.insert((a.to_owned(), b.to_owned()));
    }
    circles
}

/// A path, and the module in which it stands.
#[derive(Debug, Clone)]
struct Found {
    scope: Vec<String>,
    parts: Vec<String>,
}

/// The modules of a crate, and what the names in them stand for.
#[derive(Debug, Default)]
struct Names<'a> {
    /// By modules, those that are written inside others included.
    files: BTreeMap<Vec<String>, &'a Path>,
    /// What `use` brings into a module under a name. Conditional compilation can give a name two.
    used: BTreeMap<(Vec<String>, String), Vec<Found>>,
}

impl<'a> Names<'a> {
    /// Takes a file's modules and names, and returns its paths.
    fn read(&mut self, file: &'a Path, module: Vec<String>, text: &str) -> Vec<Found> {
        let tokens = tokens(text);
        let mut found = Vec::new();
        // Modules that are written inside others, each with the depth of braces that it is in.
        let (mut scope, mut outer) = (module, Vec::new());
        let (mut at, mut depth) = (0, 0_usize);
        while at < tokens.len() {
            let word = |at: usize| match tokens.get(at) {
                Some((_, Token::Word(word))) => Some(&word[..]),
                _ => None,
            };
            let is = |at: usize, token| tokens.get(at).is_some_and(|(_, other)| *other == token);
            // The module of `pub(in path)` is one around this.
            let begins = |at: usize| {
                let is_place = at > 1 && word(at - 1) == Some("in") && is(at - 2, Token::Sign('('));
                at == 0 || !(is(at - 1, Token::Path) || is_place)
            };
            match &tokens[at].1 {
                Token::Word(keyword) if keyword == "mod" && is(at + 2, Token::Sign('{')) => {
                    let name = word(at + 1).unwrap_or_default();
                    if name == "tests" {
                        at = end_of_block(&tokens, at + 2);
                        continue;
                    }
                    scope.push(name.to_owned());
                    outer.push(depth);
                    self.files.insert(scope.clone(), file);
                    at += 1;
                }
                // `use<'a>` says what a type captures.
                Token::Word(keyword) if keyword == "use" && !is(at + 1, Token::Sign('<')) => {
                    at += 1;
                    let mut paths = Vec::new();
                    read_tree(&tokens, &mut at, &mut Vec::new(), &mut paths);
                    for (_, parts, name) in paths {
                        let path = Found { scope: scope.clone(), parts };
                        let name = match &name[..] {
                            "self" => path.parts.iter().rev().nth(1).cloned().unwrap_or_default(),
                            _ => name,
                        };
                        self.used.entry((scope.clone(), name)).or_default().push(path.clone());
                        found.push(path);
                    }
                    continue;
                }
                Token::Word(_) if is(at + 1, Token::Path) && begins(at) => {
                    let (mut paths, mut from) = (Vec::new(), at);
                    read_tree(&tokens, &mut from, &mut Vec::new(), &mut paths);
                    let path = |(_, parts, _)| Found { scope: scope.clone(), parts };
                    found.extend(paths.into_iter().map(path));
                }
                Token::Sign('{') => depth += 1,
                Token::Sign('}') => {
                    depth = depth.saturating_sub(1);
                    if outer.last() == Some(&depth) {
                        outer.pop();
                        scope.pop();
                    }
                }
                _ => {}
            }
            at += 1;
        }
        found
    }

    /// The files that a path leads to, by at most so many names; none if it leads to another crate.
    fn files_of(&self, path: &Found, names: usize) -> BTreeSet<&'a Path> {
        let Found { scope, parts } = path;
        match parts.first().map(|first| &first[..]) {
            Some("crate") => self.files_from(&[], &parts[1..], names),
            Some("self" | "super") => self.files_from(scope, parts, names),
            Some(first) if self.is_known(scope, first) => self.files_from(scope, parts, names),
            _ => BTreeSet::new(),
        }
    }

    /// Whether a name in a module is a module's in it, or one that `use` brought there.
    fn is_known(&self, scope: &[String], name: &str) -> bool {
        self.files.contains_key(&[scope, &[name.to_owned()]].concat())
            || self.used.contains_key(&(scope.to_vec(), name.to_owned()))
    }

    fn files_from(&self, scope: &[String], parts: &[String], names: usize) -> BTreeSet<&'a Path> {
        let mut module = scope.to_vec();
        for (at, part) in parts.iter().enumerate() {
            match &part[..] {
                "self" | "*" => {}
                "super" => drop(module.pop()),
                name => {
                    let used = self.used.get(&(module.clone(), name.to_owned()));
                    module.push(name.to_owned());
                    if self.files.contains_key(&module) {
                        continue;
                    }
                    module.pop();
                    if let Some(used) = used {
                        let Some(names) = names.checked_sub(1) else { return BTreeSet::new() };
                        let path = |stands_for: &Found| Found {
                            scope: stands_for.scope.clone(),
                            parts: [&stands_for.parts, &parts[at + 1..]].concat(),
                        };
                        let files = |stands_for| self.files_of(&path(stands_for), names);
                        return used.iter().flat_map(files).collect();
                    }
                    // An item of this module.
                    break;
                }
            }
        }
        self.files.get(&module).copied().into_iter().collect()
    }
}

/// Where the block ends that begins here.
fn end_of_block(tokens: &[(usize, Token)], from: usize) -> usize {
    let mut depth = 0_usize;
    for (at, (_, token)) in tokens.iter().enumerate().skip(from) {
        match token {
            Token::Sign('{') => depth += 1,
            Token::Sign('}') => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return at + 1;
        }
    }
    tokens.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn circles(files: &[(&str, &str)]) -> Circles {
        let files: Vec<(PathBuf, String)> =
            files.iter().map(|(path, text)| (path.into(), (*text).to_owned())).collect();
        of_files(&files)
    }

    fn pairs(pairs: &[(&str, &str)]) -> BTreeSet<Pair> {
        pairs.iter().map(|(a, b)| (a.into(), b.into())).collect()
    }

    #[test]
    fn imports_of_every_form_close_a_circle() {
        for text in [
            "use super::c::See;",
            "use crate::a::c;",
            "use crate::a::{Own, c::{See as Its, self}};",
            "fn f() -> super::c::See {}",
            "use crate::a; fn f() { a::c::g() }",
            "mod inside { use super::super::c; }",
            // By a name that a module between them has for it.
            "use super::See;",
            "use super::Other;",
            "use crate::See;",
            "fn f(x: u8) { for y in super::c::g() {} }",
        ] {
            let files = [
                ("lib.rs", "mod a; pub use a::See;"),
                ("a/mod.rs", "mod b; mod c; pub use self::c::See; use c::See as Other;"),
                ("a/b.rs", text),
                ("a/c.rs", "use super::b::Bee;"),
            ];
            assert_eq!(circles(&files).strangers, pairs(&[("a/b.rs", "a/c.rs")]), "{text}");
        }
    }

    #[test]
    fn what_is_no_import_closes_none() {
        for text in [
            "#[cfg(test)] mod tests { use super::super::c; fn f() {} }",
            "/// [`X`](super::c)\nfn f() {}",
            "// use super::c;\nconst C: &str = \"super::c\";",
            "mod c; use c::X; use self::c::Y;",
            "use super::b::X; use std::c::Y; use elsewhere::c::Z; use super::Own;",
            "pub(in crate::a) fn f() -> impl Iterator + use<'_> {}",
            "mod tests {} fn f() {}",
        ] {
            let files = [
                ("lib.rs", "mod a;"),
                ("a/mod.rs", "mod b; mod c; pub struct Own; use round::round;"),
                ("a/b.rs", text),
                ("a/b/c.rs", ""),
                ("a/b/tests.rs", "use crate::a::c;"),
                ("a/c.rs", "use super::b::Bee;"),
            ];
            assert_eq!(circles(&files).strangers, BTreeSet::new(), "{text}");
        }
    }

    #[test]
    fn a_module_and_one_inside_it_are_a_family() {
        let files = [
            ("lib.rs", "mod a; struct Top;"),
            ("a/mod.rs", "mod b; use b::Bee; struct Own;"),
            ("a/b.rs", "use super::Own; use crate::Top; use crate::Top as Other;"),
        ];
        let found = circles(&files);
        assert_eq!(found.strangers, BTreeSet::new());
        assert_eq!(found.families, pairs(&[("a/b.rs", "a/mod.rs")]));
    }

    #[test]
    fn names_that_go_round_in_circles_lead_nowhere() {
        let files = [("lib.rs", ""), ("a.rs", "use super::b::X;"), ("b.rs", "use super::a::X;")];
        assert_eq!(circles(&files), Circles::default());
    }
}
