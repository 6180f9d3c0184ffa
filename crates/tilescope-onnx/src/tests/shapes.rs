//! Compares shapes of operators of each family with those of onnx 1.23's own inference.

use super::{dims_of_output, refusal};
use tilescope_fixtures::onnx_text;

#[test]
fn outputs_have_the_shapes_of_onnx() {
    for line in include_str!("shapes.txt").lines().filter(|line| !line.starts_with('#')) {
        let (text, expected) = line.rsplit_once(" -> ").expect("a model and its shapes");
        let model = onnx_text::model(text);
        if !expected.starts_with(|sign: char| sign.is_ascii_digit()) && expected != "scalar" {
            let said = refusal(&model);
            assert!(said.contains(expected), "{text}: {said}");
            continue;
        }
        for (at, expected) in expected.split(' ').enumerate() {
            let dims: Vec<String> =
                dims_of_output(&model, at).iter().map(ToString::to_string).collect();
            assert_eq!(dims.join(","), expected.trim_start_matches("scalar"), "{text}");
        }
    }
}
