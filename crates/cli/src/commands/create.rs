//! `kindred create`: a model folder without rows.

use indicatif::HumanCount;
use kindred::attributes::AttributeType;
use kindred::live::changes::{Schema, create as create_folder};

use super::CommandError;
use super::prepare::under;
use crate::arguments::CreateArguments;

/// Makes a model folder without rows, and says of what shape it is.
pub(super) fn create(arguments: &CreateArguments) -> Result<(), CommandError> {
    let CreateArguments { folder, dim, metric, attributes } = arguments.clone();
    let schema = Schema { dim, metric, columns: attributes };
    create_folder(&folder, &schema)?;
    say!("{}: 0 rows × {} dimensions{}", folder.display(), HumanCount(dim as u64), under(metric),)?;
    let attributes: Vec<String> = schema.columns.iter().map(said).collect();
    match attributes.is_empty() {
        true => Ok(()),
        false => say!("attributes: {}", attributes.join(", ")),
    }
}

fn said((name, kind): &(String, AttributeType)) -> String {
    format!("{name} ({kind})")
}
