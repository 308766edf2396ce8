//! Text out of tokens, which may end inside a character.

#![forbid(unsafe_code)]

/// Turns the bytes of one token after another into text, and keeps those that begin a character which is not whole yet.
///
/// ```
/// let mut stream = benches::llama::TextStream::default();
/// assert_eq!(stream.push(b"a\xc3"), "a");
/// assert_eq!(stream.push(b"\xa9"), "é");
/// assert_eq!(stream.push(b"\xff\xe2\x82"), "\u{fffd}");
/// assert_eq!(stream.finish(), "\u{fffd}");
/// ```
#[derive(Clone, Debug, Default)]
pub struct TextStream {
    pending: Vec<u8>,
}

impl TextStream {
    /// The text that is whole with these bytes. Bytes that are no UTF-8 become U+FFFD.
    pub fn push(&mut self, bytes: &[u8]) -> String {
        self.pending.extend(bytes);
        let mut text = String::new();
        let mut rest: &[u8] = &[];
        for chunk in self.pending.utf8_chunks() {
            text.push_str(chunk.valid());
            let invalid = chunk.invalid();
            if invalid.is_empty() {
                continue;
            }
            // Only at the very end can more bytes make a character of it.
            let at_end = invalid.as_ptr_range().end == self.pending.as_ptr_range().end;
            match str::from_utf8(invalid) {
                Err(error) if at_end && error.error_len().is_none() => rest = invalid,
                _ => text.push(char::REPLACEMENT_CHARACTER),
            }
        }
        self.pending = rest.to_vec();
        text
    }

    /// What is left when no token follows.
    pub fn finish(&mut self) -> String {
        String::from_utf8_lossy(&std::mem::take(&mut self.pending)).into_owned()
    }
}
