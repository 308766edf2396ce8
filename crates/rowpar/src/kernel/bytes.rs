//! Plain values as the bytes they are, on machines where these are as in a file.

/// The bytes of some numbers.
pub(crate) fn of_f32(values: &[f32]) -> &[u8] {
    // SAFETY: valid: as many bytes as the values have, each initialized, as floats have no padding, in an allocation
    // that is borrowed for as long as the result; aliasing: shared, as the values are.
    unsafe { std::slice::from_raw_parts(values.as_ptr().cast(), size_of_val(values)) }
}

/// The bytes of some numbers.
pub(crate) fn of_u16(values: &[u16]) -> &[u8] {
    // SAFETY: as above: integers have no padding either.
    unsafe { std::slice::from_raw_parts(values.as_ptr().cast(), size_of_val(values)) }
}
