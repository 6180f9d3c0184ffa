//! Names of programs as compilers make them.

/// A program's name without the number of its compute set or copy: compilers count these through,
/// so that one more of them changes all that follow.
pub(crate) fn without_counter_prefix(name: &str) -> &str {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let counted = |front: &str| {
        let number = front.strip_prefix("cs").or_else(|| front.strip_prefix("copy"));
        number.is_some_and(digits)
    };
    match name.split_once('_') {
        Some((front, rest)) if counted(front) => rest,
        _ => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counted_names_lose_their_number_only() {
        let cases = [
            ("cs3_layer1/conv/ExchangePre", "layer1/conv/ExchangePre"),
            ("copy17_a_to_b/ExchangePre", "a_to_b/ExchangePre"),
            ("copy_a", "copy_a"),
            ("cs_3", "cs_3"),
            ("csx3_a", "csx3_a"),
            ("", ""),
        ];
        for (name, plain) in cases {
            assert_eq!(without_counter_prefix(name), plain);
        }
    }
}
