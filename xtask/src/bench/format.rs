//! Numbers for people.

/// A number with its unit, to three digits; nanoseconds grow into µs and ms.
pub(crate) fn quantity(value: f64, unit: &str) -> String {
    let (value, unit) = match (unit, value.abs()) {
        ("ns", ..999.5) => return format!("{value:.0} ns"),
        ("ns", ..999.5e3) => (value / 1e3, "µs"),
        ("ns", _) => (value / 1e6, "ms"),
        ("tokens/s", _) => (value, "/s"),
        _ => (value, unit),
    };
    format!("{} {unit}", digits(value)).trim_end().to_owned()
}

/// A size in bytes, in the largest binary unit of which it is one at least.
pub(crate) fn bytes(n_bytes: usize) -> String {
    let (shift, name) = match n_bytes.checked_ilog2().unwrap_or(0) {
        0..10 => return format!("{n_bytes} bytes"),
        10..20 => (10, "KiB"),
        20..30 => (20, "MiB"),
        _ => (30, "GiB"),
    };
    match n_bytes.is_multiple_of(1 << shift) {
        true => format!("{} {name}", n_bytes >> shift),
        false => format!("{} {name}", digits(n_bytes as f64 / (1_u64 << shift) as f64)),
    }
}

/// A number in as little room as two digits need.
pub(crate) fn short(value: f64) -> String {
    if value.abs() < 9.95 { format!("{value:.1}") } else { format!("{value:.0}") }
}

/// Three digits of a number, without an exponent.
fn digits(value: f64) -> String {
    match value.abs() {
        99.95.. => format!("{value:.0}"),
        9.995.. => format!("{value:.1}"),
        0.0995.. => format!("{value:.2}"),
        0.0 => "0".into(),
        _ => format!("{value:.3}"),
    }
}

/// Two ratios as a range, or one of them if they look the same.
pub(crate) fn range(low: f64, high: f64) -> String {
    let (low, high) = (digits(low), digits(high));
    if low == high { low } else { format!("{low}–{high}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities() {
        let cases = [
            (-12.4, "ns", "-12 ns"),
            (999.4, "ns", "999 ns"),
            (999.7, "ns", "1.00 µs"),
            (20_373.0, "ns", "20.4 µs"),
            (3_100_000.0, "ns", "3.10 ms"),
            (12.345, "GB/s", "12.3 GB/s"),
            (99.97, "%", "100 %"),
            (130.4, "tokens/s", "130 /s"),
            (151.0, "", "151"),
            (0.0, "%", "0 %"),
        ];
        for (value, unit, expected) in cases {
            assert_eq!(quantity(value, unit), expected);
        }
    }

    #[test]
    fn sizes_have_a_unit_that_shows_them() {
        let cases = [
            (0, "0 bytes"),
            (128, "128 bytes"),
            (1023, "1023 bytes"),
            (1024, "1 KiB"),
            (98_304, "96 KiB"),
            (100_000, "97.7 KiB"),
            (512 << 20, "512 MiB"),
            (1 << 30, "1 GiB"),
            (3 << 29, "1.50 GiB"),
        ];
        for (n_bytes, expected) in cases {
            assert_eq!(bytes(n_bytes), expected);
        }
    }

    #[test]
    fn short_numbers() {
        for (value, expected) in [(0.04, "0.0"), (3.94, "3.9"), (9.96, "10"), (1022.6, "1023")] {
            assert_eq!(short(value), expected);
        }
    }

    #[test]
    fn ranges() {
        let cases = [
            (0.012, 0.0154, "0.012–0.015"),
            (1.0, 1.0, "1.00"),
            (0.98, 1.204, "0.98–1.20"),
            (99.91, 250.4, "99.9–250"),
        ];
        for (low, high, expected) in cases {
            assert_eq!(range(low, high), expected);
        }
    }
}
