//! The kernel's two ways to write a set of CPUs: lists (`0-3,8`) and masks (`00000000,0000010f`).
#![forbid(unsafe_code)]

use crate::cpu_set::CpuSet;
use crate::error::ParseError;

/// The largest CPU id that is believed: 1,048,575. Kernels are built for at most 8,192 CPUs, some for 65,536.
///
/// ```
/// assert!(cpu_topology::parse_cpu_list("0-4294967295").is_err());
/// ```
pub const MAX_CPU_ID: usize = (1 << 20) - 1;

/// Reads a list of CPUs as the kernel prints it: ids and ascending ranges between commas, `0-3,8`.
///
/// White space and NUL bytes around ids are tolerated (some kernels end lists with a NUL), and so are empty pieces;
/// nothing but them is the empty set. A range may carry the kernel's group suffix: `0-7:1/4` is 0 and 4.
/// The format is described in the kernel's `Documentation/admin-guide/cputopology.rst` and, with groups, in
/// `Documentation/admin-guide/kernel-parameters.rst`.
///
/// ```
/// use cpu_topology::parse_cpu_list;
///
/// assert_eq!(parse_cpu_list("0-3,8\n\0")?.iter().collect::<Vec<_>>(), [0, 1, 2, 3, 8]);
/// assert!(parse_cpu_list("\n")?.is_empty());
/// assert!(parse_cpu_list("0,cpu1").is_err());
/// # Ok::<(), cpu_topology::ParseError>(())
/// ```
///
/// # Errors
///
/// A piece that is not a number, a range that runs downwards, an id above [`MAX_CPU_ID`], more than 1,048,576 ranges.
pub fn parse_cpu_list(text: &str) -> Result<CpuSet, ParseError> {
    let mut ranges = Vec::new();
    for piece in text.split(',').map(trim).filter(|piece| !piece.is_empty()) {
        push_piece(piece, &mut ranges)?;
    }
    Ok(CpuSet::from_ranges(ranges))
}

/// Reads a mask of CPUs as the kernel prints it: hexadecimal words of 32 bits, the most significant first, commas
/// between them. The first word may have fewer digits.
///
/// ```
/// use cpu_topology::parse_cpu_mask;
///
/// assert_eq!(parse_cpu_mask("00000001,00000101\n")?.iter().collect::<Vec<_>>(), [0, 8, 32]);
/// # Ok::<(), cpu_topology::ParseError>(())
/// ```
///
/// # Errors
///
/// A word that is not 1 to 8 hexadecimal digits, an id above [`MAX_CPU_ID`], a text without any word.
pub fn parse_cpu_mask(text: &str) -> Result<CpuSet, ParseError> {
    let text = trim(text);
    if text.is_empty() {
        return Err(ParseError::Empty);
    }
    let mut ranges = Vec::new();
    for (index, word) in text.rsplit(',').map(trim).enumerate() {
        if word.is_empty() || word.len() > 8 || !word.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(ParseError::not_a_number(word));
        }
        let bits = u32::from_str_radix(word, 16).map_err(|_| ParseError::not_a_number(word))?;
        if bits != 0 && index * 32 + 31 > MAX_CPU_ID {
            return Err(ParseError::IdTooLarge);
        }
        ranges.extend(
            (0..32)
                .filter(|bit| bits >> bit & 1 == 1)
                .map(|bit| (index * 32 + bit, index * 32 + bit)),
        );
    }
    Ok(CpuSet::from_ranges(ranges))
}

/// The CPUs that a `thread_siblings_list` names, as far as it can be read: in the order written, junk left out.
///
/// Tolerant where [`parse_cpu_list`] is strict: a piece that is no id and no ascending range of ids up to
/// [`MAX_CPU_ID`] names nothing. It never panics, never makes CPU 0 out of junk, and stops after 1,048,576 ids.
///
/// ```
/// use cpu_topology::parse_thread_siblings_list;
///
/// assert_eq!(parse_thread_siblings_list("0-1,64-65\n"), [0, 1, 64, 65]);
/// assert_eq!(parse_thread_siblings_list("0,64\0"), [0, 64]);
/// assert_eq!(parse_thread_siblings_list("x,-,7"), [7]);
/// assert!(parse_thread_siblings_list("5-1").is_empty());
/// ```
pub fn parse_thread_siblings_list(text: &str) -> Vec<usize> {
    let mut ranges = Vec::new();
    for piece in text.split(',').map(trim) {
        if push_piece(piece, &mut ranges) == Err(ParseError::TooLong) {
            break;
        }
    }
    ranges.into_iter().flat_map(|(first, last)| first..=last).take(MAX_CPU_ID + 1).collect()
}

/// Strips what kernels and hands leave around a value: white space and NUL bytes.
pub(crate) fn trim(text: &str) -> &str {
    text.trim_matches(|character: char| character.is_ascii_whitespace() || character == '\0')
}

/// A decimal number of digits only: no sign, nothing around it.
pub(crate) fn parse_decimal(text: &str) -> Option<u64> {
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    text.parse().ok()
}

/// Appends the ranges that one piece of a list names: an id, a range, or a range with a group suffix.
///
/// Groups make many ranges of a short text, so their number is limited.
fn push_piece(piece: &str, ranges: &mut Vec<(usize, usize)>) -> Result<(), ParseError> {
    if ranges.len() > MAX_CPU_ID {
        return Err(ParseError::TooLong);
    }
    let (range, group) = match piece.split_once(':') {
        Some((range, group)) => {
            (range, parse_group(group).ok_or_else(|| ParseError::not_a_number(piece))?)
        }
        None => (piece, None),
    };
    let (first, last) = match range.split_once('-') {
        Some((first, last)) => (parse_id(first)?, parse_id(last)?),
        None => (parse_id(range)?, parse_id(range)?),
    };
    if first > last {
        return Err(ParseError::Descending { first, last });
    }
    match group {
        None => ranges.push((first, last)),
        Some((used, size)) => ranges.extend(
            (first..=last)
                .step_by(size)
                .map(|start| (start, start.saturating_add(used - 1).min(last))),
        ),
    }
    Ok(())
}

/// `used/size` of a group suffix. A lone number is the old form, in which every CPU of the range counts.
#[expect(clippy::option_option, reason = "outer: well formed; inner: whether there are groups")]
fn parse_group(text: &str) -> Option<Option<(usize, usize)>> {
    let Some((used, size)) = text.split_once('/') else {
        return parse_decimal(trim(text)).map(|_| None);
    };
    let used = usize::try_from(parse_decimal(trim(used))?).ok()?;
    let size = usize::try_from(parse_decimal(trim(size))?).ok()?;
    (used > 0 && used <= size).then_some(Some((used, size)))
}

fn parse_id(text: &str) -> Result<usize, ParseError> {
    let text = trim(text);
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(ParseError::not_a_number(text));
    }
    match text.parse::<usize>() {
        Ok(id) if id <= MAX_CPU_ID => Ok(id),
        _ => Err(ParseError::IdTooLarge),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strict_lists() {
        /// Input, and the CPUs it names, or `None` if it must be rejected.
        const CASES: &[(&str, Option<&[usize]>)] = &[
            ("", Some(&[])),
            ("\n", Some(&[])),
            ("\0\0", Some(&[])),
            ("0", Some(&[0])),
            ("0-3,8", Some(&[0, 1, 2, 3, 8])),
            ("0-3,8\n\0", Some(&[0, 1, 2, 3, 8])),
            ("0-1\r\n", Some(&[0, 1])),
            ("0-3, 8-9 , 14", Some(&[0, 1, 2, 3, 8, 9, 14])),
            ("8,0-3,2", Some(&[0, 1, 2, 3, 8])),
            ("1,,2,", Some(&[1, 2])),
            ("0-7:1/4", Some(&[0, 4])),
            ("0-7:2/4", Some(&[0, 1, 4, 5])),
            ("0-6:3/4", Some(&[0, 1, 2, 4, 5, 6])),
            ("0-3:2", Some(&[0, 1, 2, 3])),
            ("1048575", Some(&[1048575])),
            ("1048576", None),
            ("0-4294967295", None),
            ("4294967296", None),
            ("99999999999999999999999", None),
            ("3-0", None),
            ("0-", None),
            ("-3", None),
            ("-1", None),
            ("+1", None),
            ("0x3", None),
            ("0--3", None),
            ("0-3-5", None),
            ("1 2", None),
            ("0-3:0/4", None),
            ("0-3:5/4", None),
            ("0-3:1/0", None),
            ("0-3:", None),
            ("all", None),
            ("\u{663}", None),
        ];
        for (input, expected) in CASES {
            let found = parse_cpu_list(input).ok().map(|set| set.iter().collect::<Vec<_>>());
            assert_eq!(found.as_deref(), *expected, "input {input:?}");
        }
    }

    #[test]
    fn tolerant_lists() {
        /// Input, and the CPUs it names in the order written.
        const CASES: &[(&str, &[usize])] = &[
            ("", &[]),
            ("0-1", &[0, 1]),
            ("0,64", &[0, 64]),
            ("0-1,64-65", &[0, 1, 64, 65]),
            (" 0 - 1 ,\t64\n\0", &[0, 1, 64]),
            ("64,0", &[64, 0]),
            ("x,-,7", &[7]),
            ("5-1", &[]),
            ("junk", &[]),
            ("-", &[]),
            ("0-1,oops,4", &[0, 1, 4]),
            ("0-4294967295", &[]),
            ("0-99999999999999999999,3", &[3]),
            ("-1", &[]),
            ("0-3:2", &[0, 1, 2, 3]),
            ("0-3:x,9", &[9]),
        ];
        for (input, expected) in CASES {
            assert_eq!(parse_thread_siblings_list(input), *expected, "input {input:?}");
        }
    }

    #[test]
    fn masks() {
        /// Input, and the CPUs it names, or `None` if it must be rejected.
        const CASES: &[(&str, Option<&[usize]>)] = &[
            ("0", Some(&[])),
            ("1", Some(&[0])),
            ("00f", Some(&[0, 1, 2, 3])),
            ("00000000,00000101\n", Some(&[0, 8])),
            ("0000,00000001", Some(&[0])),
            ("1,00000000\n\0", Some(&[32])),
            ("80000000,00000000,00000003", Some(&[0, 1, 95])),
            ("", None),
            ("\n", None),
            ("0x3", None),
            ("g", None),
            ("100000000", None),
            ("1,,2", None),
            ("-1", None),
        ];
        for (input, expected) in CASES {
            let found = parse_cpu_mask(input).ok().map(|set| set.iter().collect::<Vec<_>>());
            assert_eq!(found.as_deref(), *expected, "input {input:?}");
        }
    }

    #[test]
    fn long_input_costs_no_more_than_its_length() {
        let everything = "0-1048575,".repeat(10_000);
        assert_eq!(parse_cpu_list(&everything).unwrap().len(), MAX_CPU_ID + 1);
        assert_eq!(parse_thread_siblings_list(&everything).len(), MAX_CPU_ID + 1);
        let groups = "0-1048575:1/2,".repeat(10_000);
        assert_eq!(parse_cpu_list(&groups), Err(ParseError::TooLong));
        assert!(parse_thread_siblings_list(&groups).len() <= MAX_CPU_ID + 1);
        assert_eq!(parse_cpu_mask(&"ffffffff,".repeat(40_000)), Err(ParseError::not_a_number("")));
        let wide = format!("1{}", ",00000000".repeat(40_000));
        assert_eq!(parse_cpu_mask(&wide), Err(ParseError::IdTooLarge));
        let zeros = format!("0{},00000003", ",00000000".repeat(40_000));
        assert_eq!(parse_cpu_mask(&zeros).unwrap().to_string(), "0-1");
    }

    #[test]
    fn what_a_set_prints_is_read_back() {
        for ids in [&[][..], &[0], &[0, 1, 2, 5], &[7, 9, 11, 12]] {
            let set = ids.iter().copied().collect::<CpuSet>();
            assert_eq!(parse_cpu_list(&set.to_string()).unwrap(), set);
        }
    }
}
