//! Which top-level module of a crate uses which, read out of its source: `use` declarations with
//! all their groups, paths in expressions and types, test code, and links in documentation.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::files;
use super::tokens::{Token, tokens};

/// A place where one top-level module names another.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Use {
    pub(crate) from: String,
    pub(crate) to: String,
    pub(crate) file: PathBuf,
    pub(crate) line: usize,
}

/// The top-level modules of a crate, and how they use each other.
#[derive(Debug, Default)]
pub(crate) struct Modules {
    pub(crate) names: BTreeSet<String>,
    pub(crate) uses: BTreeSet<Use>,
}

/// Reads the library of the crate in this folder.
pub(crate) fn of_crate(top: &Path, folder: &Path) -> Modules {
    let source = folder.join("src");
    let mut modules = of_files(&files_of_crate(top, folder));
    modules.uses = modules
        .uses
        .into_iter()
        .map(|found| Use { file: source.join(&found.file), ..found })
        .collect();
    modules
}

/// The files of the library of the crate in this folder, by their paths below `src`.
pub(crate) fn files_of_crate(top: &Path, folder: &Path) -> Vec<(PathBuf, String)> {
    let source = folder.join("src");
    files::below(top, &source, |name| name.ends_with(".rs"))
        .into_iter()
        .map(|path| (path.strip_prefix(&source).expect("below it").to_owned(), path))
        // A program is a crate of its own.
        .filter(|(inside, _)| inside != Path::new("main.rs") && !inside.starts_with("bin"))
        .map(|(inside, path)| (inside, files::read(top, &path)))
        .collect()
}

/// Reads files, by their paths below `src`.
pub(crate) fn of_files(files: &[(PathBuf, String)]) -> Modules {
    let mut modules = Modules::default();
    let mut root = Root::default();
    for (path, text) in files {
        match module_path(path).first() {
            Some(name) => drop(modules.names.insert(name.clone())),
            None => root = Root::read(text),
        }
    }
    for (path, text) in files {
        let module = module_path(path);
        if module.is_empty() {
            continue;
        }
        for (line, target) in paths(&module, text) {
            for to in root.modules_of(&target, &modules.names) {
                if to != module[0] {
                    let from = module[0].clone();
                    modules.uses.insert(Use { from, to, file: path.clone(), line });
                }
            }
        }
    }
    modules
}

/// The modules of a file, from the top; none for `lib.rs`.
pub(crate) fn module_path(file: &Path) -> Vec<String> {
    let mut parts: Vec<String> =
        file.iter().map(|part| part.to_str().expect("UTF-8").to_owned()).collect();
    let last = parts.pop().expect("a name");
    match last.trim_end_matches(".rs") {
        "mod" | "lib" => {}
        name => parts.push(name.to_owned()),
    }
    parts
}

/// What `lib.rs` brings to the top of the crate.
#[derive(Debug, Default)]
struct Root {
    /// Names that stand at the top for something in a module.
    reexports: BTreeMap<String, String>,
    /// Modules all of whose names do.
    globs: BTreeSet<String>,
}

impl Root {
    fn read(text: &str) -> Self {
        let mut root = Self::default();
        let tokens = tokens(text);
        for at in 0..tokens.len() {
            if tokens[at].1 != Token::Word("use".into()) {
                continue;
            }
            let mut found = Vec::new();
            let mut at = at + 1;
            read_tree(&tokens, &mut at, &mut Vec::new(), &mut found);
            for (_, path, name) in found {
                match path.iter().find(|part| !["self", "crate"].contains(&&part[..])) {
                    Some(module) if path.last().is_some_and(|last| last == "*") => {
                        root.globs.insert(module.clone());
                    }
                    Some(module) => drop(root.reexports.insert(name, module.clone())),
                    None => {}
                }
            }
        }
        root
    }

    /// The top-level modules that a path from the top of the crate leads to.
    fn modules_of(&self, path: &[String], names: &BTreeSet<String>) -> Vec<String> {
        match path.first() {
            Some(first) if names.contains(first) => vec![first.clone()],
            // Everything at the top of the crate, and so of all modules.
            Some(first) if first == "*" => names.iter().cloned().collect(),
            Some(first) => match self.reexports.get(first) {
                Some(module) if names.contains(module) => vec![module.clone()],
                // Of another crate.
                Some(_) => Vec::new(),
                // An item of `lib.rs` itself, unless it may be one of a module.
                None => self.globs.iter().cloned().collect(),
            },
            None => Vec::new(),
        }
    }
}

/// Reads what stands behind `::` or `use`: a path, or a group of them. For each its line, its parts
/// and the name that it has afterwards.
pub(crate) fn read_tree(
    tokens: &[(usize, Token)],
    at: &mut usize,
    parts: &mut Vec<String>,
    found: &mut Vec<(usize, Vec<String>, String)>,
) {
    let depth = parts.len();
    let Some((line, token)) = tokens.get(*at) else { return };
    match token {
        Token::Word(word) => {
            parts.push(word.clone());
            *at += 1;
            if let Some((_, Token::Path)) = tokens.get(*at) {
                *at += 1;
                read_tree(tokens, at, parts, found);
            } else {
                let mut name = word.clone();
                if tokens.get(*at).is_some_and(|(_, token)| *token == Token::Word("as".into()))
                    && let Some((_, Token::Word(other))) = tokens.get(*at + 1)
                {
                    name = other.clone();
                    *at += 2;
                }
                found.push((*line, parts.clone(), name));
            }
        }
        Token::Sign('{') => {
            *at += 1;
            while let Some((_, token)) = tokens.get(*at) {
                match token {
                    Token::Sign('}') => {
                        *at += 1;
                        break;
                    }
                    Token::Word(_) | Token::Sign('{' | '*') => read_tree(tokens, at, parts, found),
                    _ => *at += 1,
                }
            }
        }
        Token::Sign('*') => {
            parts.push("*".to_owned());
            found.push((*line, parts.clone(), "*".to_owned()));
            *at += 1;
        }
        // A type's arguments: the path has ended.
        _ => found.push((*line, parts.clone(), String::new())),
    }
    parts.truncate(depth);
}

/// All paths in a file that begin with `crate` or leave their module by `super`, from the top of
/// the crate.
fn paths(module: &[String], text: &str) -> Vec<(usize, Vec<String>)> {
    let mut found = Vec::new();
    let tokens = tokens(text);
    // Modules that are written inside others, each with the depth of braces that it is in.
    let (mut inside, mut depth) = (Vec::<(String, usize)>::new(), 0_usize);
    let mut at = 0;
    while at < tokens.len() {
        let (line, token) = &tokens[at];
        let here: Vec<String> =
            module.iter().cloned().chain(inside.iter().map(|(name, _)| name.clone())).collect();
        match token {
            Token::Doc(text) => {
                // As in code: what matters of a link is its path.
                let words = super::tokens::tokens(text.trim_start_matches(['/', '!']));
                found.extend(rooted(&here, &words).into_iter().map(|(_, path)| (*line, path)));
            }
            Token::Word(word) if word == "mod" => {
                if let (Some((_, Token::Word(name))), Some((_, Token::Sign('{')))) =
                    (tokens.get(at + 1), tokens.get(at + 2))
                {
                    inside.push((name.clone(), depth));
                }
            }
            Token::Sign('{') => depth += 1,
            Token::Sign('}') => {
                depth = depth.saturating_sub(1);
                if inside.last().is_some_and(|(_, outer)| *outer == depth) {
                    inside.pop();
                }
            }
            _ => {}
        }
        if let Some(paths) = rooted_at(&here, &tokens, at) {
            found.extend(paths);
        }
        at += 1;
    }
    found
}

fn rooted(here: &[String], tokens: &[(usize, Token)]) -> Vec<(usize, Vec<String>)> {
    (0..tokens.len()).filter_map(|at| rooted_at(here, tokens, at)).flatten().collect()
}

/// The paths that begin here, if any do: one, or several with a group.
fn rooted_at(
    here: &[String],
    tokens: &[(usize, Token)],
    at: usize,
) -> Option<Vec<(usize, Vec<String>)>> {
    let Token::Word(word) = &tokens[at].1 else { return None };
    let is_part = at > 0 && tokens[at - 1].1 == Token::Path;
    if is_part || tokens.get(at + 1)?.1 != Token::Path {
        return None;
    }
    let mut up = match &word[..] {
        "crate" => here.len(),
        "super" => 1,
        "self" if tokens.get(at + 2)?.1 == Token::Word("super".into()) => 0,
        _ => return None,
    };
    let mut at = at + 2;
    while tokens.get(at)?.1 == Token::Word("super".into()) {
        up += 1;
        at += 1;
        if tokens.get(at)?.1 == Token::Path {
            at += 1;
        }
    }
    let mut found = Vec::new();
    let mut start = here[..here.len().saturating_sub(up)].to_vec();
    read_tree(tokens, &mut at, &mut start, &mut found);
    Some(found.into_iter().map(|(line, path, _)| (line, path)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn uses(files: &[(&str, &str)]) -> Vec<(String, String, usize)> {
        let files: Vec<(PathBuf, String)> =
            files.iter().map(|(path, text)| (path.into(), (*text).to_owned())).collect();
        let found = of_files(&files).uses.into_iter();
        found.map(|found| (found.from, found.to, found.line)).collect()
    }

    fn of_a(text: &str) -> Vec<(String, usize)> {
        let root = "pub mod a;\npub mod b;\nmod c;\npub use b::Bee;\npub use c::{Sea, inner::Deep as Deeper};\n\
                    pub(crate) struct Top;\n";
        let files = [("lib.rs", root), ("a.rs", text), ("b/mod.rs", ""), ("c.rs", "")];
        uses(&files).into_iter().map(|(_, to, line)| (to, line)).collect()
    }

    fn expected(found: &[(&str, usize)]) -> Vec<(String, usize)> {
        found.iter().map(|&(to, line)| (to.to_owned(), line)).collect()
    }

    #[test]
    fn paths_of_every_form_are_found() {
        for (text, to) in [
            ("use crate::b::X;", &[("b", 1)][..]),
            ("use crate::{a::Y, b::{self, Z}, c::W as V};", &[("b", 1), ("c", 1)]),
            ("\n\nfn f(x: crate::b::X<crate::c::Y>) {}", &[("b", 3), ("c", 3)]),
            ("use super::b::X;", &[("b", 1)]),
            (
                "mod inner { use super::super::b; fn f() { super::super::c::g() } }",
                &[("b", 1), ("c", 1)],
            ),
            ("mod inner { mod deep {} }\nuse super::b;", &[("b", 2)]),
            ("#[cfg(test)]\nmod tests {\n    use crate::c;\n}", &[("c", 3)]),
            ("//! [`X`](crate::b::X)\n", &[("b", 1)]),
            ("/// As [`super::c`] does.\nfn f() {}", &[("c", 1)]),
            ("fn f() { $crate::b::g!() }", &[("b", 1)]),
            ("use crate::{\n    b,\n    c,\n};", &[("b", 2), ("c", 3)]),
            // By a name that the top of the crate has from a module.
            ("use crate::{Bee, Deeper, Top};", &[("b", 1), ("c", 1)]),
            // All of the crate.
            ("use crate::*;", &[("b", 1), ("c", 1)]),
            ("pub(in crate::a) fn f() { self::super::b::g::<u8>() }", &[("b", 1)]),
        ] {
            assert_eq!(of_a(text), expected(to), "{text}");
        }
    }

    #[test]
    fn what_is_no_path_is_not_taken_for_one() {
        for text in [
            "fn f() { g(\"crate::b::X\", r#\"use \" crate::c;\"#, 'c', '\\'', '\"') }",
            "// use crate::b;\n/* crate::c::X /* super::b */ */",
            "use crate::a::b; use self::b::X; use b::c; use std::c::X;",
            "mod inner { use super::b; }",
            "use super::Top; struct S<'b>(&'b str);",
        ] {
            assert_eq!(of_a(text), [], "{text}");
        }
    }

    #[test]
    fn files_deep_inside_a_module_belong_to_it() {
        let found = uses(&[
            ("lib.rs", ""),
            ("a/deep/x.rs", "use super::super::super::b;\nuse super::super::c;"),
            ("a/deep/mod.rs", "use super::super::b;\nuse super::b;"),
            ("b.rs", ""),
            ("c.rs", ""),
        ]);
        let a_to_b = ("a".to_owned(), "b".to_owned(), 1);
        assert_eq!(found, [a_to_b.clone(), a_to_b]);
    }
}
