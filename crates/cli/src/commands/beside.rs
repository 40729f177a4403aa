//! The verification of a model beside the work of a command. Opening a model checks its header and
//! sizes only, so that a single question is quick; work that writes a file or a report verifies
//! everything meanwhile.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use super::CommandError;
use kindred::background::in_background;
use kindred::{ModelError, ModelStore};

/// A verification that has begun. If it is dropped, it stops.
pub(super) struct Verification {
    thread: Option<JoinHandle<io::Result<Result<(), ModelError>>>>,
    stopped: Arc<AtomicBool>,
}

impl Verification {
    /// Starts to verify this model, at low priority.
    pub(super) fn start(model: &Arc<ModelStore>) -> Result<Self, CommandError> {
        let (model, stopped) = (model.clone(), Arc::new(AtomicBool::new(false)));
        let is_stopped = stopped.clone();
        let verify = move || {
            let goes_on = || !is_stopped.load(Ordering::Relaxed);
            in_background(|| model.verify_while(|_| (), goes_on))
        };
        let thread = thread::Builder::new().spawn(verify).map_err(no_thread)?;
        Ok(Self { thread: Some(thread), stopped })
    }

    /// Waits for its end. `written` is the file that is there by now, from this model.
    ///
    /// # Errors
    /// If the model is damaged: then so is what was computed from it.
    pub(super) fn finish(mut self, written: Option<&Path>) -> Result<(), CommandError> {
        let thread = self.thread.take().expect("it is taken here only");
        let verified = thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        verified.map_err(no_thread)?.map_err(|error| {
            let cure = match written {
                None => "nothing was written: run the command again with a whole model".to_owned(),
                Some(file) => {
                    let written = match file.as_os_str() == "-" {
                        true => "what went to standard output".to_owned(),
                        false => file.display().to_string(),
                    };
                    format!(
                        "{written} is from the damaged model: delete it, and run the command again \
                         with a whole model"
                    )
                }
            };
            CommandError::UsedDamaged { source: Box::new(error), cure }
        })
    }
}

impl Drop for Verification {
    fn drop(&mut self) {
        self.stopped.store(true, Ordering::Relaxed);
    }
}

fn no_thread(source: io::Error) -> CommandError {
    CommandError::System { doing: "can't verify the model beside the work", source }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kindred::prepare::{Input, PrepareOptions, prepare_in_memory};

    #[test]
    fn a_flipped_bit_is_found_and_a_whole_model_passes() {
        let input = Input::Bytes { name: "m", bytes: b"a 1 0\nb 0 1\n" };
        let files = prepare_in_memory(input, &PrepareOptions::default()).unwrap();
        let whole = Arc::new(ModelStore::from_memory("m", &files).unwrap());
        Verification::start(&whole).unwrap().finish(None).unwrap();
        let mut files = files;
        // Before it are 3 offsets of words, and the other norm.
        let norm = files.vectors.len() - 3 * 8 - 8;
        files.vectors[norm] ^= 1;
        let damaged = Arc::new(ModelStore::from_memory("m", &files).unwrap());
        for (written, part) in
            [(None, "nothing was written"), (Some(Path::new("out.csv")), "out.csv is from")]
        {
            let found = Verification::start(&damaged).unwrap().finish(written);
            let error = found.unwrap_err().to_string();
            assert!(error.contains("the checksum of its norms") && error.contains(part), "{error}");
        }
        drop(Verification::start(&whole).unwrap());
    }
}
