//! Tests with access to private items.

#[cfg(not(loom))]
mod dispatch;
#[cfg(loom)]
mod loom;
