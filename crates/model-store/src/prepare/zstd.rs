//! Reads zstd: all frames of a file, each checked against its length and its checksum.
//!
//! The decoder hands bytes out only once a window of them is decoded, and a window may have 2 GiB.
//! So this reader checks, while it decodes, whether a file expands too much.

use std::error::Error;
use std::io::{self, BufRead, Read};

use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

use super::members::padding_at_end;

/// The largest window: 2 GiB, as `zstd --long=31` makes it. Memory is taken only as far as a file
/// fills it.
const MAX_WINDOW: u64 = 1 << 31;
/// Bytes that are decoded at a time, at least.
const STEP: usize = 256 << 10;

/// Reads the frames of `source`, one after the other. `allows` says whether n bytes may have been
/// decoded by now; `see_padding` is told how many zero bytes follow the last frame.
pub(super) struct ZstdReader<R, F, P> {
    source: R,
    allows: F,
    see_padding: P,
    /// Whether a frame was read.
    has_begun: bool,
    frame: Option<Frame>,
    /// At least the bytes decoded from all frames.
    decoded: u64,
}

struct Frame {
    decoder: FrameDecoder,
    /// Bytes of this frame that were handed out.
    read: u64,
}

impl<R: BufRead, F: Fn(u64) -> io::Result<()>, P: FnMut(u64)> ZstdReader<R, F, P> {
    pub(super) fn new(source: R, allows: F, see_padding: P) -> Self {
        Self { source, allows, see_padding, has_begun: false, frame: None, decoded: 0 }
    }

    /// Begins the next frame, if there is one.
    fn begin(&mut self) -> io::Result<()> {
        if self.has_begun
            && let Some(zeros) = padding_at_end(&mut self.source)?
        {
            (self.see_padding)(zeros);
            return Ok(());
        }
        self.has_begun = true;
        while self.frame.is_none() && !self.source.fill_buf()?.is_empty() {
            // A new decoder for each frame: it takes memory as it decodes, but a reused one takes
            // the whole window immediately.
            let mut decoder = FrameDecoder::new();
            decoder.set_max_window_size(MAX_WINDOW);
            match decoder.reset(&mut self.source) {
                Ok(()) => self.frame = Some(Frame { decoder, read: 0 }),
                Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame {
                    length,
                    ..
                })) => {
                    let length = u64::from(length);
                    let skipped = io::copy(&mut (&mut self.source).take(length), &mut io::sink())?;
                    if skipped < length {
                        return Err(io::ErrorKind::UnexpectedEof.into());
                    }
                }
                Err(e) => return Err(io_error(e)),
            }
        }
        Ok(())
    }
}

impl<R: BufRead, F: Fn(u64) -> io::Result<()>, P: FnMut(u64)> Read for ZstdReader<R, F, P> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        loop {
            if self.frame.is_none() {
                self.begin()?;
            }
            let Some(frame) = &mut self.frame else { return Ok(0) };
            if frame.decoder.can_collect() > 0 {
                let read = frame.decoder.read(buffer)?;
                frame.read += read as u64;
                return Ok(read);
            }
            if frame.decoder.is_finished() {
                frame.check()?;
                self.frame = None;
                continue;
            }
            let step = BlockDecodingStrategy::UptoBytes(STEP);
            let at_end = frame.decoder.decode_blocks(&mut self.source, step).map_err(io_error)?;
            if !at_end {
                self.decoded += STEP as u64;
                (self.allows)(self.decoded)?;
            }
        }
    }
}

impl Frame {
    /// Checks the frame once all of it was read.
    fn check(&self) -> io::Result<()> {
        let damaged = |what| Err(io::Error::new(io::ErrorKind::InvalidData, what));
        let length = self.decoder.content_size();
        // 0 also says that the length is not known.
        if length != 0 && length != self.read {
            return damaged("a frame has another length than it says");
        }
        let said = self.decoder.get_checksum_from_data();
        if said.is_some() && said != self.decoder.get_calculated_checksum() {
            return damaged("a frame has another checksum than it says");
        }
        Ok(())
    }
}

/// The source's error, if the source caused it.
fn io_error(error: FrameDecoderError) -> io::Error {
    let mut cause: Option<&(dyn Error + 'static)> = Some(&error);
    while let Some(inner) = cause {
        if let Some(source) = inner.downcast_ref::<io::Error>() {
            return match source.raw_os_error() {
                Some(code) => io::Error::from_raw_os_error(code),
                None => io::Error::new(source.kind(), error),
            };
        }
        cause = inner.source();
    }
    match error {
        FrameDecoderError::WindowSizeTooBig { requested, max } => io::Error::other(format!(
            "a window of {requested} bytes of memory, at most {max} are allowed"
        )),
        error => io::Error::new(io::ErrorKind::InvalidData, error),
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufReader, Cursor};

    use super::*;

    /// `seq 1 40 | zstd`: of unknown length, with a checksum. Its window's size is the 6th byte.
    const FRAME: &str = "28b52ffd0458d50100f2860d0ba0c50d4f768bc47fe31e02871c3ae8d5a94f97decebe1e3d70c08b131f2e\
                         bc9c7c3c78d860d7a63d5b7637f776ec30b8a667b9f305009932fff3";
    /// The same with `--no-check`.
    const UNCHECKED: &str = "28b52ffd0058d50100f2860d0ba0c50d4f768bc47fe31e02871c3ae8d5a94f97decebe1e3d70c08b13\
                             1f2ebc9c7c3c78d860d7a63d5b7637f776ec30b8a667b9f30500";
    /// What pzstd writes before each frame.
    const SKIPPED: &str = "502a4d180400000047000000";

    fn bytes(hex: &str) -> Vec<u8> {
        let digit = |index| u8::from_str_radix(&hex[index..index + 2], 16).unwrap();
        (0..hex.len()).step_by(2).map(digit).collect()
    }

    fn numbers() -> Vec<u8> {
        (1..=40).flat_map(|n| format!("{n}\n").into_bytes()).collect()
    }

    fn read(bytes: &[u8]) -> io::Result<Vec<u8>> {
        let mut read = Vec::new();
        let source = BufReader::with_capacity(3, Cursor::new(bytes));
        ZstdReader::new(source, |_| Ok(()), |_| ()).read_to_end(&mut read).map(|_| read)
    }

    #[test]
    fn frames_of_the_zstd_tool_one_after_the_other() {
        let several = [FRAME, SKIPPED, UNCHECKED, SKIPPED, FRAME].concat();
        assert_eq!(read(&bytes(&several)).unwrap(), numbers().repeat(3));
        assert_eq!(read(b"").unwrap(), b"");
        // Whole frames, and zero bytes up to the size of a block.
        let mut padded = bytes(&several);
        padded.extend([0; 99]);
        assert_eq!(read(&padded).unwrap(), numbers().repeat(3));
        // `--long=31`.
        let mut long = bytes(FRAME);
        long[5] = 0xa8;
        assert_eq!(read(&long).unwrap(), numbers());
    }

    #[test]
    fn what_is_cut_or_changed_is_an_error() {
        let whole = bytes(&[FRAME, SKIPPED, FRAME].concat());
        let ends = [FRAME.len() / 2, (FRAME.len() + SKIPPED.len()) / 2];
        for cut in 1..whole.len() {
            let error = read(&whole[..cut]).err().map(|error| error.kind());
            let is_whole = ends.contains(&cut);
            assert_eq!(error, (!is_whole).then_some(io::ErrorKind::UnexpectedEof), "{cut}");
        }
        let changed = |index: usize, to: u8| {
            let mut bytes = bytes(FRAME);
            bytes[index] = to;
            read(&bytes).unwrap_err().to_string()
        };
        assert!(changed(FRAME.len() / 2 - 1, 0).contains("checksum"));
        assert!(changed(5, 0xb0).contains("memory"), "4 GiB");
        // Single segments say their length.
        let mut sized = bytes(FRAME);
        sized.splice(4..6, [0x24, 111]);
        assert_eq!(read(&sized).unwrap(), numbers());
        sized[5] = 112;
        assert!(read(&sized).unwrap_err().to_string().contains("length"));
        assert_eq!(
            read(&[bytes(FRAME), b"abcd".to_vec()].concat()).unwrap_err().kind(),
            io::ErrorKind::InvalidData
        );
    }

    #[test]
    fn what_expands_too_much_is_given_up_before_its_window_is_full() {
        // Blocks of 128 KiB of one byte each, in a window of 2 GiB.
        let mut bomb = b"\x28\xb5\x2f\xfd\x00\xa8".to_vec();
        bomb.extend(b"\x02\x00\x100".repeat(10_000));
        let source = BufReader::new(Cursor::new(bomb));
        let allows = |decoded| if decoded > 8 << 20 { Err(io::Error::other("no")) } else { Ok(()) };
        let mut reader = ZstdReader::new(source, allows, |_| ());
        assert_eq!(reader.read(&mut [0; 9]).unwrap_err().to_string(), "no");
        assert!(reader.decoded < 9 << 20);
    }

    #[test]
    fn an_error_of_the_system_s_stays_one() {
        struct Broken;
        impl Read for Broken {
            fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
                Err(io::Error::from_raw_os_error(5))
            }
        }
        for at in [0, 3, 20] {
            let start = Cursor::new(bytes(FRAME)[..at].to_vec());
            let mut reader =
                ZstdReader::new(BufReader::new(start.chain(Broken)), |_| Ok(()), |_| ());
            assert_eq!(reader.read(&mut [0; 9]).unwrap_err().raw_os_error(), Some(5), "{at}");
        }
    }
}
