//! Tokens that are found in text as they are written, before anything is split or merged.

#![forbid(unsafe_code)]

use std::collections::HashMap;

use regex::Regex;

/// A piece of a text.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Part<'t> {
    /// Text between tokens, not empty.
    Text(&'t str),
    /// One of the tokens.
    Token(u32),
}

/// A set of such tokens.
#[derive(Clone, Debug)]
pub(super) struct SpecialTokens {
    ids: HashMap<String, u32>,
    /// Any of them, the longest where two begin at one place; `None` if there is none.
    any: Option<Regex>,
}

impl SpecialTokens {
    /// A set of texts and their tokens, unless they are too many to look for. An empty text is left out.
    pub(super) fn new<'a>(
        tokens: impl Iterator<Item = (&'a str, u32)>,
    ) -> Result<Self, regex::Error> {
        let ids: HashMap<String, u32> =
            tokens.filter(|(text, _)| !text.is_empty()).map(|(t, id)| (t.to_owned(), id)).collect();
        let mut texts: Vec<&String> = ids.keys().collect();
        texts.sort_unstable_by_key(|text| (std::cmp::Reverse(text.len()), *text));
        let pattern = texts.iter().map(|text| regex::escape(text)).collect::<Vec<_>>().join("|");
        let any = (!ids.is_empty()).then(|| Regex::new(&pattern)).transpose()?;
        Ok(Self { ids, any })
    }

    pub(super) fn get(&self, text: &str) -> Option<u32> {
        self.ids.get(text).copied()
    }

    /// Calls `f` with each part, in order. The parts together are the text.
    pub(super) fn split<'t>(&self, text: &'t str, mut f: impl FnMut(Part<'t>)) {
        let mut end = 0;
        let found = self.any.iter().flat_map(|any| any.find_iter(text));
        for token in found {
            if end < token.start() {
                f(Part::Text(&text[end..token.start()]));
            }
            f(Part::Token(self.ids[token.as_str()]));
            end = token.end();
        }
        if end < text.len() {
            f(Part::Text(&text[end..]));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_token_wins() {
        let tokens = [("<a>", 1), ("<a>.*", 2), ("b", 3), ("", 4)];
        let tokens = SpecialTokens::new(tokens.into_iter()).unwrap();
        let cases: &[(&str, &[Part<'_>])] = &[
            ("", &[]),
            ("xyz", &[Part::Text("xyz")]),
            ("<a>.*", &[Part::Token(2)]),
            ("<a>.x", &[Part::Token(1), Part::Text(".x")]),
            ("xbb y", &[Part::Text("x"), Part::Token(3), Part::Token(3), Part::Text(" y")]),
        ];
        for (text, expected) in cases {
            let mut found = Vec::new();
            tokens.split(text, |part| found.push(part));
            assert_eq!(found, *expected, "{text:?}");
        }
        let mut found = Vec::new();
        SpecialTokens::new(std::iter::empty()).unwrap().split("b", |part| found.push(part));
        assert_eq!(found, [Part::Text("b")]);
    }
}
