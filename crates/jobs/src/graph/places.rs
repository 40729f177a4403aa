//! Bytes at places of a file, read and written by threads that share it: calls that name the place,
//! as each system has them.

use std::fs::File;
use std::io;

/// Writes all bytes, the first of them at `place`.
///
/// # Errors
/// If the system writes fewer.
pub(super) fn write_all_at(file: &File, bytes: &[u8], place: u64) -> io::Result<()> {
    write_all_by(|bytes, place| write_at(file, bytes, place), bytes, place)
}

/// Fills `bytes` with those from `place` on.
///
/// # Errors
/// If the file ends earlier, or the system reads fewer.
pub(super) fn read_exact_at(file: &File, bytes: &mut [u8], place: u64) -> io::Result<()> {
    read_exact_by(|bytes, place| read_at(file, bytes, place), bytes, place)
}

#[cfg(unix)]
fn write_at(file: &File, bytes: &[u8], place: u64) -> io::Result<usize> {
    std::os::unix::fs::FileExt::write_at(file, bytes, place)
}

#[cfg(unix)]
fn read_at(file: &File, bytes: &mut [u8], place: u64) -> io::Result<usize> {
    std::os::unix::fs::FileExt::read_at(file, bytes, place)
}

/// Also moves the file's cursor, which nobody uses.
#[cfg(windows)]
fn write_at(file: &File, bytes: &[u8], place: u64) -> io::Result<usize> {
    std::os::windows::fs::FileExt::seek_write(file, bytes, place)
}

/// Also moves the file's cursor, which nobody uses.
#[cfg(windows)]
fn read_at(file: &File, bytes: &mut [u8], place: u64) -> io::Result<usize> {
    std::os::windows::fs::FileExt::seek_read(file, bytes, place)
}

fn write_all_by(
    mut write: impl FnMut(&[u8], u64) -> io::Result<usize>,
    mut bytes: &[u8],
    mut place: u64,
) -> io::Result<()> {
    while !bytes.is_empty() {
        match write(bytes, place) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => {
                bytes = &bytes[written..];
                place += written as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn read_exact_by(
    mut read: impl FnMut(&mut [u8], u64) -> io::Result<usize>,
    mut bytes: &mut [u8],
    mut place: u64,
) -> io::Result<()> {
    while !bytes.is_empty() {
        match read(bytes, place) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(read) => {
                bytes = &mut bytes[read..];
                place += read as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_read_where_they_were_written() {
        let file = tempfile::tempfile().unwrap();
        write_all_at(&file, b"defg", 3).unwrap();
        write_all_at(&file, b"abc", 0).unwrap();
        let mut bytes = [0; 5];
        read_exact_at(&file, &mut bytes, 1).unwrap();
        assert_eq!(&bytes, b"bcdef");
        let error = read_exact_at(&file, &mut bytes, 3).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
    }

    /// Two bytes a call, and an interruption before each.
    #[test]
    fn calls_that_do_less_are_repeated() {
        let mut interrupt = false;
        let mut some = |length: usize| -> io::Result<usize> {
            interrupt = !interrupt;
            if interrupt { Err(io::ErrorKind::Interrupted.into()) } else { Ok(length.min(2)) }
        };
        let mut file = [0; 7];
        let write = |bytes: &[u8], place: u64| -> io::Result<usize> {
            let (length, place) = (some(bytes.len())?, place as usize);
            file[place..][..length].copy_from_slice(&bytes[..length]);
            Ok(length)
        };
        write_all_by(write, b"abcde", 1).unwrap();
        assert_eq!(&file, b"\0abcde\0");
        let read = |bytes: &mut [u8], place: u64| -> io::Result<usize> {
            let (length, place) = (some(bytes.len())?, place as usize);
            bytes[..length].copy_from_slice(&file[place..][..length]);
            Ok(length)
        };
        let mut bytes = [0; 4];
        read_exact_by(read, &mut bytes, 2).unwrap();
        assert_eq!(&bytes, b"bcde");
    }

    #[test]
    fn calls_that_do_nothing_are_errors() {
        let error = write_all_by(|_, _| Ok(0), b"a", 0).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::WriteZero);
        let error = read_exact_by(|_, _| Ok(0), &mut [0], 0).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
        let full = |_: &[u8], _| Err(io::ErrorKind::StorageFull.into());
        let error = write_all_by(full, b"a", 0).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
    }
}
