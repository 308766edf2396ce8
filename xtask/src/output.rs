//! What tasks say on the standard output.

use std::io::{Write, stdout};

/// Prints a line. A reader that has seen enough and left (a pager, `head`) is no reason to fail: what a task is for has been
/// done, or is in a file.
pub(crate) fn print(line: &str) {
    _ = writeln!(stdout().lock(), "{line}");
}
