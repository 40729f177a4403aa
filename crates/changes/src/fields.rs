//! Reads and writes little-endian fields one behind another.

/// The rest of some bytes, from which fields are taken. `None` if too few are left.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fields<'a>(pub(crate) &'a [u8]);

impl<'a> Fields<'a> {
    /// The next bytes.
    pub(crate) fn bytes(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.bytes(N).map(|bytes| bytes.try_into().expect("as many bytes as were taken"))
    }

    /// The next byte.
    pub(crate) fn u8(&mut self) -> Option<u8> {
        self.array().map(u8::from_le_bytes)
    }

    /// The next four bytes.
    pub(crate) fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    /// The next eight bytes.
    pub(crate) fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    /// A text after its length as `u32`.
    pub(crate) fn text(&mut self) -> Option<&'a str> {
        let length = self.u32()?;
        std::str::from_utf8(self.bytes(usize::try_from(length).ok()?)?).ok()
    }
}

/// Bytes that begin at a multiple of eight in memory, so that numbers in them are read in place.
#[derive(Debug, Clone, Default)]
pub(crate) struct Aligned {
    words: Vec<u64>,
    length: usize,
}

impl Aligned {
    /// This many zero bytes.
    pub(crate) fn zeroed(length: usize) -> Self {
        Self { words: vec![0; length.div_ceil(size_of::<u64>())], length }
    }

    /// These parts, one behind another.
    pub(crate) fn of_parts(parts: &[&[u8]]) -> Self {
        let mut all = Self::zeroed(parts.iter().map(|part| part.len()).sum());
        let mut rest = all.bytes_mut();
        for part in parts {
            let (here, behind) = rest.split_at_mut(part.len());
            here.copy_from_slice(part);
            rest = behind;
        }
        all
    }

    /// Reserves memory for this number of further bytes.
    pub(crate) fn reserve(&mut self, bytes: usize) {
        let words = (self.length + bytes).div_ceil(size_of::<u64>());
        self.words.reserve(words.saturating_sub(self.words.len()));
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &bytemuck::cast_slice(&self.words)[..self.length]
    }

    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        &mut bytemuck::cast_slice_mut(&mut self.words)[..self.length]
    }

    /// Appends bytes.
    pub(crate) fn extend(&mut self, bytes: &[u8]) {
        let before = self.length;
        self.length += bytes.len();
        self.words.resize(self.length.div_ceil(size_of::<u64>()), 0);
        self.bytes_mut()[before..].copy_from_slice(bytes);
    }

    /// Appends zero bytes up to a multiple of eight.
    pub(crate) fn pad(&mut self) {
        let length = self.length.next_multiple_of(size_of::<u64>());
        self.extend(&vec![0; length - self.length]);
    }

    /// Leaves only the first bytes.
    pub(crate) fn truncate(&mut self, length: usize) {
        self.length = self.length.min(length);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_end_where_the_bytes_end() {
        let mut fields = Fields(&[1, 2, 0, 0, 0, b'a', b'b', 3, 0, 0, 0, 0xff, b'c', b'd', 7]);
        assert_eq!((fields.u8(), fields.text()), (Some(1), Some("ab")));
        assert_eq!(fields.clone().text(), None, "no UTF-8");
        assert_eq!(fields.u32(), Some(3));
        assert_eq!(
            (fields.u64(), fields.bytes(5), fields.bytes(4)),
            (None, None, Some(&[0xff, b'c', b'd', 7][..]))
        );
        assert_eq!(fields.u8(), None);
    }

    #[test]
    fn aligned_bytes_are_those_that_were_copied() {
        for length in 0..20 {
            let bytes: Vec<u8> = (0..length).collect();
            let mut copy =
                Aligned::of_parts(&[&bytes[..bytes.len() / 2], &bytes[bytes.len() / 2..]]);
            assert_eq!(copy.bytes(), bytes);
            assert!(copy.bytes().as_ptr().cast::<u64>().is_aligned());
            copy.pad();
            copy.extend(&[7]);
            assert_eq!(copy.bytes().len() % 8, 1);
            assert_eq!((copy.bytes().last(), &copy.bytes()[..bytes.len()]), (Some(&7), &bytes[..]));
            copy.truncate(3.min(bytes.len()));
            assert_eq!(copy.bytes(), &bytes[..bytes.len().min(3)]);
        }
    }
}
