//! Synthetic vectors as GloVe text, for trying out `prepare` at full size.

use std::io::{self, Write};
use std::ops::ControlFlow;
use std::path::Path;

use rayon::prelude::*;

use super::folder::rows_per_chunk;
use super::{Synth, SynthOptions, word};
use crate::ModelError;
use crate::whole::NewFile;

/// Rows converted to text together.
const ROWS_PER_TASK: usize = 256;

/// Writes a synthetic table as GloVe text, with five significant digits per component as in GloVe's
/// own files, complete or not at all. Calls `on_progress` with the number of rows written; a break
/// cancels the work.
///
/// # Errors
/// If `out` exists (unless `replace` is set), or can't be written.
///
/// # Panics
/// If there are no rows or no components.
pub fn synth_text(
    SynthOptions { rows, dim, seed, .. }: SynthOptions,
    out: &Path,
    replace: bool,
    on_progress: &mut dyn FnMut(u32) -> ControlFlow<()>,
) -> Result<(), ModelError> {
    let synth = Synth::new(rows, dim, seed);
    let mut file = NewFile::beside(out, replace)?;
    let rows_per_chunk = rows_per_chunk(dim);
    for first in (0..rows).step_by(rows_per_chunk) {
        let end = rows.min(first.saturating_add(rows_per_chunk as u32));
        write_rows(&synth, first, end, &mut file).map_err(ModelError::io("write", out))?;
        if on_progress(end).is_break() {
            return Err(ModelError::Cancelled);
        }
    }
    file.complete()
}

fn write_rows(synth: &Synth, first: u32, end: u32, out: &mut impl Write) -> io::Result<()> {
    let tasks: Vec<u32> = (first..end).step_by(ROWS_PER_TASK).collect();
    let texts: Vec<Vec<u8>> = tasks
        .into_par_iter()
        .map(|task| {
            let mut text = Vec::new();
            let mut components = vec![0.0; synth.dim()];
            for row in task..end.min(task + ROWS_PER_TASK as u32) {
                synth.row(row, &mut components);
                text.extend_from_slice(word(row).as_bytes());
                for &component in &components {
                    text.push(b' ');
                    write_five_digits(component, &mut text);
                }
                text.push(b'\n');
            }
            text
        })
        .collect();
    texts.iter().try_for_each(|text| out.write_all(text))
}

/// A decimal number without exponent, with five significant digits unless it is too small.
fn write_five_digits(number: f32, text: &mut Vec<u8>) {
    const SMALLEST_SHOWN: i32 = 9;
    if number < 0.0 {
        text.push(b'-');
    }
    let size = f64::from(number.abs());
    let mut decimals = 4;
    let mut scaled = size * 1e4;
    while scaled.round() < 1e4 && decimals < SMALLEST_SHOWN {
        decimals += 1;
        scaled *= 10.0;
    }
    let digits = scaled.round() as u64;
    let one = 10u64.pow(decimals as u32);
    text.extend_from_slice(itoa::Buffer::new().format(digits / one).as_bytes());
    text.push(b'.');
    let rest = digits % one + one;
    // The leading 1 keeps the zeros after the point.
    text.extend_from_slice(&itoa::Buffer::new().format(rest).as_bytes()[1..]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keep_five_significant_digits() {
        for (number, expected) in [
            (0.123456, "0.12346"),
            (-0.0123456, "-0.012346"),
            (1.0, "1.0000"),
            (-12.34567, "-12.3457"),
            (0.99999999, "1.0000"),
            (0.0999999, "0.10000"),
            (0.0, "0.000000000"),
            (1e-7, "0.000000100"),
        ] {
            let mut text = Vec::new();
            write_five_digits(number, &mut text);
            assert_eq!(String::from_utf8(text).unwrap(), expected);
        }
    }
}
