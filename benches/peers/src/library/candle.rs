//! candle-core's quantized matrices, `QMatMul`, on its own threads.

#![forbid(unsafe_code)]

use std::borrow::Cow;

use benches::PoolError;
use benches::library::{Library, Product, Weights};
use candle_core::quantized::{GgmlDType, QMatMul, QStorage, QTensor};
use candle_core::{Device, Module, Storage, Tensor};
use rowpar::Format;

use super::expect_variable;

pub(super) struct Candle;

/// A copy of each matrix.
struct Loaded {
    n_rows: usize,
    n_cols: usize,
    matrices: Vec<QMatMul>,
}

impl Candle {
    pub(super) fn new(n_threads: usize) -> Result<Self, PoolError> {
        expect_variable("CANDLE_NUM_THREADS", n_threads)?;
        expect_variable("RAYON_NUM_THREADS", n_threads)?;
        Ok(Self)
    }
}

impl Library for Candle {
    fn load<'a>(&'a self, weights: Weights<'a>) -> Result<Box<dyn Product + 'a>, PoolError> {
        let Weights { format, n_rows, n_cols, .. } = weights;
        let dtype = dtype(format).ok_or_else(|| format!("it has no {format}"))?;
        let matrix = |copy| {
            let storage =
                QStorage::from_data(Cow::Borrowed(weights.bytes(copy)), &Device::Cpu, dtype)?;
            QMatMul::from_qtensor(QTensor::new(storage, (n_rows, n_cols))?)
        };
        let matrices: Vec<QMatMul> =
            (0..weights.n_copies()).map(matrix).collect::<Result<_, candle_core::Error>>()?;
        if !matrices.iter().all(|matrix| matches!(matrix, QMatMul::QTensor(_))) {
            return Err("it would widen the weights: unset CANDLE_DEQUANTIZE_ALL".into());
        }
        Ok(Box::new(Loaded { n_rows, n_cols, matrices }))
    }
}

impl Loaded {
    fn product(&self, copy: usize, x: &[f32], n_inputs: usize) -> candle_core::Result<Tensor> {
        let x = Tensor::from_slice(x, (n_inputs, self.n_cols), &Device::Cpu)?;
        self.matrices[copy].forward(&x)
    }
}

impl Product for Loaded {
    fn multiply(
        &mut self,
        copy: usize,
        x: &[f32],
        n_inputs: usize,
        out: &mut [f32],
    ) -> Result<(), PoolError> {
        assert_eq!(out.len(), n_inputs * self.n_rows);
        let product = self.product(copy, x, n_inputs)?;
        let (storage, layout) = product.storage_and_layout();
        match &*storage {
            Storage::Cpu(values) => {
                let values = values.as_slice::<f32>()?;
                out.copy_from_slice(&values[layout.start_offset()..][..out.len()]);
                Ok(())
            }
            _ => unreachable!("the product of tensors of the CPU is one"),
        }
    }
}

fn dtype(format: Format) -> Option<GgmlDType> {
    Some(match format {
        Format::Q8_0 => GgmlDType::Q8_0,
        Format::Q5_0 => GgmlDType::Q5_0,
        Format::Q5_1 => GgmlDType::Q5_1,
        Format::Q4_0 => GgmlDType::Q4_0,
        Format::Q4_1 => GgmlDType::Q4_1,
        Format::Q4K => GgmlDType::Q4K,
        Format::Q5K => GgmlDType::Q5K,
        Format::Q6K => GgmlDType::Q6K,
        _ => return None,
    })
}
