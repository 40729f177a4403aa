//! `kindred completions` and `kindred man`: what is generated from the declaration of the command
//! line.

use std::path::Path;
use std::{fs, io};

use clap::CommandFactory;
use clap_complete::Shell;
use clap_mangen::Man;

use super::{CommandError, print};
use crate::arguments::Cli;

/// Prints the script with which a shell completes this command line.
pub(super) fn completions(shell: Shell) -> Result<(), CommandError> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "kindred", &mut script);
    print(&script)
}

/// Prints the manual page, or writes the pages of all commands.
pub(super) fn man(out: Option<&Path>) -> Result<(), CommandError> {
    match out {
        None => {
            let mut page = Vec::new();
            Man::new(Cli::command()).render(&mut page).expect("into memory");
            print(&page)
        }
        Some(folder) => {
            write_pages(folder).map_err(|source| CommandError::System {
                doing: "can't write the pages",
                source,
            })?;
            say!("{}: kindred.1 and a page for each command", folder.display())
        }
    }
}

fn write_pages(folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    clap_mangen::generate_to(Cli::command(), folder)
}
