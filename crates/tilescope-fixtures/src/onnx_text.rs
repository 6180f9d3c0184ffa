//! Parses ONNX models from lines of text.

use crate::onnx_file::{BOOL, FLOAT, FLOAT16, INT64, Message, Node, OnnxFileBuilder, floats, ints};
use crate::onnx_file::{value_info, weight};

/// Parses a model. Its statements end with a line or a semicolon; `#` begins a comment.
///
/// - `opset 13`, and `out y z`, without which the outputs are those of the last node.
/// - `x f32:2,5,16` declares an input, `w w:16,16` a weight without data, `n i64:2=1,-1` an
///   initialiser, `u8:3,4=` one without data; types are `f32`, `f16` and `bf16` (of inputs), `i64`,
///   `i32`, `i8`, `u8`, `bool` and `str`. Without dimensions it is a scalar.
/// - `y z = Split x w:3,4 axis=1 @name` is a node, `y = ` may be left out. Operands may be declared
///   in place; `_` is an absent one. A value with a comma is a list of integers, or of floats if it
///   has a point; one with a point a float, one of digits an integer, anything else a string, in
///   quotes if it has spaces. `com.example.Op` is an operator of a domain.
///
/// # Panics
///
/// If the text is not a model.
pub fn model(text: &str) -> OnnxFileBuilder {
    let mut builder = TextModel { model: OnnxFileBuilder::new(20), declared: 0 };
    let mut last = Vec::new();
    let mut has_outputs = false;
    for statement in text.lines().filter(|line| !line.starts_with('#')).flat_map(|of| of.split(';'))
    {
        let words = words(statement);
        match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
            [] => {}
            ["opset", number] => builder.model = builder.model.with_opset(parsed(number)),
            ["out", ref names @ ..] => {
                builder.model = names.iter().fold(builder.model, |of, name| of.output(name));
                has_outputs = true;
            }
            [name, declaration] if is_declaration(declaration) && !is_operator(name) => {
                builder.declare(name, declaration);
            }
            ref words => last = builder.node(words),
        }
    }
    if has_outputs {
        return builder.model;
    }
    last.iter().fold(builder.model, |of, name| of.output(name))
}

/// Splits at spaces outside quotes, and removes the quotes.
fn words(statement: &str) -> Vec<String> {
    let (mut words, mut is_quoted) = (vec![String::new()], false);
    for sign in statement.chars() {
        match sign {
            '"' => is_quoted = !is_quoted,
            ' ' if !is_quoted => words.push(String::new()),
            sign => words.last_mut().expect("a word").push(sign),
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

fn is_declaration(word: &str) -> bool {
    let kind = word.split(':').next().unwrap_or_default();
    word.contains(':')
        && ["w", "f32", "f16", "bf16", "i64", "i32", "i8", "u8", "bool", "str"].contains(&kind)
}

fn is_operator(word: &str) -> bool {
    let name = word.rsplit('.').next().unwrap_or_default();
    name.starts_with(|sign: char| sign.is_ascii_uppercase())
}

fn parsed<T: std::str::FromStr>(word: &str) -> T {
    word.parse().ok().unwrap_or_else(|| panic!("no number: {word}"))
}

fn list<T: std::str::FromStr>(words: &str) -> Vec<T> {
    words.split(',').filter(|word| !word.is_empty()).map(parsed).collect()
}

struct TextModel {
    model: OnnxFileBuilder,
    /// Operands that nodes have declared.
    declared: usize,
}

impl TextModel {
    fn declare(&mut self, name: &str, declaration: &str) {
        let (kind, rest) = declaration.split_once(':').expect("a type");
        let (dims, values) = match rest.split_once('=') {
            Some((dims, values)) => (dims, Some(values)),
            None => (rest, None),
        };
        let dims: Vec<i64> = list(dims);
        let model = self.model.clone();
        let bytes = |element: i64, values: &str| {
            let tensor = dims.iter().fold(Message::default(), |tensor, dim| tensor.int(1, *dim));
            tensor.int(2, element).bytes(8, name).bytes(9, list::<u8>(values))
        };
        // Values without data in the file.
        let typed = |element: i64| {
            let tensor = dims.iter().fold(Message::default(), |tensor, dim| tensor.int(1, *dim));
            tensor.int(2, element).bytes(8, name)
        };
        self.model = match (kind, values) {
            ("w", None) => model.tensor(weight(name, &dims)),
            ("f32", None) => model.input(value_info(name, FLOAT, &dims)),
            ("f16", None) => model.input(value_info(name, FLOAT16, &dims)),
            ("i64", None) => model.input(value_info(name, INT64, &dims)),
            ("bf16", None) => model.input(value_info(name, 16, &dims)),
            ("i32", None) => model.input(value_info(name, 6, &dims)),
            ("i8", None) => model.input(value_info(name, 3, &dims)),
            ("u8", None) => model.input(value_info(name, 2, &dims)),
            ("bool", None) => model.input(value_info(name, BOOL, &dims)),
            ("str", None) => model.input(value_info(name, 8, &dims)),
            ("f32", Some(values)) => model.tensor(floats(name, &dims, &list(values))),
            ("i64", Some(values)) => model.tensor(ints(name, &dims, &list(values))),
            ("i32", Some("")) => model.tensor(typed(6)),
            ("i8", Some("")) => model.tensor(typed(3)),
            ("i8", Some(values)) => model.tensor(bytes(3, values)),
            ("u8", Some("")) => model.tensor(typed(2)),
            ("u8", Some(values)) => model.tensor(bytes(2, values)),
            ("bool", Some(values)) => model.tensor(bytes(BOOL, values)),
            _ => panic!("no declaration: {declaration}"),
        };
    }

    /// Adds a node, and returns the names of its outputs.
    fn node(&mut self, words: &[&str]) -> Vec<String> {
        let (outputs, words) = match words.iter().position(|word| *word == "=") {
            Some(at) => (&words[..at], &words[at + 1..]),
            None => (&["y"][..], words),
        };
        let [op, words @ ..] = words else { panic!("no operator") };
        let is_operand = |word: &str| !word.starts_with('@') && attribute(word).is_none();
        let mut inputs: Vec<String> = Vec::new();
        for word in words.iter().filter(|word| is_operand(word)) {
            inputs.push(match *word {
                "_" => String::new(),
                word if is_declaration(word) => {
                    let kind = if word.starts_with("w:") { "weight" } else { "x" };
                    let name = format!("{kind}{}", self.declared);
                    self.declared += 1;
                    self.declare(&name, word);
                    name
                }
                word => word.to_owned(),
            });
        }
        let inputs: Vec<&str> = inputs.iter().map(String::as_str).collect();
        let mut node = match op.rsplit_once('.') {
            Some((domain, op)) => Node::new(op, &inputs, outputs).domain(domain),
            None => Node::new(op, &inputs, outputs),
        };
        for word in words {
            node = match (attribute(word), word.strip_prefix('@')) {
                (_, Some(name)) => node.named(name),
                (Some((name, value)), None) => with_attribute(node, name, value),
                (None, None) => node,
            };
        }
        self.model = self.model.clone().node(node);
        outputs.iter().map(|name| (*name).to_owned()).collect()
    }
}

/// Name and value of an attribute, if the word is one.
fn attribute(word: &str) -> Option<(&str, &str)> {
    word.split_once('=').filter(|(name, _)| !name.contains(':'))
}

fn with_attribute(node: Node, name: &str, value: &str) -> Node {
    let is_number = value.starts_with(|sign: char| sign.is_ascii_digit() || sign == '-');
    match value {
        text if !is_number => node.text(name, text),
        numbers if numbers.contains(',') && numbers.contains('.') => {
            node.floats(name, &list(numbers))
        }
        numbers if numbers.contains(',') => node.ints(name, &list(numbers)),
        number if number.contains('.') => node.float(name, parsed(number)),
        number => node.int(name, parsed(number)),
    }
}
