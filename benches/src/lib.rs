//! Model shapes, seeded data, backends by name and the decode replay behind `cargo xtask bench`.
