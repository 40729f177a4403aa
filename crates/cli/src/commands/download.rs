//! Downloads the file that `kindred prepare` reads from an address on the web: in parts, if the
//! connection breaks, and so that the same command goes on where it was.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use ring::digest::{Context, SHA256};
use serde::{Deserialize, Serialize};
use server::client::{agent, url};
use ureq::http::{HeaderMap, Response, StatusCode, Uri, header};
use ureq::{Agent, Body};

use super::CommandError;
use super::progress::{Display, Step};
use super::signals::Interrupt;

/// Time limit for one part of a file. A part that took longer goes on as the next one.
const PART: Duration = Duration::from_secs(600);
/// Parts in a row without any bytes, after which it fails.
const MOST_FAILURES: usize = 5;
/// The wait before a part after one that failed, times the number of failures.
const WAIT: Duration = Duration::from_secs(1);
/// Most addresses that lead to another.
const MOST_REDIRECTS: usize = 10;
const BUFFER: usize = 256 << 10;
/// The name of the file with the state of a download, beside what was downloaded.
const STATE: &str = ".download.json";

/// The state of a download, from which a later run goes on.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
struct State {
    url: String,
    /// The file's entity tag or date: a part goes on only if they are still the same.
    validator: Option<String>,
}

/// A file that was downloaded, in a folder of its own beside the output.
pub(super) struct Downloaded {
    folder: PathBuf,
    pub(super) path: PathBuf,
}

/// Whether an input is an address on the web.
fn is_address(input: &Path) -> bool {
    let name = input.to_string_lossy();
    ["http://", "https://"].iter().any(|scheme| name.starts_with(scheme)) && !input.exists()
}

impl Downloaded {
    /// Downloads an input that is an address on the web, beside the output; `None` for a file.
    ///
    /// # Errors
    /// As [`get`](Self::get); for a file, if `sha256` is given.
    pub(super) fn of_input(
        input: &Path,
        out: &Path,
        sha256: Option<&str>,
        interrupt: &Interrupt,
    ) -> Result<Option<Self>, CommandError> {
        match (is_address(input), sha256) {
            (false, None) => Ok(None),
            (false, Some(_)) => {
                let message = "--sha256 is for a file that is downloaded: the input is no address";
                Err(CommandError::Usage(message.to_owned()))
            }
            (true, sha256) => Self::get(&input.to_string_lossy(), out, sha256, interrupt).map(Some),
        }
    }

    /// Downloads a file into the folder `OUT.download`, or goes on with that, and checks its SHA-256
    /// if that is given, in hexadecimal.
    pub(super) fn get(
        address: &str,
        out: &Path,
        sha256: Option<&str>,
        interrupt: &Interrupt,
    ) -> Result<Self, CommandError> {
        let no_user = "it must have no user and password";
        let first = url(address, no_user).map_err(|(shown, reason)| {
            CommandError::Usage(format!("{shown}: {reason}; or download the file first"))
        })?;
        let name = first.path().rsplit('/').next().unwrap_or_default();
        if matches!(name, "" | "." | "..") {
            let message = format!("{address} names no file; give the address of one");
            return Err(CommandError::Usage(message));
        }
        let folder = out.with_added_extension("download");
        let this = Self { path: folder.join(name), folder };
        fs::create_dir_all(&this.folder).map_err(failed("make a folder for the download"))?;
        this.get_parts(address, &first, interrupt)?;
        if let Some(expected) = sha256 {
            this.check(expected, interrupt)?;
        }
        Ok(this)
    }

    /// Removes it.
    pub(super) fn remove(self) -> Result<(), CommandError> {
        fs::remove_dir_all(&self.folder).map_err(failed("remove the download"))
    }

    fn get_parts(
        &self,
        address: &str,
        first: &Uri,
        interrupt: &Interrupt,
    ) -> Result<(), CommandError> {
        let mut state = self.state(address);
        let (mut failures, mut display) = (0, Display::new());
        loop {
            let before = self.length();
            let done = self.get_part(first, &mut state, &mut display, interrupt);
            if interrupt.go_on().is_break() {
                display.finish();
                return Err(CommandError::Usage(format!(
                    "stopped; {} keeps what was downloaded: the same command goes on from there",
                    self.folder.display()
                )));
            }
            let why = match done {
                Ok(()) => {
                    display.finish();
                    return Ok(());
                }
                Err(Part::Fatal(error)) => return Err(error),
                Err(Part::Again(why)) => why,
            };
            failures = if self.length() > before { 0 } else { failures + 1 };
            if failures == MOST_FAILURES {
                return Err(CommandError::Usage(format!(
                    "can't download {address}: {why}; {} keeps what was downloaded: the same command \
                     goes on from there",
                    self.folder.display()
                )));
            }
            std::thread::sleep(WAIT * failures as u32);
        }
    }

    /// Requests what is missing of the file, and appends it.
    fn get_part(
        &self,
        first: &Uri,
        state: &mut State,
        display: &mut Display,
        interrupt: &Interrupt,
    ) -> Result<(), Part> {
        let have = self.length();
        let mut response = requested(first, have, state.validator.as_deref())?;
        let headers = response.headers();
        let (from, length) = match response.status() {
            StatusCode::PARTIAL_CONTENT => match range(headers) {
                Some((from, total)) if from == have => (from, Some(total)),
                _ => return Err(again("the server sent a part that was not requested")),
            },
            StatusCode::OK => (0, number(headers, &header::CONTENT_LENGTH)),
            // All of it is there.
            StatusCode::RANGE_NOT_SATISFIABLE if size(headers) == Some(have) => return Ok(()),
            StatusCode::RANGE_NOT_SATISFIABLE => {
                fs::remove_file(&self.path)
                    .map_err(|error| Part::Fatal(failed("begin anew")(error)))?;
                return Err(again("the file is another one now"));
            }
            status if status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS => {
                return Err(again(&format!("the server answers {status}")));
            }
            status => {
                let message = format!("{first} can't be downloaded: the server answers {status}");
                return Err(Part::Fatal(CommandError::Usage(message)));
            }
        };
        state.validator = validator(headers);
        self.keep(state).map_err(Part::Fatal)?;
        let written = |error| Part::Fatal(failed("write the download")(error));
        let file = OpenOptions::new().create(true).append(true).open(&self.path);
        let mut file = file.map_err(written)?;
        file.set_len(from).map_err(written)?;
        let (mut body, mut buffer, mut done) =
            (response.body_mut().as_reader(), vec![0; BUFFER], from);
        loop {
            let read = body.read(&mut buffer).map_err(|error| again(&error.to_string()))?;
            if read == 0 {
                break;
            }
            file.write_all(&buffer[..read]).map_err(written)?;
            done += read as u64;
            display.show(&Step { things: "bytes", count: done, done, length, ..Step::default() });
            if interrupt.go_on().is_break() {
                return Err(again("it was stopped"));
            }
        }
        match length {
            Some(length) if done < length => Err(again("the connection ended early")),
            _ => file.sync_all().map_err(written),
        }
    }

    fn length(&self) -> u64 {
        self.path.metadata().map_or(0, |metadata| metadata.len())
    }

    /// The state that an earlier run has kept of the same address. A part of another file is removed.
    fn state(&self, address: &str) -> State {
        let kept = fs::read(self.folder.join(STATE)).ok();
        let kept: Option<State> = kept.and_then(|kept| serde_json::from_slice(&kept).ok());
        match kept {
            // Without a validator nobody knows whether the file is the same.
            Some(state) if state.url == address && state.validator.is_some() => state,
            _ => {
                // If it can't be removed, it is cut when the answer comes.
                let _ = fs::remove_file(&self.path);
                State { url: address.to_owned(), validator: None }
            }
        }
    }

    fn keep(&self, state: &State) -> Result<(), CommandError> {
        let kept = serde_json::to_vec(state).expect("texts become JSON");
        fs::write(self.folder.join(STATE), kept).map_err(failed("write the download"))
    }

    /// Compares the file's SHA-256. A file with another is removed.
    fn check(&self, expected: &str, interrupt: &Interrupt) -> Result<(), CommandError> {
        let read = failed("read the download");
        let mut file = File::open(&self.path).map_err(&read)?;
        let (mut hash, mut buffer) = (Context::new(&SHA256), vec![0; BUFFER]);
        loop {
            match file.read(&mut buffer).map_err(&read)? {
                0 => break,
                bytes => hash.update(&buffer[..bytes]),
            }
            if interrupt.go_on().is_break() {
                return Err(CommandError::Usage("stopped".to_owned()));
            }
        }
        let found: String =
            hash.finish().as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
        if found.eq_ignore_ascii_case(expected) {
            return Ok(());
        }
        fs::remove_dir_all(&self.folder).map_err(failed("remove the download"))?;
        Err(CommandError::Usage(format!(
            "the download has the SHA-256 {found}, not {expected}, and was removed: check the address \
             and --sha256"
        )))
    }
}

/// Why a part did not come.
enum Part {
    /// The next one may.
    Again(String),
    Fatal(CommandError),
}

fn again(why: &str) -> Part {
    Part::Again(why.to_owned())
}

fn failed(doing: &'static str) -> impl Fn(io::Error) -> CommandError {
    move |source| CommandError::System { doing, source }
}

/// The answer to a request for the bytes behind the first `have`, wherever the address leads.
fn requested(first: &Uri, have: u64, validator: Option<&str>) -> Result<Response<Body>, Part> {
    let mut at = first.clone();
    for _ in 0..=MOST_REDIRECTS {
        let agent: Agent = agent(&at, PART)
            .map_err(|error| Part::Fatal(CommandError::Usage(format!("{at}: {error}"))))?;
        let mut request = agent.get(&at);
        if let Some(validator) = validator.filter(|_| have > 0) {
            request = request.header(header::RANGE, format!("bytes={have}-"));
            request = request.header(header::IF_RANGE, validator);
        }
        let response = request.call().map_err(|error| again(&error.to_string()))?;
        let to = response.headers().get(header::LOCATION).and_then(|to| to.to_str().ok());
        match to {
            Some(to) if response.status().is_redirection() => {
                at = next(&at, to).ok_or_else(|| {
                    let message = format!("{at} leads to {to:?}, which is no address");
                    Part::Fatal(CommandError::Usage(message))
                })?;
            }
            _ => return Ok(response),
        }
    }
    let message = format!("{first} leads from address to address without an end");
    Err(Part::Fatal(CommandError::Usage(message)))
}

/// The address that a redirect leads to. From a protected one it never leads to a plain one.
fn next(at: &Uri, to: &str) -> Option<Uri> {
    let whole = match to.strip_prefix("//") {
        Some(rest) => format!("{}://{rest}", at.scheme_str()?),
        None if to.starts_with('/') => format!("{}://{}{to}", at.scheme_str()?, at.authority()?),
        None => to.to_owned(),
    };
    let to: Uri = whole.parse().ok()?;
    let is_right = match to.scheme_str()? {
        "https" => true,
        "http" => at.scheme_str() == Some("http"),
        _ => false,
    };
    (is_right && to.host().is_some()).then_some(to)
}

/// The first byte of a part, and the size of the whole file.
fn range(headers: &HeaderMap) -> Option<(u64, u64)> {
    let (part, total) = content_range(headers)?;
    Some((part.split_once('-')?.0.trim().parse().ok()?, total))
}

/// The size of a file of which no part was sent.
fn size(headers: &HeaderMap) -> Option<u64> {
    content_range(headers).map(|(_, total)| total)
}

fn content_range(headers: &HeaderMap) -> Option<(&str, u64)> {
    let range = headers.get(header::CONTENT_RANGE)?.to_str().ok()?;
    let (part, total) = range.strip_prefix("bytes ")?.split_once('/')?;
    Some((part, total.parse().ok()?))
}

fn number(headers: &HeaderMap, name: &header::HeaderName) -> Option<u64> {
    headers.get(name)?.to_str().ok()?.parse().ok()
}

/// The strong entity tag, or else the date, by which a file is known again.
fn validator(headers: &HeaderMap) -> Option<String> {
    let text = |name| Some(headers.get(name)?.to_str().ok()?.to_owned());
    text(header::ETAG).filter(|tag| !tag.starts_with("W/")).or_else(|| text(header::LAST_MODIFIED))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn redirects_lead_anywhere_but_from_protected_to_plain_addresses() {
        let at = |text: &str| text.parse::<Uri>().unwrap();
        let of = |from: &str, to: &str| next(&at(from), to).map(|uri| uri.to_string());
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(of("https://a/x", "/y?z=1"), some("https://a/y?z=1"));
        assert_eq!(of("https://a:8/x", "//b/y"), some("https://b/y"));
        assert_eq!(of("http://a/x", "https://b/"), some("https://b/"));
        assert_eq!(of("http://a/x", "http://b/y"), some("http://b/y"));
        assert_eq!(of("https://a/x", "http://b/y"), None);
        assert_eq!(of("https://a/x", "ftp://b/y"), None);
        assert_eq!(of("https://a/x", "y"), None);
    }

    #[test]
    fn parts_say_where_they_begin_and_how_long_the_file_is() {
        let of = |text: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::CONTENT_RANGE, text.parse().unwrap());
            (range(&headers), size(&headers))
        };
        assert_eq!(of("bytes 5-9/10"), (Some((5, 10)), Some(10)));
        assert_eq!(of("bytes */10"), (None, Some(10)));
        assert_eq!(of("bytes 5-9/*"), (None, None));
        assert_eq!(of("items 5-9/10"), (None, None));
    }
}
