//! The tensors of a state dict, under the names that Kindred knows.

use std::fmt::Display;

use model_store::Number;
use model_store::prepare::{FileKind, is_safetensors};
use safetensors::SafeTensors;
use safetensors::tensor::TensorView;

use super::ImportError;

/// The most tensors that an error lists.
const MAX_LISTED: usize = 40;

/// Where a layer stands: which of the known names it has, and the numbers in it.
pub(super) type LayerPlace = (usize, Vec<u32>);

/// The tensors of a file. Each can be taken once.
pub(super) struct StateDict<'a> {
    file: &'a str,
    tensors: Vec<Tensor<'a>>,
}

/// A tensor of a file.
pub(super) struct Tensor<'a> {
    /// The name of the file, for errors.
    pub(super) file: &'a str,
    /// Its name in the file.
    pub(super) name: String,
    /// Its name by `--map`.
    known_as: String,
    view: TensorView<'a>,
    is_used: bool,
}

impl Tensor<'_> {
    pub(super) fn shape(&self) -> &[usize] {
        self.view.shape()
    }

    /// The error for a shape that does not fit.
    pub(super) fn misfit(&self, needed: impl Display) -> ImportError {
        let Self { file, name, .. } = self;
        ImportError(format!("{file}: `{name}` has the shape {:?}; {needed}", self.shape()))
    }

    /// All numbers.
    pub(super) fn floats(&self) -> Result<Vec<f32>, ImportError> {
        let mut all = Vec::with_capacity(self.shape().iter().product());
        for part in self.parts(1 << 16)? {
            all.extend(part?);
        }
        Ok(all)
    }

    /// The numbers, `count` at a time: a table may be too large to be held twice.
    pub(super) fn parts(
        &self,
        count: usize,
    ) -> Result<impl Iterator<Item = Result<Vec<f32>, ImportError>>, ImportError> {
        let Self { file, name, view, .. } = self;
        let Some(number) = Number::of(view.dtype()) else {
            return Err(ImportError(format!(
                "{file}: `{name}` has the type {:?}; it must be F32, F64, F16 or BF16 (convert it \
                 with `.float()`)",
                view.dtype()
            )));
        };
        let part = move |(index, bytes): (usize, &[u8])| {
            let mut numbers = Vec::with_capacity(count);
            number.read(bytes, &mut numbers);
            match numbers.iter().position(|number| !number.is_finite()) {
                None => Ok(numbers),
                Some(at) => Err(ImportError(format!(
                    "{file}: number {} of `{name}` is not a finite float32; train the model again, \
                     or take an earlier state of it",
                    index * count + at
                ))),
            }
        };
        Ok(view.data().chunks(count * number.bytes()).enumerate().map(part))
    }
}

impl<'a> StateDict<'a> {
    /// Reads a file, leaves out the tensors to `ignore`, and gives the others the names of `map`.
    pub(super) fn with_names(
        file: &'a str,
        bytes: &'a [u8],
        ignore: &[String],
        map: &[(String, String)],
    ) -> Result<Self, ImportError> {
        let mut dict = Self::read(file, bytes)?;
        dict.ignore(ignore)?;
        dict.map(map)?;
        Ok(dict)
    }

    /// `file` is for errors.
    fn read(file: &'a str, bytes: &'a [u8]) -> Result<Self, ImportError> {
        let unreadable = |reason: String| {
            ImportError(format!(
                "{file}: {reason}; write the file with \
                 `safetensors.torch.save_file(model.state_dict(), \"state.safetensors\")`"
            ))
        };
        // The first bytes of safetensors are a length, which may look like a pickle's.
        if !is_safetensors(bytes) {
            match FileKind::of(bytes).or_else(|| FileKind::of_page(bytes)) {
                // A zip archive is `torch.save`'s.
                Some(kind) if kind.is_container() && !bytes.starts_with(b"PK") => {
                    return Err(ImportError(format!("{file}: {}", kind.reason())));
                }
                Some(kind) => {
                    return Err(unreadable(format!("it is {}, and not safetensors", kind.name())));
                }
                None if bytes.is_empty() => return Err(unreadable("it is empty".to_owned())),
                None => {}
            }
        }
        let read = SafeTensors::deserialize(bytes)
            .map_err(|error| unreadable(format!("it is not a safetensors file ({error})")))?;
        let tensor = |(name, view): (String, TensorView<'a>)| Tensor {
            file,
            known_as: name.clone(),
            name,
            view,
            is_used: false,
        };
        let mut tensors: Vec<_> = read.tensors().into_iter().map(tensor).collect();
        tensors.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(Self { file, tensors })
    }

    /// Gives the tensors below a name of the file the name that Kindred knows.
    fn map(&mut self, names: &[(String, String)]) -> Result<(), ImportError> {
        for (known, name) in names {
            let mut is_there = false;
            for tensor in &mut self.tensors {
                if let Some(rest) = below(&tensor.name, name) {
                    tensor.known_as = format!("{known}{rest}");
                    is_there = true;
                }
            }
            if !is_there {
                let tensors = self.listed();
                return Err(ImportError(format!(
                    "--map {known}={name}: {} has no tensor {name}, {name}.weight or {name}.bias; it has {tensors}",
                    self.file
                )));
            }
        }
        let mut known: Vec<&Tensor<'_>> = self.tensors.iter().collect();
        known.sort_by(|a, b| a.known_as.cmp(&b.known_as));
        match known.windows(2).find(|two| two[0].known_as == two[1].known_as) {
            None => Ok(()),
            Some(two) => Err(ImportError(format!(
                "{}: `{}` and `{}` would both be `{}`; give each a name of its own with --map",
                self.file, two[0].name, two[1].name, two[0].known_as
            ))),
        }
    }

    /// Leaves out the tensors with these names, or below them.
    fn ignore(&mut self, names: &[String]) -> Result<(), ImportError> {
        for name in names {
            let before = self.tensors.len();
            self.tensors.retain(|tensor| below(&tensor.name, name).is_none());
            if self.tensors.len() == before {
                let tensors = self.listed();
                return Err(ImportError(format!(
                    "--ignore {name}: {} has no such tensor; it has {tensors}",
                    self.file
                )));
            }
        }
        Ok(())
    }

    /// The layers whose names are one of `stems` and perhaps numbers, such as `fc`, `fc1`, `fc_1`,
    /// `fc.0` or `convs.0.0`: by the order of `stems`, then by number.
    pub(super) fn layers(&self, stems: &[&str]) -> Vec<String> {
        let found = |tensor: &Tensor<'_>| {
            let layer = tensor.known_as.strip_suffix(".weight")?;
            Some((place(layer, stems)?, layer.to_owned()))
        };
        let mut layers: Vec<(LayerPlace, String)> = self.tensors.iter().filter_map(found).collect();
        layers.sort();
        layers.into_iter().map(|(_, layer)| layer).collect()
    }

    pub(super) fn has(&self, known_as: &str) -> bool {
        self.tensors.iter().any(|tensor| tensor.known_as == known_as)
    }

    /// Takes a tensor by the name that Kindred knows.
    pub(super) fn take(&mut self, known_as: &str) -> Option<&Tensor<'a>> {
        let tensor = self.tensors.iter_mut().find(|tensor| tensor.known_as == known_as)?;
        tensor.is_used = true;
        Some(tensor)
    }

    /// Takes a layer's biases: zeros if it has none.
    pub(super) fn bias(&mut self, layer: &str, outputs: usize) -> Result<Vec<f32>, ImportError> {
        let Some(tensor) = self.take(&format!("{layer}.bias")) else {
            return Ok(vec![0.0; outputs]);
        };
        if tensor.shape() != [outputs] {
            let needed = format!("[{outputs}] is needed, one for each output of its weights");
            return Err(tensor.misfit(needed));
        }
        tensor.floats()
    }

    /// An error if a tensor was not taken.
    pub(super) fn check_all_are_used(&self) -> Result<(), ImportError> {
        let Some(tensor) = self.tensors.iter().find(|tensor| !tensor.is_used) else {
            return Ok(());
        };
        let Tensor { file, name, .. } = tensor;
        let prefix = name.rsplit_once('.').map_or(&name[..], |(prefix, _)| prefix);
        Err(ImportError(format!(
            "{file}: a head has no place for `{name}` {:?}; if it is a part of the head, say so \
             with --map, as in --map convs.0={prefix}; if answers do not depend on it, add \
             --ignore {name}",
            tensor.shape()
        )))
    }

    /// The error if nothing has one of the names of a tensor. `expected` has an example of --map.
    pub(super) fn missing(&self, expected: &str) -> ImportError {
        ImportError(format!(
            "{} has no tensor {expected}; if it has another name there, add --map. The file has {}",
            self.file,
            self.listed()
        ))
    }

    /// The tensors with their shapes, for errors.
    fn listed(&self) -> String {
        if self.tensors.is_empty() {
            return "no tensors".to_owned();
        }
        let shown = self.tensors.iter().take(MAX_LISTED);
        let shown: Vec<String> =
            shown.map(|tensor| format!("`{}` {:?}", tensor.name, tensor.shape())).collect();
        let others = match self.tensors.len().saturating_sub(MAX_LISTED) {
            0 => String::new(),
            others => format!(" and {others} others"),
        };
        shown.join(", ") + &others
    }
}

/// What follows `prefix` in a tensor's name, from the dot; `None` if the name is another one.
fn below<'n>(name: &'n str, prefix: &str) -> Option<&'n str> {
    name.strip_prefix(prefix).filter(|rest| rest.is_empty() || rest.starts_with('.'))
}

fn place(layer: &str, stems: &[&str]) -> Option<LayerPlace> {
    stems.iter().enumerate().find_map(|(index, stem)| {
        let rest = layer.strip_prefix(stem)?;
        if rest.is_empty() {
            return Some((index, Vec::new()));
        }
        let numbers = rest.strip_prefix(['.', '_']).unwrap_or(rest);
        let number = |digits: &str| match digits.bytes().all(|byte| byte.is_ascii_digit()) {
            true => digits.parse().ok(),
            false => None,
        };
        let numbers: Option<Vec<u32>> = numbers.split(['.', '_']).map(number).collect();
        Some((index, numbers?))
    })
}
