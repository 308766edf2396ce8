//! Classes and guards on the running system, whatever it has. Each test has a thread of its own.

use cpu_qos::{
    Current, Error, QosClass, QosGuard, at_least, current, current_qos_name, main_class,
    set_current, set_user_interactive_qos,
};

fn on_a_thread(test: impl FnOnce() + Send) {
    std::thread::scope(|scope| scope.spawn(test).join().expect("the thread does not panic"));
}

fn has_classes() -> bool {
    cfg!(any(target_vendor = "apple", windows))
}

fn class(class: QosClass) -> Current {
    Current::Class { class, relative_priority: 0 }
}

#[test]
fn without_classes_nothing_is_set_and_nothing_is_claimed() {
    if has_classes() {
        return;
    }
    for class in QosClass::ALL {
        assert_eq!(set_current(class), Err(Error::Unsupported));
        assert_eq!(at_least(class), Err(Error::Unsupported));
        assert_eq!(QosGuard::set(class).err(), Some(Error::Unsupported));
        assert_eq!(QosGuard::at_least(class).err(), Some(Error::Unsupported));
    }
    assert_eq!((current(), main_class()), (Current::Unsupported, Current::Unsupported));
}

#[test]
fn a_class_that_was_set_is_read_back() {
    on_a_thread(|| {
        for asked in QosClass::ALL {
            match set_current(asked) {
                Ok(()) => assert_eq!(current(), class(asked)),
                Err(error) => assert_eq!((error, has_classes()), (Error::Unsupported, false)),
            }
        }
    });
}

#[test]
fn the_short_names_are_for_apple_platforms() {
    on_a_thread(|| {
        let before = current();
        if cfg!(target_vendor = "apple") {
            assert_eq!(set_user_interactive_qos(), Ok(()));
            assert_eq!(current_qos_name(), Some("user-interactive"));
        } else {
            assert_eq!(set_user_interactive_qos(), Err(Error::Unsupported));
            assert_eq!(current_qos_name(), None);
            assert_eq!(current(), before);
        }
    });
}

#[test]
fn guards_nest_and_restore() {
    on_a_thread(|| {
        if set_current(QosClass::Utility).is_err() {
            assert!(!has_classes());
            return;
        }
        {
            let outer = QosGuard::at_least(QosClass::UserInitiated).unwrap();
            assert_eq!((outer.former(), outer.can_restore()), (class(QosClass::Utility), true));
            let inner = QosGuard::at_least(QosClass::Background).unwrap();
            assert_eq!(current(), class(QosClass::UserInitiated));
            let lowered = QosGuard::set(QosClass::Background).unwrap();
            assert_eq!(lowered.restore(), Ok(()));
            drop(inner);
            assert_eq!(current(), class(QosClass::UserInitiated));
        }
        assert_eq!(current(), class(QosClass::Utility));
        QosGuard::set(QosClass::Default).unwrap().keep();
        assert_eq!(current(), class(QosClass::Default));
    });
}

#[test]
fn a_guard_says_when_there_is_no_way_back() {
    on_a_thread(|| {
        let Ok(guard) = QosGuard::set(QosClass::UserInteractive) else {
            assert!(!has_classes());
            return;
        };
        let (former, can_restore) = (guard.former(), guard.can_restore());
        let restored = guard.restore();
        assert_eq!(restored.is_ok(), can_restore);
        match restored {
            Ok(()) => assert_eq!(current(), former),
            Err(error) => assert_eq!(error, Error::NotRestorable(former)),
        }
    });
}
