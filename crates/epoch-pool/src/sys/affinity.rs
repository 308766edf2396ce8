//! On which CPUs threads may run, and do (Linux, Android).

use std::mem::size_of_val;

/// The CPU that this thread runs on at this moment: a load or two, or a call of the vDSO.
pub(super) fn current_cpu() -> Option<u32> {
    // SAFETY: always sound; it has no argument, and answers with a negative number where the kernel does not tell.
    let cpu = unsafe { libc::sched_getcpu() };
    u32::try_from(cpu).ok()
}

/// The kernel's number of this thread.
pub(super) fn thread_id() -> u64 {
    // SAFETY: always sound; it has no argument and cannot fail.
    let id = unsafe { libc::gettid() };
    u64::from(id.unsigned_abs())
}

/// The number of CPUs on which at least one of these threads may run, a CPU given beside them included. Threads that have
/// ended do not count.
pub(super) fn cpus_of(threads: impl Iterator<Item = u64>, and: Option<u32>) -> usize {
    let mut all = Vec::new();
    for thread in threads {
        let mask = mask_of(thread).unwrap_or_default();
        all.resize(all.len().max(mask.len()), 0);
        all.iter_mut().zip(&mask).for_each(|(all, mask)| *all |= mask);
    }
    if let Some(cpu) = and {
        let (word, bit) = (cpu as usize / WORD_BITS, cpu as usize % WORD_BITS);
        all.resize(all.len().max(word + 1), 0);
        all[word] |= 1 << bit;
    }
    all.iter().map(|word: &usize| word.count_ones() as usize).sum()
}

/// Moves this thread to one of its CPUs that is not among `taken`, or at least to another one than `here`, and gives it back its
/// mask. `false`: there is none, or it is not allowed.
pub(super) fn leave(here: u32, taken: impl Iterator<Item = u32>) -> bool {
    let Some(mask) = mask_of(0) else { return false };
    let mut free = mask.clone();
    taken.for_each(|cpu| remove(&mut free, cpu));
    remove(&mut free, here);
    if free.iter().all(|word| *word == 0) {
        free.clone_from(&mask);
        remove(&mut free, here);
    }
    if free.iter().all(|word| *word == 0) || !set_mask(&free) {
        return false;
    }
    if mask_of(0).as_ref() == Some(&free) {
        give_back(&mask);
    } // else somebody has given us another mask meanwhile, which is to stay
    true
}

/// A thread that may run on all CPUs of its cpuset is given all that there are, as the kernel would otherwise remember those of
/// today as its wish, and keep them from it when the cpuset grows.
fn give_back(mask: &[usize]) {
    let all = vec![usize::MAX; mask.len()];
    if !(set_mask(&all) && mask_of(0).as_deref() == Some(mask)) {
        set_mask(mask);
    }
}

fn remove(mask: &mut [usize], cpu: u32) {
    if let Some(word) = mask.get_mut(cpu as usize / WORD_BITS) {
        *word &= !(1 << (cpu as usize % WORD_BITS));
    }
}

/// Lets this thread run on these CPUs alone. `false` if it is not allowed, or none of them is there.
fn set_mask(mask: &[usize]) -> bool {
    // SAFETY: reads as many bytes as `mask` has, of this thread's memory.
    unsafe { libc::sched_setaffinity(0, size_of_val(mask), mask.as_ptr().cast()) == 0 }
}

/// The kernel writes its masks in words of this size.
const WORD_BITS: usize = usize::BITS as usize;

/// More CPUs than any kernel is built for.
const MAX_WORDS: usize = (1 << 20) / WORD_BITS;

/// The CPUs that the thread may run on; 0 is the calling thread. `None` if there is no such thread.
fn mask_of(thread: u64) -> Option<Vec<usize>> {
    let thread = libc::pid_t::try_from(thread).ok()?;
    let mut mask = vec![0_usize; 1024 / WORD_BITS];
    while mask.len() <= MAX_WORDS {
        let bytes = size_of_val(mask.as_slice());
        // SAFETY: `mask` has room for the `bytes` that the call may write, and any bits make a `usize`.
        let result = unsafe { libc::sched_getaffinity(thread, bytes, mask.as_mut_ptr().cast()) };
        if result >= 0 {
            return Some(mask);
        }
        // The one error that more room mends (EINVAL), and those that it does not (ESRCH).
        if std::io::Error::last_os_error().raw_os_error() != Some(libc::EINVAL) {
            return None;
        }
        mask.resize(2 * mask.len(), 0);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_thread_may_run_where_it_runs() {
        let cpu = current_cpu().expect("Linux tells");
        let mask = mask_of(0).expect("this thread is alive");
        assert_ne!(mask[cpu as usize / WORD_BITS] & 1 << (cpu as usize % WORD_BITS), 0);
        let own = cpus_of([0].into_iter(), None);
        assert_eq!(cpus_of([thread_id(), 0].into_iter(), Some(cpu)), own);
        assert!(own >= std::thread::available_parallelism().unwrap().get());
    }

    /// On a thread of its own, whose mask is back as it was, whether narrow or wide.
    #[test]
    fn a_thread_leaves_and_keeps_its_mask() {
        let everywhere = mask_of(0).unwrap();
        let here = current_cpu().unwrap();
        std::thread::spawn(move || {
            let n_cpus = cpus_of([0].into_iter(), None);
            assert_eq!(leave(here, std::iter::empty()), n_cpus > 1);
            assert_eq!(mask_of(0).unwrap(), everywhere);
            // There is no CPU left, so any other will do.
            assert_eq!(leave(here, 0..1 << 16), n_cpus > 1);
            assert_eq!(mask_of(0).unwrap(), everywhere);
            let mut pinned = vec![0; everywhere.len()];
            pinned[here as usize / WORD_BITS] = 1 << (here as usize % WORD_BITS);
            assert!(set_mask(&pinned));
            assert!(!leave(here, std::iter::empty()), "it has no other");
            assert_eq!(mask_of(0).unwrap(), pinned);
        })
        .join()
        .unwrap();
    }

    #[test]
    fn threads_that_are_none_have_no_cpus() {
        assert_eq!(cpus_of([u64::MAX, u64::from(u32::MAX) >> 1].into_iter(), None), 0);
        assert_eq!(cpus_of(std::iter::empty(), Some(4099)), 1);
    }
}
