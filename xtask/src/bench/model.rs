//! The model's file of a decode: what is asked of it, and whether it can be measured at all.

use benches::gguf::MappedFile;
use benches::model_suite::{self, ModelFacts, PROMPT};
use benches::protocol::{ModelRequest, Suite};
use benches::{Contender, Input};

use super::settings::unique;
use crate::cli::{BenchOptions, UsageError};

/// Tokens of a process, if nobody chooses.
const TOKENS: usize = 128;
/// The same in a first look.
const QUICK_TOKENS: usize = 32;

/// A file that was read and found good.
#[derive(Clone, Debug)]
pub(crate) struct Model {
    pub(crate) request: ModelRequest,
    pub(crate) facts: ModelFacts,
}

impl Model {
    /// The file that the options name, if they do. One that cannot be measured is a [`UsageError`].
    #[expect(
        unsafe_code,
        reason = "a file is mapped, with the promise that the help asks of the user"
    )]
    pub(crate) fn find(options: &BenchOptions) -> Result<Option<Self>, UsageError> {
        let Some(file) = &options.model else { return Ok(None) };
        let usual = if options.quick { QUICK_TOKENS } else { TOKENS };
        let n_tokens = options.tokens.map_or(usual, |tokens| tokens as usize);
        // SAFETY: the help of `--model` asks the user to leave the file as it is meanwhile.
        let mapped = unsafe { MappedFile::open(file) };
        let mapped = mapped.map_err(|error| UsageError(format!("{}: {error}", file.display())))?;
        let facts = model_suite::inspect(mapped.bytes(), file, n_tokens).map_err(UsageError)?;
        let request = ModelRequest {
            file: file.clone(),
            activations: options.variants.input.unwrap_or(Input::Q8).into(),
            prompt: PROMPT.into(),
            n_tokens: facts.n_tokens,
        };
        Ok(Some(Self { request, facts }))
    }

    /// What is measured, for whoever reads the numbers.
    pub(crate) fn note(&self) -> String {
        let ModelFacts { name, n_prompt, n_tokens, bytes_per_token } = &self.facts;
        format!(
            "decode of {name}: in each process {n_tokens} tokens after a prompt of {n_prompt}, always the likeliest one; {:.1} MB of \
             weights for each, multiplied with {}",
            *bytes_per_token as f64 / 1e6,
            self.request.activations
        )
    }

    /// The options that ask for the same again.
    pub(crate) fn words(&self) -> String {
        format!("--model {} --tokens {}", self.request.file.display(), self.request.n_tokens)
    }
}

/// The suites that are asked for, in order. With a file, decode is that of the file, and what runs if nothing is named.
pub(crate) fn suites(options: &BenchOptions) -> Result<Vec<Suite>, UsageError> {
    let wrong = |what: String| Err(UsageError(what));
    let all = Contender::all(&options.backends, &options.placement, &options.spin);
    let engine = all.iter().find(|contender| contender.backend().is_engine());
    if options.model.is_none() {
        let suites = if options.suites.is_empty() { Suite::ALL } else { &options.suites };
        return match engine {
            Some(engine) => {
                wrong(format!("{engine} decodes a model's file: name one with --model"))
            }
            None => Ok(unique(suites)),
        };
    }
    let named = if options.suites.is_empty() { &[Suite::Decode][..] } else { &options.suites };
    if !named.contains(&Suite::Decode) {
        return wrong("--model is for decode, which is not among the suites".into());
    }
    if let Some(format) =
        options.variants.formats.first().filter(|_| !named.contains(&Suite::Matvec))
    {
        return wrong(format!(
            "--format {format} means nothing to a model's file, which has its own"
        ));
    }
    if let Some((engine, suite)) = engine.zip(named.iter().find(|suite| **suite != Suite::Decode)) {
        return wrong(format!("{engine} decodes a model's file, and runs no {suite}"));
    }
    let of_file = |suite: &Suite| if *suite == Suite::Decode { Suite::Model } else { *suite };
    Ok(unique(&named.iter().map(of_file).collect::<Vec<_>>()))
}

#[cfg(test)]
mod tests {
    use benches::Backend;

    use super::*;

    #[test]
    fn a_file_turns_decode_into_that_of_the_file() {
        use Suite::{Decode, Dispatch, Matvec};
        type Case = (&'static [Suite], bool, Backend, Option<&'static [Suite]>);
        let cases: [Case; 9] = [
            (&[], false, Backend::Epoch, Some(Suite::ALL)),
            (&[Matvec, Matvec], false, Backend::Epoch, Some(&[Matvec])),
            (&[], true, Backend::Epoch, Some(&[Suite::Model])),
            (&[Matvec, Decode], true, Backend::Epoch, Some(&[Matvec, Suite::Model])),
            (&[Dispatch], true, Backend::Epoch, None),
            (&[], false, Backend::LlamaCpp, None),
            (&[Decode], false, Backend::LlamaCpp, None),
            (&[Decode], true, Backend::LlamaCpp, Some(&[Suite::Model])),
            (&[Decode, Matvec], true, Backend::LlamaCpp, None),
        ];
        for (named, has_file, backend, expected) in cases {
            let options = BenchOptions {
                suites: named.into(),
                model: has_file.then(|| "a file".into()),
                backends: vec![backend],
                ..BenchOptions::default()
            };
            let found = suites(&options);
            assert_eq!(found.ok().as_deref(), expected, "{named:?} {has_file} {backend}");
        }
    }
}
