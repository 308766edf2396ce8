//! One dispatch at a time, for peers that cannot take a second one.

#![forbid(unsafe_code)]

use std::sync::atomic::{AtomicBool, Ordering};

/// Lets one dispatch in. Costs that one an exchange on a line that nobody else touches.
#[derive(Debug, Default)]
pub(crate) struct Gate {
    is_taken: AtomicBool,
}

/// Opens the gate again when it is dropped.
#[derive(Debug)]
pub(crate) struct Pass<'a>(&'a Gate);

impl Gate {
    /// `None` while another dispatch is inside, which may be an outer one of this thread.
    pub(crate) fn enter(&self) -> Option<Pass<'_>> {
        // Acquire: sees what the last dispatch left, by the Release in `drop`.
        (!self.is_taken.swap(true, Ordering::Acquire)).then(|| Pass(self))
    }
}

impl Drop for Pass<'_> {
    fn drop(&mut self) {
        self.0.is_taken.store(false, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_at_a_time() {
        let gate = Gate::default();
        let pass = gate.enter();
        assert!(pass.is_some());
        assert!(gate.enter().is_none());
        assert!(gate.enter().is_none(), "who was turned away has not opened it");
        drop(pass);
        assert!(gate.enter().is_some());
    }
}
