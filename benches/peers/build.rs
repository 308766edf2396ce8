//! Builds the shims of the peers that are written in C, and says by `cfg` which of them could be built.

use std::env;
use std::path::{Path, PathBuf};

/// A C file around one library.
struct Shim {
    name: &'static str,
    flags: &'static [&'static str],
    library: &'static str,
}

const SHIMS: &[Shim] = &[
    Shim { name: "libgomp", flags: &["-fopenmp"], library: "gomp" },
    Shim { name: "pthreadpool", flags: &[], library: "pthreadpool" },
    Shim { name: "openblas", flags: &[], library: "openblas" },
];

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    for shim in SHIMS {
        println!("cargo::rustc-check-cfg=cfg(has_{})", shim.name);
        println!("cargo::rerun-if-changed={}", shim.source().display());
        if shim.links() {
            let mut build = cc::Build::new();
            shim.flags.iter().for_each(|flag| _ = build.flag(flag));
            build.file(shim.source()).extra_warnings(true).compile(&format!("peer_{}", shim.name));
            println!("cargo::rustc-link-lib={}", shim.library);
            println!("cargo::rustc-cfg=has_{}", shim.name);
        } else {
            // A file that is never there: the next build looks again whether the library is.
            println!("cargo::rerun-if-changed={}", out_dir().join("look-again").display());
        }
    }
}

impl Shim {
    fn source(&self) -> PathBuf {
        Path::new("shims").join(format!("{}.c", self.name))
    }

    /// Whether compiler, header and library are there: a program of this shim and an empty `main` can be made.
    ///
    /// It is linked without the flags, so that the library is the one named and not the compiler's choice.
    fn links(&self) -> bool {
        let Ok(compiler) = cc::Build::new().cargo_warnings(false).try_get_compiler() else {
            return false;
        };
        if compiler.is_like_msvc() {
            return false;
        }
        let object = out_dir().join(format!("probe_{}.o", self.name));
        let program = out_dir().join(format!("probe_{}", self.name));
        let mut compile = compiler.to_command();
        compile.args(self.flags).arg("-DPEER_PROBE").arg("-c").arg(self.source());
        compile.arg("-o").arg(&object);
        let mut link = compiler.to_command();
        link.arg(&object).arg("-o").arg(&program).arg(format!("-l{}", self.library));
        [compile, link]
            .iter_mut()
            .all(|command| command.output().is_ok_and(|output| output.status.success()))
    }
}

fn out_dir() -> PathBuf {
    env::var_os("OUT_DIR").expect("cargo names the output folder").into()
}
