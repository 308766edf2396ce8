//! A question, in the form that a model was trained to answer.

#![forbid(unsafe_code)]

use super::Tokenizer;
use crate::gguf::Gguf;

/// What the template of SmolLM2 says when nobody says who the model is.
const SMOLLM_SYSTEM: &str = "You are a helpful AI assistant named SmolLM, trained by Hugging Face";

/// How turns are marked: ChatML, as SmolLM2 and many others have it. A file's own template is a program in a language of its own;
/// it is only looked at for these marks.
///
/// Marks come as tokens, and what is said between them as text: a question cannot end its own turn.
#[derive(Clone, Debug)]
pub struct ChatTemplate {
    start: u32,
    end: u32,
    default_system: Option<&'static str>,
}

impl ChatTemplate {
    /// The template of a file, if it is ChatML and its vocabulary has the marks.
    pub fn from_gguf(gguf: &Gguf<'_>, tokenizer: &Tokenizer) -> Option<Self> {
        let template = gguf.get("tokenizer.chat_template")?;
        let template = template.as_str().filter(|text| text.contains("<|im_start|>"))?;
        let default_system = template.contains(SMOLLM_SYSTEM).then_some(SMOLLM_SYSTEM);
        let start = tokenizer.control("<|im_start|>")?;
        let end = tokenizer.control("<|im_end|>")?;
        Some(Self { start, end, default_system })
    }

    /// The tokens of a question, up to where the answer begins. What the file wants at the beginning of a text stands in front
    /// once, and with most templates is their own first mark.
    pub fn question(
        &self,
        tokenizer: &Tokenizer,
        system: Option<&str>,
        question: &str,
    ) -> Vec<u32> {
        let mut tokens = Vec::new();
        let system = system.or(self.default_system).map(|system| ("system", system));
        for (role, content) in system.into_iter().chain([("user", question)]) {
            tokens.push(self.start);
            tokens.extend(tokenizer.encode(&format!("{role}\n{content}")));
            tokens.push(self.end);
            tokens.extend(tokenizer.encode("\n"));
        }
        tokens.push(self.start);
        tokens.extend(tokenizer.encode("assistant\n"));
        tokenizer.mark_beginning(tokens)
    }
}
