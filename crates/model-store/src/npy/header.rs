//! Reads the header of a NumPy file: a Python dictionary of three keys.
//!
//! A parser of our own, because fuzzing found that the crates for Python literals take time
//! exponential in the depth of nested brackets; here nothing nests.

pub(super) const SIGNATURE: &[u8] = b"\x93NUMPY";

/// The description of the array in a NumPy file.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct NpyHeader {
    /// The type of its numbers, such as `<f4`; `structured` for anything that is not a string.
    pub(super) descr: String,
    pub(super) fortran_order: bool,
    pub(super) shape: Vec<u64>,
    /// The offset of the numbers.
    pub(super) bytes: u64,
}

impl NpyHeader {
    /// Reads the header of a file that starts with `head`.
    pub(super) fn read(head: &[u8]) -> Result<Self, &'static str> {
        let rest =
            head.strip_prefix(SIGNATURE).ok_or("it does not begin with the npy signature")?;
        let (version, rest) = rest.split_at_checked(2).ok_or(CUT)?;
        let (length, rest) = match version[0] {
            1 => rest.split_first_chunk().map(|(n, rest)| (u16::from_le_bytes(*n).into(), rest)),
            2 | 3 => rest.split_first_chunk().map(|(n, rest)| (u32::from_le_bytes(*n), rest)),
            _ => return Err("its version is not 1, 2 or 3"),
        }
        .ok_or(CUT)?;
        let text = rest.get(..length as usize).ok_or(CUT)?;
        let bytes = (head.len() - rest.len() + text.len()) as u64;
        let text = std::str::from_utf8(text).map_err(|_| "it is not UTF-8")?;
        Dictionary(text.trim()).read(bytes)
    }
}

const CUT: &str = "it is cut off";
const NOT_ONE: &str = "it is not a dictionary with descr, fortran_order and shape";

/// The rest of the text.
struct Dictionary<'a>(&'a str);

impl<'a> Dictionary<'a> {
    fn read(mut self, bytes: u64) -> Result<NpyHeader, &'static str> {
        self.0 = self.0.strip_prefix('{').and_then(|text| text.strip_suffix('}')).ok_or(NOT_ONE)?;
        let (mut descr, mut fortran_order, mut shape) = (None, None, None);
        while !self.0.trim_start().is_empty() {
            let key = self.quoted()?;
            self.skip(':')?;
            match key {
                "descr" if self.0.trim_start().starts_with(['\'', '"']) => {
                    descr = Some(self.quoted()?.to_owned());
                }
                // The content does not matter: such arrays are not vectors.
                "descr" => {
                    let (descr, shape) = ("structured".to_owned(), vec![0, 0]);
                    return Ok(NpyHeader { descr, fortran_order: false, shape, bytes });
                }
                "fortran_order" => fortran_order = Some(self.truth()?),
                "shape" => shape = Some(self.numbers()?),
                _ => return Err(NOT_ONE),
            }
            if !self.0.trim_start().is_empty() {
                self.skip(',')?;
            }
        }
        match (descr, fortran_order, shape) {
            (Some(descr), Some(fortran_order), Some(shape)) => {
                Ok(NpyHeader { descr, fortran_order, shape, bytes })
            }
            _ => Err(NOT_ONE),
        }
    }

    fn skip(&mut self, expected: char) -> Result<(), &'static str> {
        self.0 = self.0.trim_start().strip_prefix(expected).ok_or(NOT_ONE)?;
        Ok(())
    }

    fn quoted(&mut self) -> Result<&'a str, &'static str> {
        let text = self.0.trim_start();
        let quote = text.chars().next().filter(|c| matches!(c, '\'' | '"')).ok_or(NOT_ONE)?;
        let (inside, rest) = text[1..].split_once(quote).ok_or(NOT_ONE)?;
        self.0 = rest;
        Ok(inside)
    }

    fn truth(&mut self) -> Result<bool, &'static str> {
        let text = self.0.trim_start();
        for (name, value) in [("True", true), ("False", false)] {
            if let Some(rest) = text.strip_prefix(name) {
                self.0 = rest;
                return Ok(value);
            }
        }
        Err(NOT_ONE)
    }

    fn numbers(&mut self) -> Result<Vec<u64>, &'static str> {
        self.skip('(')?;
        let (inside, rest) = self.0.split_once(')').ok_or(NOT_ONE)?;
        self.0 = rest;
        let fields = inside.split(',').map(str::trim);
        // A tuple may end in a comma. Python 2 wrote an L behind large numbers.
        let fields = fields.filter(|field| !field.is_empty());
        fields.map(|field| field.trim_end_matches('L').parse().map_err(|_| NOT_ONE)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(version: u8, text: &str) -> Result<NpyHeader, &'static str> {
        let mut head = [b"\x93NUMPY", &[version, 0][..]].concat();
        match version {
            1 => head.extend((text.len() as u16).to_le_bytes()),
            _ => head.extend((text.len() as u32).to_le_bytes()),
        }
        head.extend(text.bytes());
        NpyHeader::read(&head)
    }

    #[test]
    fn headers_as_programs_write_them() {
        for version in [1, 2, 3] {
            for text in [
                "{'descr': '<f4', 'fortran_order': False, 'shape': (4, 3), }            \n",
                "{\"shape\":(4,3,),\"descr\":\"<f4\",\"fortran_order\":False}",
                " { 'fortran_order' : False , 'shape' : ( 4L , 3L ) , 'descr' : '<f4' } ",
            ] {
                let bytes = (if version == 1 { 10 } else { 12 } + text.len()) as u64;
                let expected = NpyHeader {
                    descr: "<f4".into(),
                    fortran_order: false,
                    shape: vec![4, 3],
                    bytes,
                };
                assert_eq!(read(version, text).unwrap(), expected, "{text}");
            }
        }
        let shape = |shape| {
            read(1, &format!("{{'descr': '|u1', 'fortran_order': True, 'shape': {shape}}}"))
        };
        assert!(shape("()").unwrap().shape.is_empty());
        assert_eq!(shape("(5,)").unwrap().shape, [5]);
        assert!(shape("(5,)").unwrap().fortran_order);
        let structured =
            "{'descr': [('a', '<f4'), ('b', '<i2')], 'fortran_order': False, 'shape': (4,), }";
        assert_eq!(read(1, structured).unwrap().descr, "structured");
    }

    #[test]
    fn what_is_no_header_is_refused() {
        for text in [
            "",
            "{}",
            "{'descr': '<f4', 'fortran_order': False}",
            "{'descr': '<f4', 'fortran_order': Maybe, 'shape': (4, 3)}",
            "{'descr': '<f4', 'fortran_order': False, 'shape': (4, -3)}",
            "{'descr': '<f4', 'fortran_order': False, 'shape': (4, 99999999999999999999)}",
            "{'descr': '<f4', 'fortran_order': False, 'shape': [4, 3]}",
            "{'descr': '<f4' 'fortran_order': False, 'shape': (4, 3)}",
            "{'descr: '<f4', 'fortran_order': False, 'shape': (4, 3)}",
            "{'more': 1, 'descr': '<f4', 'fortran_order': False, 'shape': (4, 3)}",
        ] {
            assert_eq!(read(1, text), Err(NOT_ONE), "{text}");
        }
        // A parser of Python literals took exponential time for this.
        let nested = format!("{{'descr': {}", "[".repeat(60_000));
        assert_eq!(read(1, &nested), Err(NOT_ONE));
        assert!(read(1, &(nested + "}")).is_ok_and(|header| header.descr == "structured"));
        assert_eq!(read(9, "{}"), Err("its version is not 1, 2 or 3"));
        assert_eq!(NpyHeader::read(b"\x93NUMPY\x01\x00\x05"), Err(CUT));
        assert_eq!(NpyHeader::read(b"\x93NUMPY\x01\x00\x05\x00{}"), Err(CUT));
    }
}
