//! The largest of many values: the choice of a token, once for each token, on one thread.

#![forbid(unsafe_code)]

/// Values whose largest is sought without a look at where it is.
const BLOCK: usize = 512;
/// Comparisons that do not wait for each other: as many as make some vectors.
const LANES: usize = 16;

/// The index of the largest value, the first of equal ones. A NaN is smaller than any other; 0 where there is nothing larger than
/// negative infinity.
pub(crate) fn argmax(values: &[f32]) -> usize {
    let mut best = (f32::NEG_INFINITY, &values[..0], 0);
    for (block, start) in values.chunks(BLOCK).zip((0..).step_by(BLOCK)) {
        let largest = largest(block);
        if largest > best.0 {
            best = (largest, block, start);
        }
    }
    let (largest, block, start) = best;
    start + block.iter().position(|value| *value == largest).unwrap_or(0)
}

fn largest(values: &[f32]) -> f32 {
    let mut lanes = [f32::NEG_INFINITY; LANES];
    let (groups, rest) = values.as_chunks::<LANES>();
    for group in groups {
        for (lane, value) in lanes.iter_mut().zip(group) {
            *lane = if *value > *lane { *value } else { *lane };
        }
    }
    lanes
        .iter()
        .chain(rest)
        .fold(f32::NEG_INFINITY, |largest, value| if *value > largest { *value } else { largest })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A loop that looks at every value.
    fn expected(values: &[f32]) -> usize {
        let mut best = (0, f32::NEG_INFINITY);
        for (index, value) in values.iter().enumerate() {
            if *value > best.1 {
                best = (index, *value);
            }
        }
        best.0
    }

    #[test]
    fn the_first_of_the_largest_wins_wherever_it_is() {
        for len in [0_usize, 1, 2, 15, 16, 17, 511, 512, 513, 1024, 1500] {
            let mut values: Vec<f32> = (0..len).map(|i| (i * 37 % 101) as f32 - 200.0).collect();
            assert_eq!(argmax(&values), expected(&values), "{len}");
            for at in (0..len).step_by(7).chain(len.checked_sub(1)) {
                let kept = values[at];
                for value in [5.0, f32::INFINITY, f32::NAN, f32::NEG_INFINITY] {
                    values[at] = value;
                    assert_eq!(argmax(&values), expected(&values), "{value} at {at} of {len}");
                }
                values[at] = kept;
            }
        }
    }

    #[test]
    fn what_cannot_be_compared_is_never_the_largest() {
        assert_eq!(argmax(&[f32::NAN, 1.0, f32::NAN, 3.0, 3.0, -1.0]), 3);
        assert_eq!(argmax(&[f32::NAN; 600]), 0);
        assert_eq!(argmax(&[f32::NEG_INFINITY; 600]), 0);
        assert_eq!(argmax(&[-0.0, 0.0]), 0, "equal");
    }
}
