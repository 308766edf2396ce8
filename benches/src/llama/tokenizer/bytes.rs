//! The alphabet of byte-level vocabularies: each of the 256 bytes is written as a character that can be seen.

#![forbid(unsafe_code)]

/// The character that stands for a byte: itself where it can be seen in Latin-1, else the next one from U+0100.
pub(super) fn alphabet() -> [char; 256] {
    let mut next = 0x100;
    std::array::from_fn(|byte| {
        let code = match byte {
            0x21..=0x7e | 0xa1..=0xac | 0xae..=0xff => byte as u32,
            _ => {
                next += 1;
                next - 1
            }
        };
        char::from_u32(code).expect("it is below U+0200")
    })
}

/// The alphabet, read backwards.
#[derive(Clone, Debug)]
pub(super) struct Decoder {
    bytes: [Option<u8>; 0x200],
}

impl Decoder {
    pub(super) fn new() -> Self {
        let mut bytes = [None; 0x200];
        for (byte, character) in (0..=u8::MAX).zip(alphabet()) {
            bytes[character as usize] = Some(byte);
        }
        Self { bytes }
    }

    /// Appends what a token means. A character outside the alphabet is itself.
    pub(super) fn decode(&self, token: &str, out: &mut Vec<u8>) {
        for character in token.chars() {
            match self.bytes.get(character as usize).copied().flatten() {
                Some(byte) => out.push(byte),
                None => out.extend(character.encode_utf8(&mut [0; 4]).as_bytes()),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_that_cannot_be_seen_have_substitutes() {
        let alphabet = alphabet();
        // As every byte-level vocabulary has them.
        for (byte, character) in
            [(b' ', 'Ġ'), (b'\n', 'Ċ'), (b'\t', 'ĉ'), (b'a', 'a'), (0xad, 'Ń'), (0xff, 'ÿ')]
        {
            assert_eq!(alphabet[usize::from(byte)], character);
        }
        let mut distinct = alphabet.to_vec();
        distinct.sort_unstable();
        distinct.dedup();
        assert_eq!(distinct.len(), 256);
    }

    #[test]
    fn every_byte_comes_back() {
        let token: String = alphabet().iter().collect();
        let decoder = Decoder::new();
        let mut bytes = Vec::new();
        decoder.decode(&token, &mut bytes);
        assert_eq!(bytes, (0..=255).collect::<Vec<u8>>());
        bytes.clear();
        decoder.decode("Ġ日", &mut bytes);
        assert_eq!(bytes, " 日".as_bytes());
    }
}
