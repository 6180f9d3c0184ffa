//! The layers of built-in models: parameters, and the operators around them.

use super::ModelSpec;
use super::operation_precision::{OperationKind, OperationPrecisions};
use crate::graph::{GraphBuilder, GraphError, ModelGraph};
use crate::operators::{
    ActivationOp, AddBiasOp, BinaryOp, CastOp, ConvOp, CrossEntropyOp, DropoutOp, MatMulOp, NormOp,
    Operator, ReshapeOp, ScaleOp, SoftmaxOp, SplitOp, TransposeOp,
};
use crate::shape::{DType, TensorId, TensorInfo, TensorRole};

/// A model under construction.
pub(crate) struct ModelBuilder {
    graph: GraphBuilder,
    /// Element type of activations.
    pub dtype: DType,
    parameter_type: DType,
    /// Element types of the kinds of operations that have their own.
    precision_of: OperationPrecisions,
    /// True if the model has a backward pass.
    pub training: bool,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct AttentionParams {
    pub batch: u64,
    /// Tokens of a sequence.
    pub tokens: u64,
    /// The number of heads that share the channels.
    pub heads: u64,
    /// The summand of the scores, with the shape `[batch or 1, 1, tokens or 1, tokens]`.
    pub mask: Option<TensorId>,
}

impl ModelBuilder {
    /// Makes an empty model with the precision of `spec`.
    pub(crate) fn new(spec: &ModelSpec) -> Self {
        Self {
            graph: GraphBuilder::new(),
            dtype: spec.precision,
            parameter_type: spec.parameter_type,
            precision_of: spec.precision_of,
            training: spec.training,
        }
    }

    /// Starts the block of this name, which the following operators belong to.
    pub(crate) fn block(&mut self, name: &str) {
        self.graph.block(name);
    }

    pub(crate) fn finish(self) -> ModelGraph {
        self.graph.finish()
    }

    /// The type of a tensor.
    pub(crate) fn ty(&self, tensor: TensorId) -> &TensorInfo {
        &self.graph.graph().tensor(tensor).ty
    }

    /// Adds a tensor that is streamed from the host.
    pub(crate) fn input(&mut self, name: &str, shape: &[u64], dtype: DType) -> TensorId {
        self.graph.tensor(name, TensorInfo::new(shape, dtype), TensorRole::Input)
    }

    /// Adds a tensor that is on the device from the start and is not trained.
    pub(crate) fn resident(&mut self, name: &str, shape: &[u64]) -> TensorId {
        self.graph.tensor(name, TensorInfo::new(shape, self.dtype), TensorRole::Resident)
    }

    /// Adds trainable values, in the type of computation. If they are kept in another type, each
    /// pass casts them.
    pub(crate) fn parameter(&mut self, name: &str, shape: &[u64]) -> Result<TensorId, GraphError> {
        self.parameter_in(name, shape, [self.parameter_type, self.dtype])
    }

    /// The element type that norms compute in.
    fn norm_type(&self) -> DType {
        self.precision_of.of(OperationKind::Norm, self.dtype)
    }

    /// Adds trainable values that are kept in one type and used in another.
    fn parameter_in(
        &mut self,
        name: &str,
        shape: &[u64],
        [kept, computed]: [DType; 2],
    ) -> Result<TensorId, GraphError> {
        let parameter =
            self.graph.tensor(name, TensorInfo::new(shape, kept), TensorRole::Parameter);
        if kept == computed {
            return Ok(parameter);
        }
        self.graph.apply(&format!("{name}/cast"), CastOp { to: computed }, &[parameter])
    }

    /// Applies an operator with one result.
    pub(crate) fn apply(
        &mut self,
        name: &str,
        operator: impl Operator + 'static,
        inputs: &[TensorId],
    ) -> Result<TensorId, GraphError> {
        Ok(self.apply_all(name, operator, inputs)?[0])
    }

    /// Applies an operator with several results. If operators of its kind have their own precision,
    /// operands in the model's type are cast before it, and the results that the model continues
    /// with after it. `.float()` and `.half()` in PopTorch leave the same casts to PopART.
    pub(crate) fn apply_all(
        &mut self,
        name: &str,
        operator: impl Operator + 'static,
        inputs: &[TensorId],
    ) -> Result<Vec<TensorId>, GraphError> {
        let Some(kind) = OperationKind::of(&operator) else {
            return self.graph.apply_all(name, operator, inputs);
        };
        let to = self.precision_of.of(kind, self.dtype);
        let mut operands = inputs.to_vec();
        for (index, operand) in operands.iter_mut().enumerate() {
            let dtype = self.ty(*operand).dtype;
            if dtype.is_float() && dtype != to {
                let number = if index == 0 { String::new() } else { index.to_string() };
                let name = format!("{name}/cast{number}");
                *operand = self.graph.apply(&name, CastOp { to }, &[*operand])?;
            }
        }
        let mut results = self.graph.apply_all(name, operator, &operands)?;
        if to != self.dtype && kind != OperationKind::Loss {
            let back = CastOp { to: self.dtype };
            results[0] = self.graph.apply(&format!("{name}/castBack"), back, &results[..1])?;
        }
        Ok(results)
    }

    /// Reshapes a tensor, with the same elements.
    pub(crate) fn reshape(
        &mut self,
        name: &str,
        x: TensorId,
        shape: &[u64],
    ) -> Result<TensorId, GraphError> {
        self.apply(name, ReshapeOp { shape: shape.to_vec() }, &[x])
    }

    /// Adds `x . weight + bias` for a matrix `x`.
    pub(crate) fn linear(
        &mut self,
        name: &str,
        x: TensorId,
        outputs: u64,
    ) -> Result<TensorId, GraphError> {
        let inputs = self.ty(x).shape.last().copied().unwrap_or(1);
        let weights = self.parameter(&format!("{name}/weight"), &[inputs, outputs])?;
        let x = self.apply(name, MatMulOp::default(), &[x, weights])?;
        self.bias(name, x, outputs)
    }

    /// Adds one trained value per channel.
    pub(crate) fn bias(
        &mut self,
        name: &str,
        x: TensorId,
        channels: u64,
    ) -> Result<TensorId, GraphError> {
        let name = format!("{name}/bias");
        let bias = self.parameter(&name, &[channels])?;
        self.apply(&name, AddBiasOp { axis: 1 }, &[x, bias])
    }

    /// Adds a convolution with square kernels and without bias.
    pub(crate) fn conv(
        &mut self,
        name: &str,
        x: TensorId,
        filters: u64,
        kernel: u64,
        conv: ConvOp,
    ) -> Result<TensorId, GraphError> {
        let channels = self.ty(x).shape.get(1).copied().unwrap_or(1);
        let shape = [filters, channels / conv.groups.max(1), kernel, kernel];
        let weights = self.parameter(&format!("{name}/weight"), &shape)?;
        self.apply(name, conv, &[x, weights])
    }

    /// Adds scale and shift of a norm over `channels`, kept in the type that the norm computes in
    /// if that is not the model's type.
    pub(crate) fn affine(
        &mut self,
        name: &str,
        channels: u64,
    ) -> Result<[TensorId; 2], GraphError> {
        let computed = self.norm_type();
        let kept = if computed == self.dtype { self.parameter_type } else { computed };
        let types = [kept, computed];
        let scale = self.parameter_in(&format!("{name}/weight"), &[channels], types)?;
        Ok([scale, self.parameter_in(&format!("{name}/bias"), &[channels], types)?])
    }

    /// Adds batch norm over the second axis of a convolution's result. In an untrained model it is
    /// folded into the weights and leaves a bias, because exporters write such models this way
    /// (torch.onnx.export in evaluation mode, which PopRT's benchmarks start from).
    pub(crate) fn batch_norm(&mut self, name: &str, x: TensorId) -> Result<TensorId, GraphError> {
        let channels = self.ty(x).shape.get(1).copied().unwrap_or(1);
        if !self.training {
            return self.bias(name, x, channels);
        }
        let [scale, shift] = self.affine(name, channels)?;
        let running = TensorInfo::new([channels], self.norm_type());
        let [mean, variance] = ["running_mean", "running_var"].map(|part| {
            self.graph.tensor(&format!("{name}/{part}"), running.clone(), TensorRole::Resident)
        });
        let outputs = self.apply_all(name, NormOp::BATCH, &[x, scale, shift, mean, variance])?;
        Ok(outputs[0])
    }

    /// Adds layer norm over the last axis.
    pub(crate) fn layer_norm(&mut self, name: &str, x: TensorId) -> Result<TensorId, GraphError> {
        let channels = self.ty(x).shape.last().copied().unwrap_or(1);
        let [scale, shift] = self.affine(name, channels)?;
        Ok(self.apply_all(name, NormOp::LAYER, &[x, scale, shift])?[0])
    }

    /// Adds dropout if the model is trained.
    pub(crate) fn dropout(&mut self, name: &str, x: TensorId) -> Result<TensorId, GraphError> {
        if self.training { self.apply(name, DropoutOp, &[x]) } else { Ok(x) }
    }

    /// Adds self-attention of `x[batch x tokens, channels]` with one projection for queries, keys
    /// and values, as graphcore/examples fuses them (nlp/bert/pytorch modeling.py).
    pub(crate) fn attention(
        &mut self,
        name: &str,
        x: TensorId,
        sizes: AttentionParams,
    ) -> Result<TensorId, GraphError> {
        let AttentionParams { batch, tokens, heads, mask } = sizes;
        let channels = self.ty(x).shape[1];
        let depth = channels / heads;
        let named = |part: &str| format!("{name}/{part}");
        let projected = self.linear(&named("qkv"), x, 3 * channels)?;
        let parts = SplitOp::even(1, 3, channels);
        let parts = self.apply_all(&named("qkv/split"), parts, &[projected])?;
        let mut of_heads = Vec::new();
        for (part, tensor) in ["query", "key", "value"].into_iter().zip(parts) {
            let shape = [batch, tokens, heads, depth];
            let x = self.reshape(&named(&format!("{part}/heads")), tensor, &shape)?;
            let turn = TransposeOp { permutation: vec![0, 2, 1, 3] };
            let x = self.apply(&named(&format!("{part}/transpose")), turn, &[x])?;
            let shape = [batch * heads, tokens, depth];
            of_heads.push(self.reshape(&named(part), x, &shape)?);
        }
        let [query, key, value] = [of_heads[0], of_heads[1], of_heads[2]];
        let scores = self.apply(&named("scores"), MatMulOp::TRANSPOSED, &[query, key])?;
        let scale = ScaleOp::by(1.0 / (depth as f64).sqrt());
        let mut scores = self.apply(&named("scale"), scale, &[scores])?;
        let square = [batch, heads, tokens, tokens];
        if let Some(mask) = mask {
            scores = self.reshape(&named("scores/heads"), scores, &square)?;
            scores = self.apply(&named("mask"), BinaryOp::ADD, &[scores, mask])?;
            let flat = [batch * heads, tokens, tokens];
            scores = self.reshape(&named("scores/flat"), scores, &flat)?;
        }
        let softmax = SoftmaxOp { axis: 2, log: false };
        let shares = self.apply(&named("softmax"), softmax, &[scores])?;
        let shares = self.dropout(&named("dropout"), shares)?;
        let context = self.apply(&named("context"), MatMulOp::default(), &[shares, value])?;
        let shape = [batch, heads, tokens, depth];
        let context = self.reshape(&named("context/heads"), context, &shape)?;
        let turn = TransposeOp { permutation: vec![0, 2, 1, 3] };
        let context = self.apply(&named("context/transpose"), turn, &[context])?;
        let shape = [batch * tokens, channels];
        let context = self.reshape(&named("context/flat"), context, &shape)?;
        self.linear(&named("projection"), context, channels)
    }

    /// Adds the two linear layers after attention, with GELU between them.
    pub(crate) fn feed_forward(
        &mut self,
        name: &str,
        x: TensorId,
        inner: u64,
    ) -> Result<TensorId, GraphError> {
        let channels = self.ty(x).shape[1];
        let x = self.linear(&format!("{name}/ff1"), x, inner)?;
        let x = self.apply(&format!("{name}/gelu"), ActivationOp::GELU, &[x])?;
        self.linear(&format!("{name}/ff2"), x, channels)
    }

    /// Adds a transformer layer that norms the inputs of attention and feed-forward (GPT-2, ViT).
    pub(crate) fn pre_norm_layer(
        &mut self,
        name: &str,
        x: TensorId,
        sizes: AttentionParams,
        inner: u64,
    ) -> Result<TensorId, GraphError> {
        let normed = self.layer_norm(&format!("{name}/norm1"), x)?;
        let y = self.attention(&format!("{name}/attention"), normed, sizes)?;
        let y = self.dropout(&format!("{name}/attention/dropout_out"), y)?;
        let x = self.apply(&format!("{name}/attention/residual"), BinaryOp::ADD, &[y, x])?;
        let normed = self.layer_norm(&format!("{name}/norm2"), x)?;
        let y = self.feed_forward(name, normed, inner)?;
        let y = self.dropout(&format!("{name}/ff_dropout"), y)?;
        self.apply(&format!("{name}/residual"), BinaryOp::ADD, &[y, x])
    }

    /// Sends the logits to the host, and the loss against labels if the model is trained. `logits`
    /// are `[samples, classes]`.
    pub(crate) fn classify(&mut self, logits: TensorId) -> Result<(), GraphError> {
        self.graph.output(logits);
        if !self.training {
            return Ok(());
        }
        let samples = self.ty(logits).shape[0];
        let labels = self.input("labels", &[samples], DType::Int);
        self.loss("loss", CrossEntropyOp, &[logits, labels])
    }

    /// Sends a tensor to the host for each micro-batch.
    pub(crate) fn output(&mut self, tensor: TensorId) {
        self.graph.output(tensor);
    }

    /// Adds a loss and sends it to the host.
    pub(crate) fn loss(
        &mut self,
        name: &str,
        operator: impl Operator + 'static,
        operands: &[TensorId],
    ) -> Result<(), GraphError> {
        let loss = self.apply_all(name, operator, operands)?[0];
        self.graph.output(loss);
        self.graph.loss(loss);
        Ok(())
    }
}
