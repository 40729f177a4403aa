//! That a source file begins with what it is for.

use std::path::Path;

use super::files;

/// The kinds of files that are looked at.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Kind {
    Rust,
    /// `//` or `/*`: CUDA, C, JavaScript and TypeScript.
    Slashes,
    /// `#`, and in Python also a text.
    Script,
}

fn kind(name: &str, text: &str) -> Option<Kind> {
    match name.rsplit_once('.').map(|(_, extension)| extension) {
        Some("rs") => Some(Kind::Rust),
        Some("cu" | "cuh" | "c" | "h" | "js" | "mjs" | "ts") => Some(Kind::Slashes),
        Some("py" | "sh") => Some(Kind::Script),
        None if text.starts_with("#!") => Some(Kind::Script),
        _ => None,
    }
}

/// The files that do not say what they are for.
pub(crate) fn faults(top: &Path) -> Vec<String> {
    let mut faults = Vec::new();
    for path in files::below(top, Path::new(""), |_| true) {
        let name = path.file_name().expect("a name").to_str().expect("UTF-8");
        let text = files::read(top, &path);
        if kind(name, &text).is_some_and(|kind| !says_what_for(kind, &text)) {
            faults.push(path.display().to_string());
        }
    }
    faults
}

fn says_what_for(kind: Kind, text: &str) -> bool {
    let text = text.trim_start_matches('\u{feff}');
    let mut lines = text.lines().skip(usize::from(text.starts_with("#!/")));
    let mut next = || lines.find(|line| !line.trim().is_empty()).unwrap_or_default();
    let says = |line: &str, begins: &str| {
        line.strip_prefix(begins).is_some_and(|rest| rest.chars().any(char::is_alphabetic))
    };
    match kind {
        Kind::Rust => {
            let mut line = next();
            while line.starts_with("#![") {
                while !line.trim_end().ends_with(']') {
                    line = next();
                }
                line = next();
            }
            says(line, "//!")
        }
        Kind::Slashes => {
            let line = next();
            says(line, "//") || says(line, "/*") || (line == "/**" && says(next(), " *"))
        }
        Kind::Script => {
            let line = next();
            says(line, "#") || says(line, "\"\"\"")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_first_line_in_words_says_what_for() {
        for (name, text) in [
            ("a.rs", "//! What it is for.\nuse x;"),
            ("mod.rs", "\n#![forbid(\n    unsafe_code,\n)]\n\n//! It.\n"),
            ("a.cu", "// It.\n"),
            ("a.js", "/* It. */"),
            ("a.ts", "/**\n * It.\n */\n"),
            ("a.py", "#!/usr/bin/env python3\n\"\"\"It.\"\"\"\n"),
            ("run", "#!/bin/sh\n# It.\nset -e\n"),
        ] {
            assert!(says_what_for(kind(name, text).unwrap(), text), "{name}");
        }
        for (name, text) in [
            ("a.rs", "use x;\n//! Late."),
            ("a.rs", "/// Of something else.\nstruct S;"),
            ("a.rs", "//!\nuse x;"),
            ("a.rs", ""),
            ("a.cuh", "#pragma once\n// Late."),
            ("a.ts", "export {};\n"),
            ("a.py", "import x\n"),
            ("run", "#!/bin/sh\nset -e\n# Late.\n"),
        ] {
            assert!(!says_what_for(kind(name, text).unwrap(), text), "{name}: {text}");
        }
        assert_eq!((kind("a.md", ""), kind("LICENSE", "text")), (None, None));
    }
}
