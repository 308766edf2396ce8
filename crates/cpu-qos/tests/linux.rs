//! Clamps and policies on the running kernel. What it refuses (no clamps built in, a sandbox, an emulator) must be refused with
//! the error that says so, and leave the thread as it was.

use cpu_qos::Error;
use cpu_qos::linux::{Policy, UtilizationClamp, clamp, policy, reset_clamp, set_clamp, set_policy};

const IS_LINUX: bool = cfg!(any(target_os = "linux", target_os = "android"));

fn on_a_thread(test: impl FnOnce() + Send) {
    std::thread::scope(|scope| scope.spawn(test).join().expect("the thread does not panic"));
}

#[test]
fn other_systems_have_neither() {
    if IS_LINUX {
        return;
    }
    assert_eq!(set_clamp(UtilizationClamp::NONE), Err(Error::Unsupported));
    assert_eq!(reset_clamp(), Err(Error::Unsupported));
    assert_eq!(clamp(), Err(Error::Unsupported));
    assert_eq!(set_policy(Policy::Other), Err(Error::Unsupported));
    assert_eq!(policy(), Err(Error::Unsupported));
}

#[test]
fn a_clamp_is_read_back_and_reset() {
    on_a_thread(|| {
        let asked = UtilizationClamp::new(100, 700).unwrap();
        let before = (policy(), clamp());
        match set_clamp(asked) {
            Ok(()) => {
                assert_eq!((policy(), clamp()), (before.0, Ok(asked)));
                let outer = std::thread::current().id();
                on_a_thread(|| {
                    assert_ne!(std::thread::current().id(), outer);
                    assert_eq!(clamp(), Ok(asked), "a thread inherits the clamp");
                });
                match reset_clamp() {
                    Ok(()) => assert_eq!(clamp().map(UtilizationClamp::min), Ok(0)),
                    Err(error) => assert!(matches!(error, Error::Os(_)), "{error:?}"),
                }
            }
            Err(error) => {
                assert!(matches!(error, Error::Unsupported | Error::Os(_)), "{error:?}");
                assert_eq!((policy(), clamp()), before);
            }
        }
    });
}

#[test]
fn batch_can_be_left_again() {
    on_a_thread(|| {
        let before = (policy(), clamp());
        let Ok(Some(former)) = before.0 else { return };
        match set_policy(Policy::Batch) {
            Ok(()) => {
                assert_eq!((policy(), clamp()), (Ok(Some(Policy::Batch)), before.1));
                if former != Policy::Idle {
                    assert_eq!(set_policy(former), Ok(()));
                    assert_eq!((policy(), clamp()), before);
                }
            }
            Err(error) => {
                assert!(matches!(error, Error::Unsupported | Error::Os(_)), "{error:?}");
                assert_eq!((policy(), clamp()), before);
            }
        }
    });
}

#[test]
fn idle_can_be_left_with_privileges_alone() {
    on_a_thread(|| {
        if set_policy(Policy::Idle).is_err() {
            return;
        }
        assert_eq!(policy(), Ok(Some(Policy::Idle)));
        match set_policy(Policy::Other) {
            Ok(()) => assert_eq!(policy(), Ok(Some(Policy::Other))),
            Err(error) => {
                // EPERM has the same number everywhere.
                assert_eq!(error, Error::Os(1));
                assert_eq!(policy(), Ok(Some(Policy::Idle)));
            }
        }
    });
}
