//! Which of the many ways to multiply a matrix are measured: formats, batches, kernels, inputs, packing.

#![forbid(unsafe_code)]

use std::fmt;
use std::str::FromStr;

use rowpar::{Format, Isa, Kernels};
use serde::{Deserialize, Serialize};

/// The variants of the suites with weights.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Variants {
    /// Formats of the weights. The decode suite takes the first one.
    #[serde(with = "names")]
    pub formats: Vec<Format>,
    /// Inputs that share a pass over the weights; of matvec alone.
    pub batches: Vec<usize>,
    /// Instruction sets; the fastest one alone if there is none here. Matvec only.
    #[serde(with = "names")]
    pub isas: Vec<Isa>,
    /// What block weights are multiplied with; matvec only.
    pub input: Input,
    /// Whether packed tiles are measured beside the rows as they are.
    pub packed: bool,
}

impl Default for Variants {
    fn default() -> Self {
        Self {
            formats: vec![Format::F32],
            batches: vec![1],
            isas: Vec::new(),
            input: Input::Q8,
            packed: false,
        }
    }
}

impl Variants {
    /// The kernels that are measured.
    ///
    /// # Errors
    ///
    /// This CPU has not all of them.
    pub fn kernels(&self) -> Result<Vec<Kernels>, String> {
        if self.isas.is_empty() {
            return Ok(vec![Kernels::best()]);
        }
        let kernels = self.isas.iter().map(|isa| {
            Kernels::for_isa(*isa).ok_or_else(|| {
                let known: Vec<String> =
                    Kernels::supported().iter().map(|kernels| kernels.isa().to_string()).collect();
                format!("this CPU has no {isa} kernels; it has {}", known.join(", "))
            })
        });
        kernels.collect()
    }
}

/// What block weights are multiplied with. Float weights always meet floats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Input {
    /// Blocks of 32 integers, quantized once.
    Q8,
    /// Floats: weights are widened on the way.
    F32,
}

impl fmt::Display for Input {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Q8 => "q8",
            Self::F32 => "f32",
        })
    }
}

impl FromStr for Input {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        match name.trim().to_ascii_lowercase().as_str() {
            "q8" => Ok(Self::Q8),
            "f32" => Ok(Self::F32),
            _ => Err(format!("unknown input `{name}`; the inputs are q8, f32")),
        }
    }
}

/// Lists of things that have names, as lists of those.
mod names {
    use std::fmt::Display;
    use std::str::FromStr;

    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub(super) fn serialize<T: Display, S: Serializer>(
        list: &[T],
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(list.iter().map(T::to_string))
    }

    pub(super) fn deserialize<'de, T: FromStr<Err: Display>, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Vec<T>, D::Error> {
        let names = Vec::<String>::deserialize(deserializer)?;
        names.iter().map(|name| name.parse().map_err(D::Error::custom)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variants_survive_the_trip_and_may_be_left_out() {
        let variants = Variants {
            formats: vec![Format::Q4K, Format::Bf16],
            batches: vec![1, 8],
            isas: vec![Isa::Scalar],
            input: Input::F32,
            packed: true,
        };
        let json = serde_json::to_string(&variants).unwrap();
        assert!(json.contains(r#""formats":["Q4_K","BF16"]"#), "{json}");
        assert_eq!(serde_json::from_str::<Variants>(&json).unwrap(), variants);
        assert_eq!(serde_json::from_str::<Variants>("{}").unwrap(), Variants::default());
        for junk in [r#"{"formats":["Q9"]}"#, r#"{"isas":["abacus"]}"#, r#"{"input":"q4"}"#] {
            assert!(serde_json::from_str::<Variants>(junk).is_err(), "{junk}");
        }
    }

    #[test]
    fn kernels_are_those_named_or_the_best() {
        let mut variants = Variants::default();
        assert_eq!(variants.kernels().unwrap(), [Kernels::best()]);
        variants.isas = Kernels::supported().iter().map(|kernels| kernels.isa()).collect();
        assert_eq!(variants.kernels().unwrap(), Kernels::supported());
        let absent = Isa::ALL.iter().find(|isa| Kernels::for_isa(**isa).is_none());
        variants.isas.extend(absent);
        assert_eq!(variants.kernels().is_err(), absent.is_some());
    }

    #[test]
    fn inputs_have_names() {
        for input in [Input::Q8, Input::F32] {
            assert_eq!(input.to_string().parse::<Input>().unwrap(), input);
        }
        assert!("q4".parse::<Input>().unwrap_err().contains("q8, f32"));
    }
}
