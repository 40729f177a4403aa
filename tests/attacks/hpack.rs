//! Heads of answers in HTTP/2, as far as they are of interest.

/// What is of interest in the head of an answer.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Head {
    pub(crate) status: u16,
    pub(crate) retry_after: Option<u16>,
}

impl Head {
    /// Reads a block that uses no dynamic table (RFC 7541).
    pub(crate) fn of(mut block: &[u8]) -> Self {
        let mut head = Self::default();
        while let Some(&first) = block.first() {
            if first & 0x80 != 0 {
                if let index @ 8..=14 = integer(&mut block, 7) {
                    head.status = [200, 204, 206, 304, 400, 404, 500][index - 8];
                }
            } else if first & 0xe0 == 0x20 {
                integer(&mut block, 5); // The table's size.
            } else {
                let name = integer(&mut block, if first & 0x40 != 0 { 6 } else { 4 });
                if name == 0 {
                    string(&mut block);
                }
                let value = string(&mut block);
                match name {
                    8 => head.status = digits(value),
                    53 => head.retry_after = Some(digits(value)),
                    _ => {}
                }
            }
        }
        head
    }
}

fn integer(block: &mut &[u8], bits: u32) -> usize {
    let most = (1 << bits) - 1;
    let mut value = usize::from(block[0]) & most;
    *block = &block[1..];
    let mut shift = 0;
    while value >= most {
        let byte = usize::from(block[0]);
        *block = &block[1..];
        value += (byte & 0x7f) << shift;
        shift += 7;
        if byte & 0x80 == 0 {
            break;
        }
    }
    value
}

/// Its bytes, and whether they are in Huffman's code.
fn string<'a>(block: &mut &'a [u8]) -> (bool, &'a [u8]) {
    let is_coded = block[0] & 0x80 != 0;
    let length = integer(block, 7);
    let (text, rest) = block.split_at(length);
    *block = rest;
    (is_coded, text)
}

/// A number. Of Huffman's code only the digits are known: 0 to 2 have five bits, 3 to 9 six.
fn digits((is_coded, text): (bool, &[u8])) -> u16 {
    if !is_coded {
        return std::str::from_utf8(text).expect("ASCII").parse().expect("a number");
    }
    let bits: Vec<u16> = text
        .iter()
        .flat_map(|byte| (0..8).rev().map(move |bit| u16::from(byte >> bit & 1)))
        .collect();
    let (mut number, mut rest) = (0, &bits[..]);
    let value = |bits: &[u16]| bits.iter().fold(0, |value, bit| value * 2 + bit);
    while rest.len() >= 5 && rest.contains(&0) {
        let (digit, length) = match value(&rest[..5]) {
            digit @ 0..=2 => (digit, 5),
            _ => (value(&rest[..6]) - 0b01_1001 + 3, 6),
        };
        (number, rest) = (number * 10 + digit, &rest[length..]);
    }
    number
}
