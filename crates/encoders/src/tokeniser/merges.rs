//! The merges of a BPE tokeniser, as its file has them and by the ids of their parts.

use std::collections::BTreeMap;

use hashbrown::HashMap;
use serde::Deserialize;

use super::fault::Fault;

/// The merges, the first one first: pairs, or as older files have them, texts with a space.
#[derive(Deserialize)]
#[serde(untagged)]
pub(super) enum Merges {
    Pairs(Vec<(String, String)>),
    Lines(Vec<String>),
}

/// By the ids of two parts: the place in the list, and the id of both together.
pub(super) type MergeMap = HashMap<(u32, u32), (u32, u32)>;

/// The merges by the ids of the two parts.
pub(super) fn merges_of(
    merges: Merges,
    vocab: &BTreeMap<String, u32>,
    prefix: &str,
) -> Result<MergeMap, Fault> {
    let pairs = match merges {
        Merges::Pairs(pairs) => pairs,
        Merges::Lines(lines) => {
            let lines = lines.into_iter().filter(|line| !line.starts_with("#version"));
            let pair = |line: String| match line.split_once(' ') {
                Some((left, right)) if !right.contains(' ') => {
                    Ok((left.to_owned(), right.to_owned()))
                }
                _ => Err(Fault::Faulty(format!("its merge {line:?} is not two parts"))),
            };
            lines.map(pair).collect::<Result<_, _>>()?
        }
    };
    let id = |token: &str| {
        vocab
            .get(token)
            .copied()
            .ok_or_else(|| Fault::Faulty(format!("{token:?}, which is in its merges, has no id")))
    };
    let merge = |((left, right), place): ((String, String), u32)| {
        let (ids, rest) = ((id(&left)?, id(&right)?), right.get(prefix.len()..));
        let Some(rest) = rest else {
            let reason = format!("{right:?}, which is in its merges, is shorter than {prefix:?}");
            return Err(Fault::Faulty(reason));
        };
        Ok((ids, (place, id(&format!("{left}{rest}"))?)))
    };
    pairs.into_iter().zip(0..).map(merge).collect()
}
