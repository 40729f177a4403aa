//! Rust source as tokens: enough to find paths.

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Token {
    Word(String),
    /// `::`
    Path,
    /// Any other sign.
    Sign(char),
    /// A line of documentation.
    Doc(String),
    /// A string, as it is written between its quotes.
    Text(String),
}

/// Code without strings and ordinary comments, with the line of each token.
pub(crate) fn tokens(text: &str) -> Vec<(usize, Token)> {
    let all = tokens_and_texts(text).into_iter();
    all.filter(|(_, token)| !matches!(token, Token::Text(_))).collect()
}

/// Code without ordinary comments, with the line of each token.
pub(crate) fn tokens_and_texts(text: &str) -> Vec<(usize, Token)> {
    let chars: Vec<char> = text.chars().collect();
    let (mut found, mut line, mut at) = (Vec::new(), 1, 0);
    let begins = |at: usize, with: &str| {
        with.chars().enumerate().all(|(n, c)| chars.get(at + n) == Some(&c))
    };
    while at < chars.len() {
        let c = chars[at];
        let from = at;
        if begins(at, "//") {
            while at < chars.len() && chars[at] != '\n' {
                at += 1;
            }
            let comment: String = chars[from..at].iter().collect();
            let is_doc = comment.starts_with("//!")
                || (comment.starts_with("///") && !comment.starts_with("////"));
            if is_doc {
                found.push((line, Token::Doc(comment)));
            }
        } else if begins(at, "/*") {
            let mut depth = 0;
            while at < chars.len() {
                if begins(at, "/*") {
                    depth += 1;
                    at += 2;
                } else if begins(at, "*/") {
                    depth -= 1;
                    at += 2;
                    if depth == 0 {
                        break;
                    }
                } else {
                    at += 1;
                }
            }
        } else if c == '"' {
            at += 1;
            while at < chars.len() && chars[at] != '"' {
                at += if chars[at] == '\\' { 2 } else { 1 };
            }
            let inside = &chars[from + 1..at.min(chars.len())];
            found.push((line, Token::Text(inside.iter().collect())));
            at += 1;
        } else if c == '\'' {
            // A character, or the name of a lifetime or label.
            if chars.get(at + 1) == Some(&'\\') {
                at += 3;
                while at < chars.len() && chars[at] != '\'' {
                    at += 1;
                }
                at += 1;
            } else if chars.get(at + 2) == Some(&'\'') {
                at += 3;
            } else {
                at += 1;
            }
        } else if c.is_alphanumeric() || c == '_' {
            while at < chars.len() && (chars[at].is_alphanumeric() || chars[at] == '_') {
                at += 1;
            }
            let word: String = chars[from..at].iter().collect();
            let hashes = chars[at..].iter().take_while(|&&c| c == '#').count();
            let is_raw = ["r", "br", "cr"].contains(&&word[..]);
            if is_raw && chars.get(at + hashes) == Some(&'"') {
                let end: String = std::iter::once('"').chain("#".repeat(hashes).chars()).collect();
                at += hashes + 1;
                let begin = at;
                while at < chars.len() && !begins(at, &end) {
                    at += 1;
                }
                found.push((line, Token::Text(chars[begin..at].iter().collect())));
                at += end.len();
            } else {
                found.push((line, Token::Word(word)));
            }
        } else if begins(at, "::") {
            found.push((line, Token::Path));
            at += 2;
        } else {
            if !c.is_whitespace() {
                found.push((line, Token::Sign(c)));
            }
            at += 1;
        }
        let end = at.min(chars.len());
        line += chars[from..end].iter().filter(|&&c| c == '\n').count();
    }
    found
}
