//! A set of logical CPUs by id, kept as ranges so that its size does not depend on the ids.
#![forbid(unsafe_code)]

use std::collections::BTreeMap;
use std::fmt;

/// A set of logical CPUs by id. Displayed as the kernel prints its lists.
///
/// ```
/// use cpu_topology::CpuSet;
///
/// let set: CpuSet = [8, 0, 1, 2, 3].into_iter().collect();
/// assert_eq!(set.to_string(), "0-3,8");
/// assert_eq!(set.len(), 5);
/// assert!(set.contains(8) && !set.contains(4));
/// assert_eq!(set.first(), Some(0));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Default, Hash)]
pub struct CpuSet {
    /// First and last of each range: ascending, with a gap between any two.
    ranges: Vec<(usize, usize)>,
}

impl CpuSet {
    /// The empty set.
    pub const fn new() -> Self {
        Self { ranges: Vec::new() }
    }

    /// The union of these ranges (first and last). A descending one is empty.
    pub(crate) fn from_ranges(mut ranges: Vec<(usize, usize)>) -> Self {
        ranges.retain(|(first, last)| first <= last);
        ranges.sort_unstable();
        let mut merged: Vec<(usize, usize)> = Vec::with_capacity(ranges.len());
        for (first, last) in ranges {
            match merged.last_mut() {
                Some((_, end)) if first <= end.saturating_add(1) => *end = last.max(*end),
                _ => merged.push((first, last)),
            }
        }
        Self { ranges: merged }
    }

    /// The CPUs in any of these sets.
    pub(crate) fn union_of<'a>(sets: impl IntoIterator<Item = &'a Self>) -> Self {
        Self::from_ranges(sets.into_iter().flat_map(|set| set.ranges.iter().copied()).collect())
    }

    /// The ids, ascending.
    pub fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        self.ranges.iter().flat_map(|&(first, last)| first..=last)
    }

    /// How many CPUs are in it.
    pub fn len(&self) -> usize {
        self.ranges
            .iter()
            .fold(0, |sum, (first, last)| (last - first).saturating_add(1).saturating_add(sum))
    }

    /// Whether there is no CPU in it.
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Whether this CPU is in it.
    pub fn contains(&self, cpu: usize) -> bool {
        let after = self.ranges.partition_point(|(first, _)| *first <= cpu);
        after > 0 && cpu <= self.ranges[after - 1].1
    }

    /// The lowest id.
    pub fn first(&self) -> Option<usize> {
        self.ranges.first().map(|(first, _)| *first)
    }

    /// The highest id.
    pub fn last(&self) -> Option<usize> {
        self.ranges.last().map(|(_, last)| *last)
    }

    /// The CPUs in both sets.
    pub fn intersection(&self, other: &Self) -> Self {
        let fewer_first = self.ranges.len() <= other.ranges.len();
        let (few, many) = if fewer_first { (self, other) } else { (other, self) };
        let both = few.ranges.iter().flat_map(|&(first, last)| {
            let overlapping = many.overlapping(first, last);
            overlapping.map(move |&(start, end)| (first.max(start), last.min(end)))
        });
        Self { ranges: both.collect() }
    }

    /// The ranges that have CPUs from `first` to `last`. Finding them takes no longer than a search.
    fn overlapping(&self, first: usize, last: usize) -> impl Iterator<Item = &(usize, usize)> {
        let from = self.ranges.partition_point(|(_, end)| *end < first);
        self.ranges[from..].iter().take_while(move |(start, _)| *start <= last)
    }
}

impl CpuSet {
    /// The CPUs in either set.
    pub fn union(&self, other: &Self) -> Self {
        Self::from_ranges([self.ranges.as_slice(), &other.ranges].concat())
    }

    /// The CPUs of this set that are not in the other.
    pub fn difference(&self, other: &Self) -> Self {
        let mut ranges = Vec::new();
        for &(first, last) in &self.ranges {
            // What is left of this range, from `next` on.
            let mut next = Some(first);
            for &(start, end) in other.overlapping(first, last) {
                ranges.extend(next.filter(|from| *from < start).map(|from| (from, start - 1)));
                next = end.checked_add(1).filter(|from| *from <= last);
            }
            ranges.extend(next.map(|from| (from, last)));
        }
        Self { ranges }
    }

    /// Whether every CPU of this set is in the other.
    pub fn is_subset(&self, other: &Self) -> bool {
        self.intersection(other) == *self
    }
}

/// CPUs that are given away set by set. Each costs the logarithm of what is gone, where a union of sets would copy it.
#[derive(Default)]
pub(crate) struct Taken {
    /// Last of each range by its first; no two overlap.
    ranges: BTreeMap<usize, usize>,
}

impl Taken {
    /// Whether this CPU is gone.
    pub(crate) fn contains(&self, cpu: usize) -> bool {
        self.ranges.range(..=cpu).next_back().is_some_and(|(_, last)| cpu <= *last)
    }

    /// Takes these CPUs; those of them that were still there.
    pub(crate) fn take(&mut self, cpus: &CpuSet) -> CpuSet {
        let mut free = Vec::new();
        for &(first, last) in &cpus.ranges {
            // The range that starts before this one and reaches into it, if there is one.
            let before = self.ranges.range(..first).next_back().filter(|(_, end)| **end >= first);
            let from = before.map_or(first, |(start, _)| *start);
            // Ranges that overlap this one become one with it, so none is ever looked at twice.
            let (mut next, mut joined) = (Some(first), (first, last));
            while let Some((start, end)) =
                self.ranges.range(from..=last).next().map(|(s, e)| (*s, *e))
            {
                self.ranges.remove(&start);
                free.extend(next.filter(|next| *next < start).map(|next| (next, start - 1)));
                next = end.checked_add(1).filter(|next| *next <= last);
                joined = (joined.0.min(start), joined.1.max(end));
                if end >= last {
                    break;
                }
            }
            free.extend(next.map(|next| (next, last)));
            self.ranges.insert(joined.0, joined.1);
        }
        CpuSet::from_ranges(free)
    }
}

impl FromIterator<usize> for CpuSet {
    fn from_iter<I: IntoIterator<Item = usize>>(ids: I) -> Self {
        Self::from_ranges(ids.into_iter().map(|cpu| (cpu, cpu)).collect())
    }
}

impl fmt::Display for CpuSet {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (first, last)) in self.ranges.iter().enumerate() {
            if index > 0 {
                formatter.write_str(",")?;
            }
            write!(formatter, "{first}")?;
            if last > first {
                write!(formatter, "-{last}")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(ids: &[usize]) -> CpuSet {
        ids.iter().copied().collect()
    }

    #[test]
    fn ids_come_out_sorted_and_once() {
        let cases: &[(&[usize], &str, &[usize])] = &[
            (&[], "", &[]),
            (&[5], "5", &[5]),
            (&[3, 1, 2, 2, 0], "0-3", &[0, 1, 2, 3]),
            (&[9, 0, 8, 1], "0-1,8-9", &[0, 1, 8, 9]),
            (&[usize::MAX, 0], "0,18446744073709551615", &[0, usize::MAX]),
        ];
        for (ids, text, sorted) in cases {
            if usize::BITS == 64 {
                assert_eq!(set(ids).to_string(), *text);
            }
            assert_eq!(set(ids).iter().collect::<Vec<_>>(), *sorted);
            assert_eq!(set(ids).len(), sorted.len());
            assert_eq!(set(ids).first(), sorted.first().copied());
            assert_eq!(set(ids).last(), sorted.last().copied());
        }
    }

    #[test]
    fn a_set_of_everything_is_one_range() {
        let all = CpuSet::from_ranges(vec![(0, usize::MAX), (3, 7)]);
        assert_eq!(all.len(), usize::MAX);
        assert!(all.contains(usize::MAX) && all.contains(0));
        assert_eq!(all.intersection(&set(&[4, 9])), set(&[4, 9]));
    }

    /// Every sequence of takes agrees with a plain set of ids.
    #[test]
    fn what_is_taken_is_gone() {
        let mut bits = 1_u64;
        for _ in 0..2_000 {
            let (mut taken, mut gone) = (Taken::default(), std::collections::BTreeSet::new());
            for _ in 0..6 {
                bits = bits
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1_442_695_040_888_963_407);
                let cpus = (0..24).filter(|bit| bits >> (32 + bit) & 1 == 1).collect::<CpuSet>();
                let free = cpus.iter().filter(|cpu| gone.insert(*cpu)).collect::<CpuSet>();
                assert_eq!(taken.take(&cpus), free);
                assert!((0..26).all(|cpu| taken.contains(cpu) == gone.contains(&cpu)));
            }
        }
        let mut taken = Taken::default();
        let all = CpuSet::from_ranges(vec![(0, usize::MAX)]);
        assert_eq!((taken.take(&all), taken.take(&all)), (all, CpuSet::new()));
    }

    #[test]
    fn membership_and_intersection_agree() {
        let cases: &[(&[usize], &[usize])] = &[
            (&[], &[1]),
            (&[0, 1, 2, 8], &[2, 3, 8, 9]),
            (&[0, 2, 4, 6], &[1, 3, 5, 7]),
            (&[5], &[4, 5, 6]),
            (&[0, 1, 2, 4, 5, 6], &[2, 3, 4]),
            (&[0, 1, 2, 3, 4, 5], &[1, 3]),
            (&[1, 3], &[0, 1, 2, 3, 4, 5]),
        ];
        for (left, right) in cases {
            let both = set(left).intersection(&set(right));
            let expected =
                left.iter().copied().filter(|cpu| right.contains(cpu)).collect::<CpuSet>();
            assert_eq!(both, expected);
            assert_eq!(set(right).intersection(&set(left)), expected);
            let either = left.iter().chain(*right).copied().collect::<CpuSet>();
            assert_eq!(set(left).union(&set(right)), either);
            let rest = left.iter().copied().filter(|cpu| !right.contains(cpu)).collect::<CpuSet>();
            assert_eq!(set(left).difference(&set(right)), rest, "{left:?} without {right:?}");
            assert_eq!(set(left).is_subset(&set(right)), rest.is_empty());
            let mut taken = Taken::default();
            assert_eq!((taken.take(&set(right)), taken.take(&set(left))), (set(right), rest));
            for cpu in 0..10 {
                assert_eq!(taken.contains(cpu), either.contains(cpu), "{left:?} and {right:?}");
                assert_eq!(both.contains(cpu), left.contains(&cpu) && right.contains(&cpu));
            }
        }
    }
}
