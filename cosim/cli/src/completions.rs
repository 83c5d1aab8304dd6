//! `viaduct completions`: completions of the command line for shells.

use crate::Failure;
use clap::{Args, CommandFactory};
use clap_complete::{Shell, generate};

/// Print completions of this command line for a shell.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  source <(viaduct completions bash)
  viaduct completions zsh > ~/.zfunc/_viaduct
  viaduct completions fish > ~/.config/fish/completions/viaduct.fish

`cargo xtask install` puts them in place.")]
pub(crate) struct Arguments {
    /// The shell.
    #[arg(value_enum)]
    shell: Shell,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let mut text = Vec::new();
    generate(arguments.shell, &mut crate::Arguments::command(), "viaduct", &mut text);
    print!("{}", String::from_utf8(text)?);
    Ok(())
}
