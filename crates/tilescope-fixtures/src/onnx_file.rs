//! Writes ONNX files, including malformed ones: messages of protocol buffers, field by field.

/// The bytes of a message.
#[derive(Clone, Debug, Default)]
pub struct Message(pub Vec<u8>);

impl Message {
    fn raw_varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push((value & 0x7f) as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    /// Adds a field with an integer.
    pub fn int(mut self, field: u64, value: i64) -> Self {
        self.raw_varint(field << 3);
        self.raw_varint(value.cast_unsigned());
        self
    }

    /// Adds a field with a float.
    pub fn float(mut self, field: u64, value: f32) -> Self {
        self.raw_varint(field << 3 | 5);
        self.0.extend(value.to_le_bytes());
        self
    }

    /// Adds a field with bytes: a string, or a message.
    pub fn bytes(mut self, field: u64, bytes: impl AsRef<[u8]>) -> Self {
        self.raw_varint(field << 3 | 2);
        self.raw_varint(bytes.as_ref().len() as u64);
        self.0.extend(bytes.as_ref());
        self
    }

    /// Adds a field for each of some texts or messages.
    pub fn each<T: AsRef<[u8]>>(self, field: u64, list: impl IntoIterator<Item = T>) -> Self {
        list.into_iter().fold(self, |message, item| message.bytes(field, item))
    }
}

impl AsRef<[u8]> for Message {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

/// `TensorProto.FLOAT`
pub const FLOAT: i64 = 1;
/// `TensorProto.INT64`
pub const INT64: i64 = 7;
/// `TensorProto.FLOAT16`
pub const FLOAT16: i64 = 10;
/// `TensorProto.BOOL`
pub const BOOL: i64 = 9;

/// `name: type[dims]`; a negative dimension is a symbol named after it, `d1` for -1.
pub fn value_info(name: &str, element: i64, dims: &[i64]) -> Message {
    let dim = |dim: &i64| match dim {
        0.. => Message::default().int(1, *dim),
        _ => Message::default().bytes(2, format!("d{}", -dim)),
    };
    tensor_info(name, element, dims.iter().map(dim))
}

/// `name: type[dims]` with symbolic dimensions; an empty name leaves a dimension open.
pub fn symbolic_info(name: &str, element: i64, dims: &[&str]) -> Message {
    let dim = |dim: &&str| match *dim {
        "" => Message::default(),
        symbol => Message::default().bytes(2, symbol),
    };
    tensor_info(name, element, dims.iter().map(dim))
}

fn tensor_info(name: &str, element: i64, dims: impl Iterator<Item = Message>) -> Message {
    let shape = Message::default().each(1, dims);
    let tensor = Message::default().int(1, element).bytes(2, shape);
    Message::default().bytes(1, name).bytes(2, Message::default().bytes(1, tensor))
}

/// A tensor of integers.
pub fn ints(name: &str, dims: &[i64], values: &[i64]) -> Message {
    let tensor = dims.iter().fold(Message::default(), |tensor, dim| tensor.int(1, *dim));
    let raw: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    tensor.int(2, INT64).bytes(8, name).bytes(9, raw)
}

/// A tensor of floats without data, like a weight in another file.
pub fn weight(name: &str, dims: &[i64]) -> Message {
    let tensor = dims.iter().fold(Message::default(), |tensor, dim| tensor.int(1, *dim));
    let place = Message::default().bytes(1, "location").bytes(2, "../../../etc/passwd");
    tensor.int(2, FLOAT).bytes(8, name).bytes(13, place).int(14, 1)
}

/// A tensor of floats with its data.
pub fn floats(name: &str, dims: &[i64], values: &[f32]) -> Message {
    let tensor = dims.iter().fold(Message::default(), |tensor, dim| tensor.int(1, *dim));
    let raw: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    tensor.int(2, FLOAT).bytes(8, name).bytes(9, raw)
}

/// A node, extended by its methods.
#[derive(Clone, Debug)]
pub struct Node(pub Message);

impl Node {
    /// A node of an operator.
    pub fn new(op: &str, inputs: &[&str], outputs: &[&str]) -> Self {
        Self(Message::default().each(1, inputs).each(2, outputs).bytes(4, op))
    }

    /// Sets the name of the node.
    pub fn named(self, name: &str) -> Self {
        Self(self.0.bytes(3, name))
    }

    /// Sets the operator set of the node.
    pub fn domain(self, domain: &str) -> Self {
        Self(self.0.bytes(7, domain))
    }

    fn attribute(self, name: &str, kind: i64, value: impl FnOnce(Message) -> Message) -> Self {
        let attribute = value(Message::default().bytes(1, name)).int(20, kind);
        Self(self.0.bytes(5, attribute))
    }

    /// Adds an integer attribute.
    pub fn int(self, name: &str, value: i64) -> Self {
        self.attribute(name, 2, |message| message.int(3, value))
    }

    /// Adds a float attribute.
    pub fn float(self, name: &str, value: f32) -> Self {
        self.attribute(name, 1, |message| message.float(2, value))
    }

    /// Adds a string attribute.
    pub fn text(self, name: &str, value: &str) -> Self {
        self.attribute(name, 3, |message| message.bytes(4, value))
    }

    /// Adds an attribute with a list of integers.
    pub fn ints(self, name: &str, values: &[i64]) -> Self {
        self.attribute(name, 7, |message| {
            values.iter().fold(message, |message, value| message.int(8, *value))
        })
    }

    /// Adds an attribute with a list of floats.
    pub fn floats(self, name: &str, values: &[f32]) -> Self {
        self.attribute(name, 6, |message| {
            values.iter().fold(message, |message, value| message.float(7, *value))
        })
    }

    /// Adds a tensor attribute.
    pub fn tensor(self, name: &str, tensor: &Message) -> Self {
        self.attribute(name, 4, |message| message.bytes(5, tensor))
    }

    /// Adds a graph attribute.
    pub fn graph(self, name: &str, graph: &Message) -> Self {
        self.attribute(name, 5, |message| message.bytes(6, graph))
    }

    /// Adds an attribute that refers to the function's attribute `of`.
    pub fn reference(self, name: &str, of: &str, kind: i64) -> Self {
        self.attribute(name, kind, |message| message.bytes(21, of))
    }
}

/// A graph of nodes, initialisers, inputs and outputs.
pub fn graph(nodes: &[Node], tensors: &[Message], inputs: &[Message], outputs: &[&str]) -> Message {
    let outputs = outputs.iter().map(|name| Message::default().bytes(1, name));
    Message::default()
        .each(1, nodes.iter().map(|node| &node.0))
        .each(5, tensors)
        .each(11, inputs)
        .each(12, outputs)
}

/// A model, extended by its methods.
#[derive(Clone, Debug)]
pub struct OnnxFileBuilder {
    opset: i64,
    nodes: Vec<Node>,
    tensors: Vec<Message>,
    inputs: Vec<Message>,
    outputs: Vec<String>,
    functions: Vec<Message>,
}

impl OnnxFileBuilder {
    /// An empty model.
    pub fn new(opset: i64) -> Self {
        let (nodes, tensors, inputs) = (Vec::new(), Vec::new(), Vec::new());
        Self { opset, nodes, tensors, inputs, outputs: Vec::new(), functions: Vec::new() }
    }

    /// Sets the opset of the model.
    pub fn with_opset(self, opset: i64) -> Self {
        Self { opset, ..self }
    }

    /// Adds a node to the model.
    pub fn node(mut self, node: Node) -> Self {
        self.nodes.push(node);
        self
    }

    /// Adds an initialiser to the model.
    pub fn tensor(mut self, tensor: Message) -> Self {
        self.tensors.push(tensor);
        self
    }

    /// Adds an input to the model.
    pub fn input(mut self, input: Message) -> Self {
        self.inputs.push(input);
        self
    }

    /// Adds an output to the model.
    pub fn output(mut self, name: &str) -> Self {
        self.outputs.push(name.to_owned());
        self
    }

    /// Adds a function to the model.
    pub fn function(mut self, function: Message) -> Self {
        self.functions.push(function);
        self
    }

    /// The bytes of the file.
    pub fn bytes(&self) -> Vec<u8> {
        let outputs: Vec<&str> = self.outputs.iter().map(String::as_str).collect();
        let graph = graph(&self.nodes, &self.tensors, &self.inputs, &outputs);
        let opset = Message::default().bytes(1, "").int(2, self.opset);
        let local = Message::default().bytes(1, "local").int(2, 1);
        let model = Message::default().int(1, 8).bytes(2, "test").bytes(7, graph);
        model.bytes(8, opset).bytes(8, local).each(25, &self.functions).0
    }
}

/// A function in the domain `local`.
pub fn function(
    name: &str,
    inputs: &[&str],
    outputs: &[&str],
    attributes: &[&str],
    nodes: &[Node],
) -> Message {
    let opset = Message::default().bytes(1, "").int(2, 18);
    Message::default()
        .bytes(1, name)
        .each(4, inputs)
        .each(5, outputs)
        .each(6, attributes)
        .each(7, nodes.iter().map(|node| &node.0))
        .bytes(9, opset)
        .bytes(10, "local")
}
