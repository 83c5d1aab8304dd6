//! `viaduct man`: manual pages.

use crate::Failure;
use clap::{Args, CommandFactory};
use clap_mangen::{Man, generate_to};
use std::fs;
use std::path::PathBuf;

/// Print the manual page of viaduct, or write those of all its commands.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  viaduct man | man -l -
  viaduct man --dir ~/.local/share/man/man1 && man viaduct-devinfo

`cargo xtask install` puts them in place.")]
pub(crate) struct Arguments {
    /// Folder to write viaduct.1, viaduct-demo.1, ... into; made if missing.
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let command = crate::Arguments::command();
    let Some(folder) = &arguments.dir else {
        let mut text = Vec::new();
        Man::new(command).render(&mut text)?;
        print!("{}", String::from_utf8(text)?);
        return Ok(());
    };
    let failed = |error: std::io::Error| format!("{}: {error}", folder.display());
    fs::create_dir_all(folder).map_err(failed)?;
    generate_to(command, folder).map_err(failed)?;
    Ok(())
}
