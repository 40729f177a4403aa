//! API keys: who may use the service.
//!
//! A keys file has one key per line, as `HASH NAME`, `HASH NAME write` or `HASH NAME admin`: the
//! BLAKE3 hash of the key in hexadecimal, the name of its owner, and whether it may also change rows,
//! or the service and all tables. `#` begins a comment. A fast hash is right here: keys have 256 random bits, which nobody can guess
//! at any speed. (For passwords it would be wrong.)

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arc_swap::ArcSwap;
use axum::extract::Request;
use axum::http::{Extensions, HeaderMap, header};
use blake3::Hash;
use tracing::Span;

use crate::config::{ConfigError, invalid};
use crate::http::ApiError;
use scheduler::account::Account;

/// The prefix of every key, so that a leaked key can be recognised.
const PREFIX: &str = "kindred_";

const NO_KEY: &str =
    "this service requires an API key; send yours in the header Authorization: Bearer KEY";

/// The owner of a request's API key, stored as an extension of the request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    /// The owner's name in the keys file.
    pub name: Arc<str>,
    /// Its rights.
    pub rights: Rights,
}

/// The rights of a key. Each has those of the ones before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Rights {
    /// To ask.
    #[default]
    Ask,
    /// To change rows.
    Write,
    /// To change the service and its tables.
    Admin,
}

/// Checks that a request came with an admin key.
///
/// # Errors
/// `forbidden` if it did not, or if there are no keys at all.
pub(in crate::http) fn require_admin(extensions: &Extensions) -> Result<(), ApiError> {
    match extensions.get::<Caller>() {
        Some(caller) if caller.rights == Rights::Admin => Ok(()),
        Some(_) => Err(ApiError::Forbidden {
            reason: "this needs an admin key, and the key sent is not one: create one with `kindred api-key \
                 NAME --admin`",
        }),
        None => Err(ApiError::Forbidden {
            reason: "this needs an admin key: create one with `kindred api-key NAME --admin`, add the line \
                 that it prints to the file that the setting api_keys_file names, and send the key as \
                 Authorization: Bearer KEY",
        }),
    }
}

/// Checks that a request came with a key that may change rows.
///
/// # Errors
/// `forbidden` if it did not.
pub(in crate::http) fn require_write(extensions: &Extensions) -> Result<(), ApiError> {
    match extensions.get::<Caller>() {
        Some(caller) if caller.rights >= Rights::Write => Ok(()),
        _ => Err(ApiError::Forbidden {
            reason: "this needs a key that may change rows: create one with `kindred api-key NAME \
                     --write`, and send it as Authorization: Bearer KEY",
        }),
    }
}

/// Checks that a request came with a key.
///
/// # Errors
/// `unauthorized` if it did not.
pub(in crate::http) fn require_any(extensions: &Extensions) -> Result<(), ApiError> {
    match extensions.get::<Caller>() {
        Some(_) => Ok(()),
        None => Err(ApiError::Unauthorized { reason: NO_KEY }),
    }
}

/// The keys in force.
pub(super) struct Keys {
    /// `None`: no key is needed.
    file: Option<PathBuf>,
    /// Paths that need no key. A path that ends in `/*` covers everything below it.
    public_routes: Vec<String>,
    keys: ArcSwap<Vec<Key>>,
}

#[derive(Debug, Clone)]
struct Key {
    hash: Hash,
    caller: Caller,
    /// The account of all connections that use this key.
    account: Arc<Account>,
}

impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        (self.hash, &self.caller) == (other.hash, &other.caller)
    }
}

impl Keys {
    /// Reads the keys from this file. An empty path means that no key is needed.
    pub(super) fn open(file: &Path, public_routes: &[String]) -> Result<Self, ConfigError> {
        let file = (!file.as_os_str().is_empty()).then(|| file.to_owned());
        if let Some(wrong) = public_routes.iter().find(|route| !route.starts_with('/')) {
            let reason = format!("`{wrong}`: it must be a path such as /health/live");
            return Err(invalid("public_routes", reason));
        }
        let keys = Self { file, public_routes: public_routes.to_vec(), keys: ArcSwap::default() };
        keys.keys.store(keys.read()?.into());
        Ok(keys)
    }

    /// Reads the current keys file.
    fn read(&self) -> Result<Vec<Key>, ConfigError> {
        let Some(path) = &self.file else { return Ok(Vec::new()) };
        let text = std::fs::read_to_string(path).map_err(|source| ConfigError::UnreadableFile {
            setting: "api_keys_file",
            path: path.clone(),
            source,
        })?;
        parse(&text).map_err(|(line, reason)| ConfigError::BadFile {
            file: match line {
                Some(line) => format!("{}, line {line}", path.display()),
                None => path.display().to_string(),
            },
            reason: reason.to_owned(),
            source: None,
        })
    }

    /// Reads the file again. The new keys apply once the returned function is called; until then
    /// the old ones stay.
    pub(super) fn reload(&self) -> Result<impl FnOnce() -> Option<String> + '_, ConfigError> {
        let new = self.read()?;
        Ok(move || {
            let old = self.keys.swap(Arc::new(new.clone()));
            let count =
                |of: &[Key], not_in: &[Key]| of.iter().filter(|key| !not_in.contains(key)).count();
            let (came, went) = (count(&new, &old), count(&old, &new));
            let path = self.file.as_ref()?.display();
            let (all, keys) = (new.len(), if new.len() == 1 { "key" } else { "keys" });
            Some(format!("{path}: {all} {keys} valid, {came} added, {went} removed"))
        })
    }

    /// Checks the key and stores its `Caller` as an extension. Returns the key's account, if the
    /// service has keys and the request came with one.
    pub(super) fn check(&self, request: &mut Request) -> Result<Option<Arc<Account>>, ApiError> {
        if self.file.is_none() {
            return Ok(None);
        }
        match self.key(request.headers()) {
            Ok(Key { caller, account, .. }) => {
                Span::current().record("caller", &*caller.name);
                request.extensions_mut().insert(caller);
                Ok(Some(account))
            }
            Err(_)
                if self.public_routes.iter().any(|route| covers(route, request.uri().path())) =>
            {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    fn key(&self, headers: &HeaderMap) -> Result<Key, ApiError> {
        let sent =
            headers.get(header::AUTHORIZATION).ok_or(ApiError::Unauthorized { reason: NO_KEY })?;
        let key = sent.to_str().ok().and_then(|sent| {
            let (scheme, key) = sent.split_once(' ')?;
            scheme.eq_ignore_ascii_case("bearer").then_some(key.trim())
        });
        let key = key.ok_or(ApiError::Unauthorized {
            reason: "the Authorization header contains no API key; send Authorization: Bearer KEY",
        })?;
        let hash = blake3::hash(key.as_bytes());
        let mut found = None;
        // Compares with all keys, each in constant time, so that the duration reveals nothing about
        // any key.
        for key in self.keys.load().iter() {
            if key.hash == hash {
                found = Some(key.clone());
            }
        }
        found.ok_or(ApiError::Unauthorized { reason: "this API key is not valid" })
    }
}

/// Whether a public route covers this path. The path is not normalised, because every route treats
/// `..` as a name.
pub(in crate::http) fn covers(route: &str, path: &str) -> bool {
    match route.strip_suffix('*') {
        Some(folder) if folder.ends_with('/') => path.starts_with(folder),
        _ => route == path,
    }
}

/// Parses the keys of a file. The error is the number of the wrong line, if it is about one, and
/// why it is wrong.
fn parse(text: &str) -> Result<Vec<Key>, (Option<usize>, &'static str)> {
    let mut keys: Vec<Key> = Vec::new();
    // Some editors write a byte order mark.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    for (number, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or_default();
        let mut fields = line.split_whitespace();
        let Some(hash) = fields.next() else { continue };
        let line = Some(number + 1);
        let key = parse_key(hash, &mut fields).map_err(|reason| (line, reason))?;
        if keys.iter().any(|other| other.hash == key.hash) {
            return Err((line, "this key is already in the file; delete one of the lines"));
        }
        keys.push(key);
    }
    if keys.is_empty() {
        return Err((
            None,
            "the file has no keys, so every request would be refused; create one with `kindred api-key NAME`",
        ));
    }
    Ok(keys)
}

fn parse_key<'a>(
    hash: &str,
    rest: &mut impl Iterator<Item = &'a str>,
) -> Result<Key, &'static str> {
    if hash.starts_with(PREFIX) {
        return Err(
            "this is a key instead of its hash, so the key is exposed; create another with `kindred api-key \
             NAME`, which prints the line to use",
        );
    }
    let hash = Hash::from_hex(hash).map_err(|_| {
        "it must begin with the BLAKE3 hash of a key (64 hexadecimal digits), as does the last \
             line that `kindred api-key NAME` prints"
    })?;
    let name = rest.next().ok_or("the hash must be followed by the name of the key's owner")?;
    let rights = match rest.next() {
        None => Rights::Ask,
        Some("write") => Rights::Write,
        Some("admin") => Rights::Admin,
        Some(_) => return Err("only `write` or `admin` may follow the name; names have no spaces"),
    };
    if rest.next().is_some() {
        return Err("nothing may follow `write` or `admin`; write one key per line");
    }
    let caller = Caller { name: name.into(), rights };
    Ok(Key { hash, caller, account: Account::new() })
}

/// A new key, and its line for the file.
///
/// # Errors
/// If the name is invalid, or the system has no randomness.
pub fn make(name: &str, rights: Rights) -> Result<(String, String), String> {
    if name.is_empty() || name.contains(|c: char| c.is_whitespace() || c.is_control() || c == '#') {
        return Err(format!(
            "`{name}` can't be used as a name in the keys file; use a name without spaces or #"
        ));
    }
    let mut random = [0; 32];
    getrandom::fill(&mut random)
        .map_err(|e| format!("can't get random bytes from the system for a key: {e}"))?;
    let mut key = PREFIX.to_owned();
    for byte in random {
        let _ = write!(key, "{byte:02x}");
    }
    let rights = match rights {
        Rights::Ask => "",
        Rights::Write => " write",
        Rights::Admin => " admin",
    };
    let line = format!("{} {name}{rights}", blake3::hash(key.as_bytes()).to_hex());
    Ok((key, line))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(path: &str, authorization: Option<&str>) -> Request {
        let mut request = axum::http::Request::get(path);
        if let Some(value) = authorization {
            request = request.header("authorization", value);
        }
        request.body(axum::body::Body::empty()).unwrap()
    }

    fn keys_of(content: &str) -> (tempfile::NamedTempFile, Keys) {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), content).unwrap();
        let keys = Keys::open(file.path(), &["/health/live".to_owned()]).unwrap();
        (file, keys)
    }

    #[test]
    fn each_key_of_the_file_opens_and_nothing_else() {
        let ((one, line_one), (two, line_two)) =
            (make("one", Rights::Ask).unwrap(), make("two", Rights::Admin).unwrap());
        let (three, line_three) = make("three", Rights::Write).unwrap();
        let (_file, keys) =
            keys_of(&format!("# ours\n\n{line_one} # of one\n{line_two}\n{line_three}\n"));
        let all = [
            (&one, "one", Rights::Ask),
            (&two, "two", Rights::Admin),
            (&three, "three", Rights::Write),
        ];
        for (key, name, rights) in all {
            for scheme in ["Bearer ", "bearer ", "BEARER  "] {
                let mut asked = request("/nearest", Some(&format!("{scheme}{key}")));
                keys.check(&mut asked).unwrap();
                let caller = Caller { name: name.into(), rights };
                assert_eq!(asked.extensions().get(), Some(&caller));
                assert_eq!(require_admin(asked.extensions()).is_ok(), rights == Rights::Admin);
                assert_eq!(require_write(asked.extensions()).is_ok(), rights != Rights::Ask);
            }
        }
        let hash = line_one.split(' ').next().unwrap();
        for wrong in [
            format!("Bearer {one}0"),
            format!("Bearer {}", &one[..one.len() - 1]),
            format!("Bearer {}", one.to_uppercase()),
            format!("Bearer {hash}"),
            format!("Basic {one}"),
            one,
            "Bearer ".to_owned(),
            String::new(),
        ] {
            let refused = keys.check(&mut request("/nearest", Some(&wrong)));
            assert!(matches!(refused, Err(ApiError::Unauthorized { .. })), "{wrong}");
        }
        assert!(keys.check(&mut request("/nearest", None)).is_err());
        assert!(keys.check(&mut request("/health/live?x=1", None)).is_ok());
        assert!(keys.check(&mut request("/health/live/", None)).is_err());
    }

    #[test]
    fn a_byte_order_mark_is_not_part_of_the_first_line() {
        let (key, line) = make("one", Rights::Ask).unwrap();
        let (_file, keys) = keys_of(&format!("\u{feff}{line}\r\n"));
        assert!(keys.check(&mut request("/nearest", Some(&format!("Bearer {key}")))).is_ok());
    }

    #[test]
    fn a_star_stands_for_all_below_a_path_and_only_at_its_end() {
        for (route, path, is_covered) in [
            ("/docs/*", "/docs/start.js", true),
            ("/docs/*", "/docs/", true),
            ("/docs/*", "/docs", false),
            ("/docs/*", "/docsy/x", false),
            ("/docs*", "/docs/start.js", false),
            ("/*/live", "/health/live", false),
            ("/docs", "/docs/start.js", false),
        ] {
            assert_eq!(covers(route, path), is_covered, "{route} {path}");
        }
    }

    #[test]
    fn without_a_file_everybody_may_ask_and_nobody_is_admin() {
        let keys = Keys::open(Path::new(""), &[]).unwrap();
        let mut asked = request("/nearest", Some("Bearer whatever"));
        assert!(keys.check(&mut asked).is_ok());
        assert!(matches!(require_admin(asked.extensions()), Err(ApiError::Forbidden { .. })));
        assert!(matches!(require_write(asked.extensions()), Err(ApiError::Forbidden { .. })));
    }

    #[test]
    fn a_reload_exchanges_the_keys_or_leaves_them_all() {
        let ((old, old_line), (new, new_line)) =
            (make("a", Rights::Ask).unwrap(), make("a", Rights::Ask).unwrap());
        let (file, keys) = keys_of(&old_line);
        let opens =
            |key: &str| keys.check(&mut request("/", Some(&format!("Bearer {key}")))).is_ok();
        for bad in
            ["", "# none\n", &format!("{old_line}\nxyz b\n"), &format!("{new_line}\n{new_line}")]
        {
            std::fs::write(file.path(), bad).unwrap();
            assert!(keys.reload().is_err(), "{bad}");
            assert!(opens(&old) && !opens(&new), "{bad}");
        }
        std::fs::write(file.path(), format!("{old_line}\n{new_line}\n")).unwrap();
        let exchange = keys.reload().unwrap();
        assert!(!opens(&new), "not before it is said");
        assert!(exchange().unwrap().ends_with("2 keys valid, 1 added, 0 removed"));
        assert!(opens(&old) && opens(&new));
        std::fs::write(file.path(), &new_line).unwrap();
        assert!(keys.reload().unwrap()().unwrap().ends_with("1 key valid, 0 added, 1 removed"));
        assert!(!opens(&old) && opens(&new));
    }

    #[test]
    fn bad_lines_are_errors_that_say_which_and_why() {
        let (key, line) = make("a", Rights::Ask).unwrap();
        for (content, number, said) in [
            (format!("{line}\n\n{key} b"), Some(3), "a key instead of its hash"),
            (line.split(' ').next().unwrap().to_owned(), Some(1), "followed by the name"),
            (format!("{line} root"), Some(1), "`admin`"),
            (format!("{line} admin admin"), Some(1), "nothing"),
            (format!("{line}\n{line} admin"), Some(2), "already"),
            (format!("abc {line}"), Some(1), "64 hexadecimal digits"),
            (String::new(), None, "the file has no keys"),
            ("# none\n".to_owned(), None, "the file has no keys"),
        ] {
            let (found, reason) = parse(&content).unwrap_err();
            assert!(found == number && reason.contains(said), "{content}: {found:?} {reason}");
        }
    }

    #[test]
    fn names_that_a_line_can_not_hold_are_refused() {
        for name in ["", "a b", "a#b", "a\n", "\t"] {
            assert!(make(name, Rights::Ask).is_err(), "{name:?}");
        }
        let (key, line) = make("søk", Rights::Admin).unwrap();
        assert_eq!(key.len(), PREFIX.len() + 64);
        assert!(parse(&line).is_ok());
        assert_ne!(make("a", Rights::Ask).unwrap().0, make("a", Rights::Ask).unwrap().0);
    }
}
