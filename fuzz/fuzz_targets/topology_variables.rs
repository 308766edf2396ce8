//! Environment variables: a number of threads is what an independent reading finds, and anything else is reported.

#![no_main]

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

use cpu_topology::{
    CpuTopology, PlanRequest, THREAD_VARIABLES, ThreadSource, resolve_cpu_threads_with,
};
use libfuzzer_sys::arbitrary::Unstructured;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Ok(input) = Unstructured::new(data).arbitrary::<(Option<&[u8]>, Option<&[u8]>, u8)>()
    else {
        return;
    };
    let values = [input.0, input.1];
    let lookup = |name: &str| {
        let index = THREAD_VARIABLES.iter().position(|variable| *variable == name)?;
        values[index].map(|bytes| OsString::from_vec(bytes.to_vec()))
    };
    let found = resolve_cpu_threads_with(lookup, || input.2.into());

    let numbers = values.map(|value| value.and_then(number));
    let deciding = numbers.iter().position(Option::is_some);
    let junk = |index: &usize| {
        let text = values[*index].map(String::from_utf8_lossy);
        deciding.is_none_or(|deciding| *index < deciding)
            && text.is_some_and(|text| !text.trim().is_empty())
    };
    let ignored = (0..values.len()).filter(junk).map(|index| THREAD_VARIABLES[index]);
    assert!(found.ignored.iter().map(|(name, _)| *name).eq(ignored));
    let expected = deciding.and_then(|index| Some((numbers[index]?, THREAD_VARIABLES[index])));
    match expected {
        Some((threads, name)) => {
            assert_eq!((found.threads, found.source), (threads, ThreadSource::Variable(name)));
        }
        None => assert_eq!(found.threads, usize::from(input.2).max(1)),
    }

    let topology =
        CpuTopology::from_sibling_lists((0..8).map(|cpu| (cpu, vec![cpu & !1, cpu | 1])));
    let request = PlanRequest::new().variables(lookup);
    let report = request.explain(&topology);
    assert!(report.to_string().contains("workers"));
    // A plan has at most so many workers, whatever the number.
    let workers = expected.map_or(4, |(threads, _)| threads.min(1 << 20));
    assert_eq!((report.plan.num_threads, report.plan.core_ids.len()), (workers, workers));
});

/// A decimal number above 0 that a count of threads can be, maybe with a plus in front.
fn number(bytes: &[u8]) -> Option<usize> {
    let text = std::str::from_utf8(bytes).ok()?.trim();
    let digits = text.strip_prefix('+').unwrap_or(text).as_bytes();
    let number = digits.iter().try_fold(0_u128, |sum, digit| {
        let digit = char::from(*digit).to_digit(10)?;
        Some(sum.saturating_mul(10).saturating_add(digit.into()))
    });
    number.filter(|_| !digits.is_empty()).and_then(|n| usize::try_from(n).ok()).filter(|n| *n > 0)
}
