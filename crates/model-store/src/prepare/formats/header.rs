//! Headers of some formats.

use safetensors::tensor::Metadata;

use crate::npy::Numbers;
use crate::number::Number;
use crate::prepare::separator::Separator;

/// word2vec's first line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Word2vecHeader {
    pub(super) rows: u64,
    pub(super) dim: usize,
    /// Its length, with the line feed.
    pub(super) bytes: usize,
}

impl Word2vecHeader {
    /// Two numbers of 20 digits, with separators.
    const MOST_BYTES: usize = 64;

    /// The same with this sign between the numbers, or white space.
    pub(super) fn separated(head: &[u8], separator: Separator) -> Option<Self> {
        match separator {
            Separator::Space | Separator::Tab => Self::read(head),
            // Nothing is before the comma in a row of names that begins with an index.
            Separator::Comma if head.starts_with(b",") => None,
            Separator::Comma => {
                let start = head.iter().take(Self::MOST_BYTES);
                let spaced = start.map(|&byte| if byte == b',' { b' ' } else { byte });
                Self::read(&spaced.collect::<Vec<u8>>())
            }
        }
    }

    /// Two whole numbers on a separate line.
    pub(super) fn read(head: &[u8]) -> Option<Self> {
        let end = head.iter().take(Self::MOST_BYTES).position(|&b| b == b'\n')?;
        let line = std::str::from_utf8(&head[..end]).ok()?;
        let mut fields = line.split_ascii_whitespace();
        let mut number = || fields.next().filter(|f| f.bytes().all(|b| b.is_ascii_digit()));
        let (rows, dim) = (number()?.parse().ok()?, number()?.parse().ok()?);
        fields.next().is_none().then_some(Self { rows, dim, bytes: end + 1 })
    }
}

/// A table of numbers after a header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NumbersHeader {
    pub(super) rows: u64,
    pub(super) dim: usize,
    pub(super) number: Number,
    /// The offset of the first row.
    pub(super) start: u64,
    /// Whether other data may follow the rows.
    pub(super) may_go_on: bool,
}

impl NumbersHeader {
    /// Reads the header of a NumPy file.
    pub(super) fn npy(head: &[u8]) -> Result<Self, String> {
        let Numbers { shape, number, start } = Numbers::read(head)?;
        let &[rows, dim] = shape.as_slice() else {
            let cure = match shape.len() {
                0 | 1 => "numpy.save(path, array.reshape(ROWS, -1))",
                _ => "numpy.save(path, array.reshape(len(array), -1))",
            };
            return Err(format!(
                "its array has {} dimensions instead of 2 (rows × components); save it with {cure}",
                shape.len()
            ));
        };
        let dim = usize::try_from(dim).unwrap_or(usize::MAX);
        Ok(Self { rows, dim, number, start, may_go_on: false })
    }

    /// Reads the header of a safetensors file: the tensor of this name, or the only two-dimensional
    /// one.
    pub(super) fn safetensors(head: &[u8], name: Option<&str>) -> Result<Self, String> {
        let (length, rest) =
            head.split_first_chunk().ok_or("it ends inside its safetensors header")?;
        let length = u64::from_le_bytes(*length);
        let json = usize::try_from(length).ok().and_then(|length| rest.get(..length));
        let json = json.ok_or_else(|| {
            format!(
                "its safetensors header claims {length} bytes, which is more than the file has or than is \
                 plausible"
            )
        })?;
        let metadata: Metadata = serde_json::from_slice(json)
            .map_err(|e| format!("its safetensors header can't be read ({e})"))?;
        let mut tensors: Vec<_> = metadata.tensors().into_iter().collect();
        tensors.sort_by(|a, b| a.0.cmp(&b.0));
        let listed = || {
            let shown =
                tensors.iter().take(20).map(|(name, info)| format!("`{name}` {:?}", info.shape));
            shown.collect::<Vec<_>>().join(", ")
        };
        let tables: Vec<_> = tensors.iter().filter(|(_, info)| info.shape.len() == 2).collect();
        let (name, info) = match (name, tables.as_slice()) {
            (Some(name), tables) => {
                *tables.iter().find(|(found, _)| found == name).ok_or_else(|| {
                    format!("it has no two-dimensional tensor `{name}`; it has {}", listed())
                })?
            }
            (None, [one]) => one,
            (None, []) => {
                return Err(format!("it has no two-dimensional tensor; it has {}", listed()));
            }
            (None, _) => {
                return Err(format!(
                    "it has several two-dimensional tensors; choose one with --tensor: {}",
                    listed()
                ));
            }
        };
        let number = Number::of(info.dtype).ok_or_else(|| {
            let other = info.dtype;
            format!("its tensor `{name}` has the type {other:?}; it must be F32, F64, F16 or BF16")
        })?;
        let (rows, dim) = (info.shape[0], info.shape[1]);
        // The header was checked to have enough data for the shape.
        let start = (info.data_offsets.0 as u64).saturating_add(8 + length);
        Ok(Self { rows: rows as u64, dim, number, start, may_go_on: true })
    }
}
