//! The names of a simulated disk, and how they change.

use std::collections::BTreeMap;

/// The content that each name leads to.
pub(super) type Names = BTreeMap<String, usize>;

/// A change of names.
#[derive(Clone)]
pub(super) enum Renaming {
    Give(String, usize),
    Take(String),
    /// A folder, with all that is in it.
    Move(String, String),
}

impl Renaming {
    /// The folder in which it is done.
    pub(super) fn folder(&self) -> &str {
        let (Self::Give(name, _) | Self::Take(name) | Self::Move(name, _)) = self;
        parent(name)
    }

    pub(super) fn apply(&self, names: &mut Names) {
        match self {
            Self::Give(name, inode) => drop(names.insert(name.clone(), *inode)),
            Self::Take(name) => drop(names.remove(name)),
            Self::Move(from, to) => {
                let inside = format!("{from}/");
                let moved = |name: &String| *name == *from || name.starts_with(&inside);
                let old: Vec<String> = names.keys().filter(|name| moved(name)).cloned().collect();
                for name in old {
                    let inode = names.remove(&name).expect("it was listed");
                    names.insert(format!("{to}{}", &name[from.len()..]), inode);
                }
            }
        }
    }
}

/// The folder of a name: that of changes is empty, the model's a slash.
pub(super) fn parent(name: &str) -> &str {
    match name.rfind('/') {
        None => "",
        Some(0) => "/",
        Some(at) => &name[..at],
    }
}
