//! Reads compressed data that is made of members one after the other, as `cat a.gz b.gz` and pbzip2
//! write it, and that may be padded with zero bytes, as on tapes.

use std::io::{self, BufRead, Read};

use bzip2::bufread::BzDecoder;
use flate2::bufread::GzDecoder;

/// The decoder of one member. It reads nothing that follows the member.
pub(super) trait Member: Read {
    type Source: BufRead;

    fn begin(source: Self::Source) -> Self;

    fn into_source(self) -> Self::Source;
}

impl<R: BufRead> Member for GzDecoder<R> {
    type Source = R;

    fn begin(source: R) -> Self {
        Self::new(source)
    }

    fn into_source(self) -> R {
        self.into_inner()
    }
}

impl<R: BufRead> Member for BzDecoder<R> {
    type Source = R;

    fn begin(source: R) -> Self {
        Self::new(source)
    }

    fn into_source(self) -> R {
        self.into_inner()
    }
}

/// Reads all members of a source. `see_padding` is told how many zero bytes follow the last one.
pub(super) struct Members<M, P> {
    /// `None` at the end.
    member: Option<M>,
    see_padding: P,
}

impl<M: Member, P: FnMut(u64)> Members<M, P> {
    pub(super) fn new(source: M::Source, see_padding: P) -> Self {
        Self { member: Some(M::begin(source)), see_padding }
    }
}

impl<M: Member, P: FnMut(u64)> Read for Members<M, P> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        while let Some(member) = &mut self.member {
            let read = member.read(buffer)?;
            if read > 0 {
                return Ok(read);
            }
            let Some(mut source) = self.member.take().map(M::into_source) else { break };
            match padding_at_end(&mut source)? {
                Some(zeros) => (self.see_padding)(zeros),
                None => self.member = Some(M::begin(source)),
            }
        }
        Ok(0)
    }
}

/// Uses up the zero bytes that come next. Their number if nothing follows them; `None` if there are
/// none before what follows.
pub(super) fn padding_at_end(source: &mut impl BufRead) -> io::Result<Option<u64>> {
    let mut zeros = 0;
    loop {
        let bytes = match source.fill_buf() {
            Ok(bytes) => bytes,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
            Err(e) => return Err(e),
        };
        if bytes.is_empty() {
            return Ok(Some(zeros));
        }
        let found = bytes.iter().take_while(|&&byte| byte == 0).count();
        let goes_on = found < bytes.len();
        source.consume(found);
        zeros += found as u64;
        if goes_on {
            let what = "other data follows zero bytes after the compressed data";
            return match zeros {
                0 => Ok(None),
                _ => Err(io::Error::new(io::ErrorKind::InvalidData, what)),
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufReader, Cursor, Write};

    use super::*;

    type Source = BufReader<Cursor<Vec<u8>>>;
    type Result = io::Result<(Vec<u8>, u64)>;

    fn gzip(content: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(content).unwrap();
        encoder.finish().unwrap()
    }

    fn bzip2(content: &[u8]) -> Vec<u8> {
        let mut encoder = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::best());
        encoder.write_all(content).unwrap();
        encoder.finish().unwrap()
    }

    /// The content, and the number of zero bytes that follow the members.
    fn read<M: Member<Source = Source>>(bytes: Vec<u8>) -> Result {
        let (mut content, mut padding) = (Vec::new(), 0);
        let source = BufReader::with_capacity(3, Cursor::new(bytes));
        Members::<M, _>::new(source, |zeros| padding += zeros).read_to_end(&mut content)?;
        Ok((content, padding))
    }

    #[test]
    fn members_are_read_to_the_last_and_zero_bytes_after_it_are_counted() {
        type Pack = fn(&[u8]) -> Vec<u8>;
        type Read = fn(Vec<u8>) -> Result;
        let both: [(Pack, Read); 2] =
            [(gzip, read::<GzDecoder<Source>>), (bzip2, read::<BzDecoder<Source>>)];
        for (pack, read) in both {
            let two = [pack(b"the 1 0\n"), pack(b""), pack(b"of 0 1\n")].concat();
            for zeros in [0, 1, 2, 512] {
                let padded = [&two[..], &vec![0; zeros]].concat();
                let expected = (b"the 1 0\nof 0 1\n".to_vec(), zeros as u64);
                assert_eq!(read(padded).unwrap(), expected);
            }
            for after in [&b"\0\0x"[..], b"x", b"\0\x1f\x8b"] {
                assert!(read([&two[..], after].concat()).is_err(), "{after:?}");
            }
            let between = [&two[..], &[0; 9], &two[..]].concat();
            assert_eq!(read(between).unwrap_err().kind(), io::ErrorKind::InvalidData);
            for missing in [1, 9] {
                assert!(read(two[..two.len() - missing].to_vec()).is_err(), "{missing}");
            }
            // Zero bytes do not hide that a checksum is missing.
            let zeros_instead = [&two[..two.len() - 9], &[0; 512]].concat();
            assert!(read(zeros_instead).is_err());
        }
    }
}
