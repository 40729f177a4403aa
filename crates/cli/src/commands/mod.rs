//! The commands: one file for each, and what they share.

/// Like `println!`, but returns an error if standard output can't be written. A closed pipe is no
/// error: the work is done anyway, as in `kindred synth … | head -1`.
macro_rules! say {
    ($($text:tt)*) => {
        super::print((format!($($text)*) + "\n").as_bytes())
    };
}

mod api_key;
mod attributes;
mod beside;
mod bulk;
mod by_url;
mod changes;
mod classify;
mod console;
mod create;
mod download;
mod embed;
mod eval;
mod expand;
mod export;
mod fold;
mod graph;
mod health;
mod import_head;
mod long_work;
mod manual;
mod prepare;
mod progress;
mod rows;
mod serve;
mod service_manager;
mod signals;
mod synth;
mod system_signals;
mod texts;
mod texts_by_url;
mod train;
mod verify;
mod watch;

use std::io::{self, BufRead, IsTerminal as _, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

pub use serve::serve_with;

use crate::arguments::{Cli, Command, ModelArguments, TokensArguments, TrainCommand};
use crate::console::heading;
pub use crate::error::CommandError;
use kindred::heads::{Tokens, check_free, has_no_capitals};
use kindred::live::Live;
use kindred::prepare::{TextEncoding, not_plain_reason, other_kind_reason, utf16_cure};
use kindred::{Device, Kindred, ModelStore, Settings};
use server::config::ServeFlags;
use server::http::edge::keys::Rights;
use server::models::OneModel;

/// Runs the command of a command line.
///
/// # Errors
/// If it can't do all of its work.
pub fn run(cli: &Cli) -> Result<(), CommandError> {
    let left = match &cli.command {
        // It drains what is in flight.
        None | Some(Command::Serve(_)) => return dispatch(cli),
        Some(Command::Classify(_) | Command::Expand(_) | Command::Console(_)) => signals::LINES,
        Some(Command::Train(_) | Command::ImportHead(_)) => signals::REMOVED,
        Some(_) => signals::NOTHING,
    };
    signals::handle(left)?;
    match dispatch(cli) {
        Err(error) if signals::is_stopped() => Err(CommandError::Stopped(Box::new(error))),
        done => done,
    }
}

fn dispatch(cli: &Cli) -> Result<(), CommandError> {
    match &cli.command {
        None => serve::serve(&cli.serve),
        Some(Command::Serve(flags)) => serve::serve(flags),
        Some(Command::Console(arguments)) => console::console(arguments),
        Some(Command::Nearest(arguments)) => console::nearest(arguments),
        Some(Command::Analogy(arguments)) => console::analogy(arguments),
        Some(Command::Similarity(arguments)) => console::similarity(arguments),
        Some(Command::OddOneOut(arguments)) => console::odd_one_out(arguments),
        Some(Command::Rank(arguments)) => console::rank(arguments),
        Some(Command::Embed(arguments)) => embed::embed(arguments),
        Some(Command::Prepare(arguments)) => prepare::prepare(arguments),
        Some(Command::Export(arguments)) => export::export(arguments),
        Some(Command::Synth(arguments)) => synth::synth(arguments),
        Some(Command::Attributes(arguments)) => attributes::attributes(arguments),
        Some(Command::Verify(arguments)) => verify::verify(arguments),
        Some(Command::Create(arguments)) => create::create(arguments),
        Some(Command::Fold(arguments)) => fold::fold(arguments),
        Some(Command::Rows(command)) => rows::rows(command),
        Some(Command::Changes(command)) => changes::changes(command),
        Some(Command::Train(TrainCommand::Classifier(arguments))) => {
            train::train_classifier(arguments)
        }
        Some(Command::Train(TrainCommand::Expander(arguments))) => train::train_expander(arguments),
        Some(Command::Expand(arguments)) if arguments.service.url.is_some() => {
            texts_by_url::expand(arguments)
        }
        Some(Command::Expand(arguments)) => expand::expand(arguments),
        Some(Command::ImportHead(arguments)) => import_head::import_head(arguments),
        Some(Command::Classify(arguments)) if arguments.service.url.is_some() => {
            texts_by_url::classify(arguments)
        }
        Some(Command::Classify(arguments)) => classify::classify(arguments),
        Some(Command::Eval(arguments)) => eval::eval(arguments),
        Some(Command::Bulk(command)) => bulk::bulk(command),
        Some(Command::Graph(arguments)) => graph::graph(arguments),
        Some(Command::ApiKey { name, write, admin }) => {
            let rights = match (write, admin) {
                (_, true) => Rights::Admin,
                (true, _) => Rights::Write,
                _ => Rights::Ask,
            };
            api_key::api_key(name, rights)
        }
        Some(Command::Health { url, timeout_ms }) => health::health(url.as_deref(), *timeout_ms),
        Some(Command::Completions { shell }) => manual::completions(*shell),
        Some(Command::Man { out }) => manual::man(out.as_deref()),
    }
}

/// The model that a command asks: that of its flags, or of the environment, of the settings file,
/// or the built-in one.
fn model_of(arguments: &ModelArguments) -> Result<OneModel, CommandError> {
    Ok(OneModel::open(&flags_of(arguments))?)
}

/// The same of a model whose rows may have been changed: its base, and its rows as they are now.
fn changed_model_of(
    arguments: &ModelArguments,
) -> Result<(OneModel, Option<Arc<Live>>), CommandError> {
    let (one, live) = OneModel::open_with_changes(&flags_of(arguments))?;
    Ok((one, live.map(Arc::new)))
}

/// The flags by which `serve` would open that model.
fn flags_of(arguments: &ModelArguments) -> ServeFlags {
    let ModelArguments { model, cache_dir } = arguments.clone();
    ServeFlags { model: model.into_iter().collect(), cache_dir, ..ServeFlags::default() }
}

/// An engine for a model, or for its rows as they are now.
fn start(
    model: &Arc<ModelStore>,
    live: Option<&Arc<Live>>,
    settings: Settings,
) -> Result<Kindred, CommandError> {
    Ok(match live {
        Some(live) => Kindred::start_live(live.clone(), settings)?,
        None => Kindred::start(model.clone().into(), settings)?,
    })
}

/// How texts become tokens of a head for this model: in lower case if the model has no capitals.
fn tokens(model: &ModelStore, arguments: TokensArguments) -> Tokens {
    let TokensArguments { tokeniser, limit, cut } = arguments;
    Tokens { tokeniser, lower_case: has_no_capitals(model), limit, cut }
}

/// A path as it is typed in a shell: between quotes if it has spaces, signs and the like.
fn typed(path: &Path) -> String {
    let path = path.display().to_string();
    let is_plain = |c: char| c.is_alphanumeric() || "/._-+=:@%,".contains(c);
    match path.chars().all(is_plain) {
        true => path,
        false => format!("'{}'", path.replace('\'', r"'\''")),
    }
}

/// Refuses to write a head where something is, or nothing can be, before anything is computed.
fn check_is_free(out: &Path, replace: bool) -> Result<(), CommandError> {
    if out.exists() && !replace {
        let message = format!("{} exists; choose another --out, or add --replace", out.display());
        return Err(CommandError::Usage(message));
    }
    Ok(check_free(out, replace)?)
}

/// The content of a text file. `wanted` says which file is wanted.
fn read_text(path: &Path, wanted: &'static str) -> Result<String, CommandError> {
    let content = read_file(path, wanted)?;
    check_plain(path, not_plain_reason(&content))?;
    Ok(without_padding(path, utf8(path, content, "convert the file")?))
}

/// The same of a file whose encoding can be named.
fn read_encoded_text(
    path: &Path,
    wanted: &'static str,
    encoding: Option<TextEncoding>,
) -> Result<String, CommandError> {
    let content = read_file(path, wanted)?;
    check_plain(path, other_kind_reason(&content))?;
    let text = match encoding {
        Some(encoding) => encoding
            .decode(content)
            .map_err(|error| CommandError::Usage(format!("{}, {error}", path.display())))?,
        None => {
            check_plain(path, utf16_cure(&content))?;
            utf8(path, content, "name its encoding, as in --encoding latin1")?
        }
    };
    Ok(without_padding(path, text))
}

fn read_file(path: &Path, wanted: &'static str) -> Result<Vec<u8>, CommandError> {
    let path = path.to_owned();
    std::fs::read(&path).map_err(|source| CommandError::Unreadable { path, source, wanted })
}

/// Refuses a file that is no plain text, for this reason.
fn check_plain(path: &Path, reason: Option<String>) -> Result<(), CommandError> {
    reason
        .map_or(Ok(()), |reason| Err(CommandError::Usage(format!("{}: {reason}", path.display()))))
}

/// The text without zero bytes at its end, with which some programs fill a file up. They stay if
/// the last line has no end: it may have been cut off.
fn without_padding(path: &Path, mut text: String) -> String {
    let end = text.trim_end_matches('\0').len();
    if end < text.len() && text[..end].ends_with('\n') {
        let (name, zeros) = (path.display(), text.len() - end);
        eprintln!("warning: {name}: the zero bytes at its end ({zeros}) were left out");
        text.truncate(end);
    }
    text
}

fn utf8(path: &Path, content: Vec<u8>, cure: &str) -> Result<String, CommandError> {
    String::from_utf8(content).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        let line = 1 + error.as_bytes()[..at].iter().filter(|&&byte| byte == b'\n').count();
        let name = path.display();
        CommandError::Usage(format!("{name}, line {line}: it is not UTF-8; {cure}"))
    })
}

/// Has these texts answered, or without any the lines of standard input, `together` at a time; on a
/// terminal, each line at once.
fn each_batch(
    texts: &[String],
    together: usize,
    mut answer: impl FnMut(&[String]) -> Result<(), CommandError>,
) -> Result<(), CommandError> {
    if !texts.is_empty() {
        return answer(texts);
    }
    let is_terminal = io::stdin().is_terminal();
    if is_terminal {
        eprintln!("each line is a text; Ctrl-D ends");
    }
    let together = if is_terminal { 1 } else { together };
    let mut lines = (1_u64..).zip(io::stdin().lock().lines());
    loop {
        let (mut some, mut fault) = (Vec::new(), None);
        for (number, line) in lines.by_ref().take(together) {
            match line {
                Ok(line) => some.push(line),
                Err(error) => {
                    fault = Some(unreadable(number, error));
                    break;
                }
            }
        }
        // The lines before one that can't be read are answered.
        if !some.is_empty() {
            answer(&some)?;
        }
        match fault {
            Some(fault) => return Err(fault),
            None if some.is_empty() => return Ok(()),
            None => {}
        }
    }
}

/// The error of a line of standard input, by its number.
fn unreadable(number: u64, source: io::Error) -> CommandError {
    match source.kind() {
        io::ErrorKind::InvalidData => CommandError::Usage(format!(
            "standard input, line {number}: it is not UTF-8; convert it, for example with iconv"
        )),
        _ => CommandError::System { doing: "can't read standard input", source },
    }
}

/// Settings of an engine that answers this command alone: it may take its time, and leaves no files
/// behind.
fn own_engine(device: &Device, threads: usize) -> Settings {
    const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);
    let (device, keep_tables, timeout) = (device.clone(), false, LONGEST);
    Settings { device, threads, keep_tables, timeout, ..Settings::default() }
}

/// Writes to standard output. A reader that stops early is no error, as in
/// `kindred eval … | head -1`.
fn print(text: &[u8]) -> Result<(), CommandError> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(text).and_then(|()| stdout.flush()) {
        Err(e) if e.kind() != io::ErrorKind::BrokenPipe => {
            Err(CommandError::System { doing: "can't write to standard output", source: e })
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_shown_as_a_shell_reads_them() {
        for (path, expected) in [
            ("models/glove.6B.50d", "models/glove.6B.50d"),
            ("modèles/fr", "modèles/fr"),
            ("my models/a", "'my models/a'"),
            ("it's", r"'it'\''s'"),
            ("a$b", "'a$b'"),
        ] {
            assert_eq!(typed(Path::new(path)), expected);
        }
    }
}
