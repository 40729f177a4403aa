//! Rows of lines: texts, or JSON.

use memchr::memchr;
use model_store::delimited::Bytes as _;

use super::{JobError, MOST_ROW_BYTES, Piece, Source, too_large};

/// The next line without its end.
pub(super) fn next(
    source: &mut Source<'_, '_>,
    piece: &mut Piece,
    skips_blank: bool,
) -> Result<bool, JobError> {
    let (mut searched, mut is_too_large) = (0, false);
    loop {
        let rest = source.rest();
        let found = memchr(b'\n', &rest[searched..]).map(|at| searched + at);
        let end = found.unwrap_or(rest.len());
        is_too_large |= end > MOST_ROW_BYTES;
        if found.is_none() {
            match is_too_large {
                true => source.use_up(end),
                false => searched = end,
            }
            if source.more()? {
                searched = if is_too_large { 0 } else { searched };
                continue;
            }
            // The end of the input ends its last line, if there is one. Zero bytes after a line
            // only fill the file up.
            let is_filled_up = source.lines > 0 && source.rest().iter().all(|&byte| byte == 0);
            if (source.rest().is_empty() || is_filled_up) && !is_too_large {
                source.padding = source.rest().len() as u64;
                return Ok(false);
            }
        }
        // A file without a line feed may have lines that end with carriage returns, as those of old
        // programs. Read as one text, they would get one answer. JSON may have them between its
        // tokens.
        let is_text = !skips_blank;
        let is_all = found.is_none() && source.lines == 0;
        if is_text && is_all && memchr(b'\r', source.rest().trim_ascii()).is_some() {
            let reason = "the input has no line feeds, but carriage returns between its lines; \
                          convert them: tr '\\r' '\\n' <IN >OUT";
            return Err(JobError::Refused(reason.to_owned()));
        }
        let (end, number) = (end.min(source.rest().len()), source.lines + 1);
        let line = &source.rest()[..end];
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let is_blank = skips_blank && !is_too_large && line.trim_ascii().is_empty();
        if is_too_large {
            piece.push(number, b"", None, Some(too_large()));
        } else if !is_blank {
            piece.push(number, line, None, None);
        }
        source.lines = number;
        source.use_up(end + usize::from(found.is_some()));
        if !is_blank {
            return Ok(true);
        }
        (searched, is_too_large) = (0, false);
    }
}
