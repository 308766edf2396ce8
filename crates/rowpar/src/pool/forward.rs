//! References, boxes and options of a pool are pools.

use std::{ops::Range, sync::Arc};

use crate::{Part, RowPool, Serial};

macro_rules! forward_to_target {
    ($($pool:ty, [$($bounds:tt)*];)+) => {$(
        // SAFETY: P1, P2. Every call goes to the target unchanged, whose implementor promises both.
        unsafe impl<P: $($bounds)*> RowPool for $pool {
            fn participants(&self) -> usize {
                (**self).participants()
            }

            fn parallel_bytes(&self) -> usize {
                (**self).parallel_bytes()
            }

            fn for_each_range(&self, rows: usize, grain: usize, f: &(dyn Fn(Range<usize>) + Sync)) {
                (**self).for_each_range(rows, grain, f);
            }

            fn for_each_range_many(
                &self,
                grain: usize,
                parts: &[Part<'_>],
            ) {
                (**self).for_each_range_many(grain, parts);
            }
        }
    )+};
}

forward_to_target! {
    &P, [RowPool + ?Sized];
    Box<P>, [RowPool + ?Sized];
    Arc<P>, [RowPool + Send + ?Sized];
}

// SAFETY: P1, P2. Every call goes to the pool inside, or to `Serial`; both promise the two.
unsafe impl<P: RowPool> RowPool for Option<P> {
    fn participants(&self) -> usize {
        self.as_ref().map_or(1, P::participants)
    }

    fn parallel_bytes(&self) -> usize {
        self.as_ref().map_or(usize::MAX, P::parallel_bytes)
    }

    fn for_each_range(&self, rows: usize, grain: usize, f: &(dyn Fn(Range<usize>) + Sync)) {
        match self {
            Some(pool) => pool.for_each_range(rows, grain, f),
            None => Serial.for_each_range(rows, grain, f),
        }
    }

    fn for_each_range_many(&self, grain: usize, parts: &[Part<'_>]) {
        match self {
            Some(pool) => pool.for_each_range_many(grain, parts),
            None => Serial.for_each_range_many(grain, parts),
        }
    }
}
