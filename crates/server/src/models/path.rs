/// The name, as it is written, and the rest of a path `/models/NAME/REST`: the rest is empty, or begins with its slash.
/// `None` for a path without a model's name.
pub(crate) fn split_named_path(path: &str) -> Option<(&str, &str)> {
    let named = path.strip_prefix("/models/")?;
    Some(named.split_at(named.find('/').unwrap_or(named.len())))
}
