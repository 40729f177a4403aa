//! Systems that code is compiled for, by its conditions (`cfg`).

use super::tokens::{Token, tokens_and_texts};

/// Some of the systems that the program is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Systems(u8);

impl Systems {
    pub(crate) const LINUX: Self = Self(1);
    pub(crate) const MACOS: Self = Self(2);
    pub(crate) const WINDOWS: Self = Self(4);
    pub(crate) const UNIX: Self = Self(1 | 2);
    pub(crate) const ALL: Self = Self(1 | 2 | 4);
    const NONE: Self = Self(0);

    pub(crate) fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// The names of those that are not among `others`.
    pub(crate) fn names_besides(self, others: Self) -> Vec<&'static str> {
        [(Self::LINUX, "Linux"), (Self::MACOS, "macOS"), (Self::WINDOWS, "Windows")]
            .into_iter()
            .filter(|&(system, _)| self.without(others).and(system) != Self::NONE)
            .map(|(_, name)| name)
            .collect()
    }
}

/// Where a condition can hold, and where it can fail: of a feature nothing is known, so it can do
/// both.
#[derive(Debug, Clone, Copy)]
struct Holds {
    can_hold: Systems,
    can_fail: Systems,
}

/// The systems on which code under `cfg(…)` can be compiled, from its text with or without `cfg`.
pub(crate) fn of_cfg(text: &str) -> Systems {
    of_tokens(&tokens_and_texts(text))
}

/// The same from its tokens; all systems, if they are no `cfg`.
pub(crate) fn of_tokens(tokens: &[(usize, Token)]) -> Systems {
    let is_cfg = matches!(tokens.first(), Some((_, Token::Word(word))) if word == "cfg");
    if !is_cfg {
        return Systems::ALL;
    }
    let mut at = 2;
    condition(tokens, &mut at).can_hold
}

/// Reads a condition, and goes behind it.
fn condition(tokens: &[(usize, Token)], at: &mut usize) -> Holds {
    let word = match tokens.get(*at) {
        Some((_, Token::Word(word))) => word.clone(),
        _ => String::new(),
    };
    *at += 1;
    match tokens.get(*at) {
        Some((_, Token::Sign('('))) => {
            *at += 1;
            let mut inner = Vec::new();
            while let Some((_, token)) = tokens.get(*at) {
                match token {
                    Token::Sign(')') => break,
                    Token::Sign(',') => *at += 1,
                    _ => inner.push(condition(tokens, at)),
                }
            }
            *at += 1;
            joined(&word, &inner)
        }
        Some((_, Token::Sign('='))) => {
            let value = match tokens.get(*at + 1) {
                Some((_, Token::Text(value))) => value.clone(),
                _ => String::new(),
            };
            *at += 2;
            of_name(&word, &value)
        }
        _ => of_name(&word, ""),
    }
}

fn joined(word: &str, inner: &[Holds]) -> Holds {
    let all = |of: fn(&Holds) -> Systems| inner.iter().map(of).fold(Systems::ALL, Systems::and);
    let any = |of: fn(&Holds) -> Systems| inner.iter().map(of).fold(Systems::NONE, Systems::or);
    type Held = fn(&Holds) -> Systems;
    let (hold, fail): (Held, Held) = (|inner| inner.can_hold, |inner| inner.can_fail);
    match word {
        "all" => Holds { can_hold: all(hold), can_fail: any(fail) },
        "any" => Holds { can_hold: any(hold), can_fail: all(fail) },
        _ => Holds { can_hold: all(fail), can_fail: all(hold) },
    }
}

fn of_name(name: &str, value: &str) -> Holds {
    let on = |can_hold| Holds { can_hold, can_fail: Systems::ALL.without(can_hold) };
    match (name, value) {
        ("unix", _) | ("target_family", "unix") => on(Systems::UNIX),
        ("windows", _) | ("target_family" | "target_os", "windows") => on(Systems::WINDOWS),
        ("target_os", "linux") => on(Systems::LINUX),
        ("target_os" | "target_vendor", "macos" | "apple") => on(Systems::MACOS),
        ("target_os" | "target_family", _) => on(Systems::NONE),
        _ => Holds { can_hold: Systems::ALL, can_fail: Systems::ALL },
    }
}

#[test]
fn conditions_are_read() {
    for (text, systems) in [
        ("cfg(unix)", Systems::UNIX),
        ("cfg(target_family = \"windows\")", Systems::WINDOWS),
        ("cfg(not(unix))", Systems::WINDOWS),
        ("cfg(target_os = \"linux\")", Systems::LINUX),
        ("cfg(not(target_os = \"linux\"))", Systems(2 | 4)),
        ("cfg(any(target_os = \"linux\", target_os = \"macos\"))", Systems::UNIX),
        ("cfg(all(unix, not(target_os = \"macos\")))", Systems::LINUX),
        ("cfg(not(any(unix, windows)))", Systems::NONE),
        ("cfg(target_os = \"freebsd\")", Systems::NONE),
        // Of these nothing is known.
        ("cfg(feature = \"cuda\")", Systems::ALL),
        ("cfg(not(test))", Systems::ALL),
        ("cfg(all(test, target_os = \"linux\"))", Systems::LINUX),
        ("cfg(any(unix, test))", Systems::ALL),
        ("cfg(not(all(unix, test)))", Systems::ALL),
        ("cfg(not(any(unix, test)))", Systems::WINDOWS),
        ("test", Systems::ALL),
    ] {
        assert_eq!(of_cfg(text), systems, "{text}");
    }
    assert_eq!(Systems::ALL.names_besides(Systems::LINUX), ["macOS", "Windows"]);
    assert_eq!(Systems::LINUX.names_besides(Systems::UNIX), [""; 0]);
}
