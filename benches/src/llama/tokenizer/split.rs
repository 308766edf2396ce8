//! Cuts text into the pieces that merges do not cross: words with the space in front, digits, runs of other signs.

#![forbid(unsafe_code)]

use regex::Regex;

/// The pieces of GPT-2, but for one rule that needs a look ahead: of white space in front of anything else, the last character
/// goes to what follows. [`Splitter::split_words`] has that rule.
const WORDS: &str = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+";

/// The rules of one vocabulary.
#[derive(Clone, Debug)]
pub(super) struct Splitter {
    words: Regex,
    /// Each digit is a piece of its own, and no look ahead goes beyond one.
    digits_alone: bool,
}

impl Splitter {
    /// The rules that a file names in `tokenizer.ggml.pre`.
    pub(super) fn named(name: &str) -> Option<Self> {
        let digits_alone = match name {
            "smollm" => true,
            "gpt-2" => false,
            _ => return None,
        };
        let words = Regex::new(WORDS).expect("a constant that the tests compile");
        Some(Self { words, digits_alone })
    }

    /// Calls `f` with each piece, in order. The pieces together are the text.
    pub(super) fn split<'t>(&self, text: &'t str, mut f: impl FnMut(&'t str)) {
        if !self.digits_alone {
            return self.split_words(text, &mut f);
        }
        let mut rest = text;
        while let Some((at, digit)) = rest.char_indices().find(|(_, c)| c.is_numeric()) {
            let (before, from_digit) = rest.split_at(at);
            let (digit, after) = from_digit.split_at(digit.len_utf8());
            self.split_words(before, &mut f);
            f(digit);
            rest = after;
        }
        self.split_words(rest, &mut f);
    }

    fn split_words<'t>(&self, text: &'t str, f: &mut impl FnMut(&'t str)) {
        let mut rest = text;
        while let Some(found) = self.words.find(rest) {
            // Every character begins a match, so this one begins at 0.
            let mut end = found.end();
            let last = rest[..end].char_indices().next_back();
            if let Some((at, last)) = last
                && at > 0
                && end < rest.len()
                && last.is_whitespace()
            {
                end = at;
            }
            f(&rest[..end]);
            rest = &rest[end..];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces() {
        /// The text, its pieces, and those where digits stand alone if they differ.
        type Case = (&'static str, &'static [&'static str], Option<&'static [&'static str]>);
        let cases: &[Case] = &[
            ("", &[], None),
            ("Hello world", &["Hello", " world"], None),
            ("a  b", &["a", " ", " b"], None),
            ("a   ", &["a", "   "], None),
            ("\n\n  if", &["\n\n ", " if"], None),
            ("a\nb", &["a", "\n", "b"], None),
            ("we'll don't I'M", &["we", "'ll", " don", "'t", " I", "'", "M"], None),
            ("x == y!?", &["x", " ==", " y", "!?"], None),
            ("größer 日本", &["größer", " 日本"], None),
            ("12 345", &["12", " 345"], Some(&["1", "2", " ", "3", "4", "5"])),
            ("v2  ½", &["v", "2", " ", " ½"], Some(&["v", "2", "  ", "½"])),
            ("\u{a0}\u{a0}x", &["\u{a0}", "\u{a0}", "x"], None),
        ];
        for &(text, plain, digits) in cases {
            for (name, expected) in [("gpt-2", plain), ("smollm", digits.unwrap_or(plain))] {
                let mut found = Vec::new();
                Splitter::named(name).unwrap().split(text, |piece| found.push(piece));
                assert_eq!(found, expected, "{text:?} as {name}");
                assert_eq!(found.concat(), text);
            }
        }
    }

    #[test]
    fn unknown_rules_are_refused() {
        assert!(Splitter::named("llama-bpe").is_none());
    }
}
