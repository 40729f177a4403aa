//! That every path of the repository that a document names in backticks exists.

use std::path::Path;

use pulldown_cmark::{Event, Parser};

use super::files;

/// Documents that tell of what was.
const HISTORY: [&str; 1] = ["CHANGELOG.md"];

/// Documents that also name code as it was, by the ends of its paths.
const TRIED: [&str; 1] = ["docs/tried.md"];

/// Folders at the top in which readers keep files of their own, as examples show, and which tools
/// make.
const NOT_OURS: [&str; 3] = ["models", "target", ".tools"];

/// The paths that do not exist, each with its document.
pub(crate) fn faults(top: &Path) -> Vec<String> {
    let folders: Vec<String> = std::fs::read_dir(top)
        .expect("the top can be listed")
        .map(|entry| entry.expect("an entry"))
        .filter(|entry| entry.path().is_dir())
        .map(|entry| entry.file_name().into_string().expect("UTF-8"))
        .filter(|name| !NOT_OURS.contains(&&name[..]))
        .collect();
    let mut faults = Vec::new();
    let code = code(top);
    for document in files::below(top, Path::new(""), |name| name.ends_with(".md")) {
        if HISTORY.iter().any(|history| document == Path::new(history)) {
            continue;
        }
        let text = files::read(top, &document);
        for path in named(&folders, &text) {
            if !top.join(path.trim_end_matches('/')).exists() {
                faults.push(format!("{}: `{path}`", document.display()));
            }
        }
        if TRIED.iter().any(|tried| document == Path::new(tried)) {
            continue;
        }
        for path in paths(&text).filter(|path| is_end_of_code(&folders, path)) {
            let end = format!("/{path}").replace("/src/", "/");
            if !code.iter().any(|file| file.ends_with(&end)) {
                faults.push(format!("{}: `{path}`", document.display()));
            }
        }
    }
    faults
}

/// The paths of the crates' code, as in `/scheduler/lane.rs`: without `src`.
fn code(top: &Path) -> Vec<String> {
    let files = files::below(top, Path::new(""), |name| name.ends_with(".rs")).into_iter();
    files.map(|file| format!("/{}", file.display()).replace("/src/", "/")).collect()
}

/// What a document has in backticks, written out.
pub(super) fn paths(document: &str) -> impl Iterator<Item = String> {
    let code = Parser::new(document).filter_map(|event| match event {
        Event::Code(code) => Some(code.into_string()),
        _ => None,
    });
    code.flat_map(|code| written_out(&code))
}

/// The paths that a document names, in the repository's folders.
fn named(folders: &[String], document: &str) -> Vec<String> {
    paths(document).filter(|path| is_ours(folders, path)).collect()
}

/// Whether it is the end of a path of code, as in `transport/threads.rs` and
/// `scheduler/src/tests.rs`.
fn is_end_of_code(folders: &[String], path: &str) -> bool {
    let top = path.split('/').next().unwrap_or_default();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/_-.".contains(c);
    path.ends_with(".rs") && path.chars().all(is_plain) && !folders.iter().any(|f| f == top)
}

/// `a/{b,c}` is two paths.
fn written_out(code: &str) -> Vec<String> {
    let Some((before, rest)) = code.split_once('{') else { return vec![code.to_owned()] };
    let Some((group, after)) = rest.split_once('}') else { return vec![code.to_owned()] };
    let one = |name: &str| format!("{before}{}{after}", name.trim());
    group.split(',').flat_map(|name| written_out(&one(name))).collect()
}

fn is_ours(folders: &[String], path: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+".contains(c);
    let in_folder =
        path.split_once('/').is_some_and(|(folder, _)| folders.iter().any(|f| f == folder));
    // As in `kernels/NAME.cu`.
    let stands_for_any = |part: &str| {
        let stem = part.split('.').next().unwrap_or_default();
        stem.len() > 1 && stem.chars().all(|c| c.is_ascii_uppercase()) && !part.ends_with(".md")
    };
    in_folder
        && path.chars().all(is_plain)
        && !path.contains("...")
        && !path.contains("node_modules")
        && !path.split('/').any(stands_for_any)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_in_backticks_are_told_from_other_code() {
        let folders = ["crates", "docs"].map(str::to_owned);
        let document = "`crates/a/src` and `docs/{b, c}.md`, `crates/x/`; not docs/d.md, `cargo x docs/e`, \
                        `docs/*.md`, `http/f.rs`, `GET /docs/{file}`, `crates`, `docs/NAME.cu`.\n\n    `docs/g.md`\n";
        assert_eq!(
            named(&folders, document),
            ["crates/a/src", "docs/b.md", "docs/c.md", "crates/x/"]
        );
    }

    #[test]
    fn a_path_that_does_not_exist_is_named() {
        let scratch = tempfile::tempdir().unwrap();
        let top = scratch.path();
        std::fs::create_dir_all(top.join("docs")).unwrap();
        std::fs::create_dir_all(top.join("crates/b/src/c")).unwrap();
        std::fs::write(top.join("crates/b/src/c/d.rs"), "").unwrap();
        let document =
            "`docs/a.md`, `docs/none.md`, `b/src/c/d.rs`, `b/c/{d, e}.rs`, `c/d.rs`, `x.rs`";
        std::fs::write(top.join("docs/a.md"), document).unwrap();
        std::fs::write(top.join("CHANGELOG.md"), "`docs/gone.md`").unwrap();
        let missing = ["docs/none.md", "b/c/e.rs", "x.rs"];
        assert_eq!(faults(top), missing.map(|path| format!("docs/a.md: `{path}`")));
    }
}
