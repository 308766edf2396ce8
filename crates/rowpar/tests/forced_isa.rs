//! `ROWPAR_ISA` is read once in a process: each value gets a process of its own.

use std::{env, process::Command};

use rowpar::{ISA_VARIABLE, Isa, Kernels};

const CHILD: &str = "child_says_what_it_uses";

#[test]
fn child_says_what_it_uses() {
    println!("<{}> <{}>", Kernels::best().isa(), Kernels::best().isa());
}

#[test]
fn the_variable_forces_a_set_and_junk_is_reported_once() {
    let fastest = Kernels::supported().pop().expect("never empty").isa().name();
    let absent = Isa::ALL.iter().find(|isa| Kernels::for_isa(**isa).is_none());
    let mut cases: Vec<(&str, &str, usize)> = vec![("", fastest, 0), ("sse9", fastest, 1)];
    cases.extend(Kernels::supported().iter().map(|set| (set.isa().name(), set.isa().name(), 0)));
    cases.extend(absent.map(|isa| (isa.name(), fastest, 1)));

    for (value, expected, reports) in cases {
        let output = Command::new(env::current_exe().expect("this test"))
            .args(["--exact", CHILD, "--nocapture"])
            .env(ISA_VARIABLE, value)
            .output()
            .expect("this test can be run");
        let (stdout, stderr) = (
            String::from_utf8_lossy(&output.stdout).into_owned(),
            String::from_utf8_lossy(&output.stderr).into_owned(),
        );
        assert!(stdout.contains(&format!("<{expected}> <{expected}>")), "{value:?}: {stdout}");
        assert_eq!(stderr.matches(ISA_VARIABLE).count(), reports, "{value:?}: {stderr}");
    }
}
