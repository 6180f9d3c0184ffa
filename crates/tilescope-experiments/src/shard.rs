//! The option `--shard I/N`: the part of a sweep for one of several workers.

/// One of several equal parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    /// Index of the part, from 0.
    part: usize,
    parts: usize,
}

impl Shard {
    /// Parses `3/8`: the third of eight parts.
    ///
    /// # Errors
    /// An invalid part; the error states what was expected.
    pub fn parse(text: &str) -> Result<Self, String> {
        let numbers = text.split_once('/').and_then(|(part, parts)| {
            Some((part.trim().parse::<usize>().ok()?, parts.trim().parse::<usize>().ok()?))
        });
        match numbers {
            Some((part, parts)) if (1..=parts).contains(&part) => {
                Ok(Self { part: part - 1, parts })
            }
            Some((0, 1..)) => {
                Err(format!("shards are counted from 1, not {text:?}: the first of 8 is 1/8"))
            }
            Some((part, parts)) => Err(format!("shard {part} of {parts} does not exist")),
            None => Err(format!(
                "expected a shard and the number of shards, for example 3/8, not \
                             {text:?}"
            )),
        }
    }

    /// The points of the part: neighbours go to different shards, since they take about the same
    /// time.
    pub fn of<T>(self, points: Vec<T>) -> Vec<T> {
        points.into_iter().skip(self.part).step_by(self.parts).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shards_are_disjoint_and_together_the_whole() {
        for parts in 1..9 {
            let mut all: Vec<u32> = (1..=parts)
                .flat_map(|part| {
                    let shard = Shard::parse(&format!("{part}/{parts}")).expect("a shard");
                    shard.of((0..20).collect())
                })
                .collect();
            all.sort_unstable();
            assert_eq!(all, (0..20).collect::<Vec<_>>());
        }
    }

    #[test]
    fn other_shards_are_refused() {
        let cases = [
            ("0/8", "counted from 1"),
            ("9/8", "shard 9 of 8 does not exist"),
            ("1/0", "shard 1 of 0 does not exist"),
            ("3", "for example 3/8"),
            ("a/b", "for example 3/8"),
            ("-1/8", "for example 3/8"),
        ];
        for (text, words) in cases {
            let problem = Shard::parse(text).expect_err(text);
            assert!(problem.contains(words), "{text}: {problem}");
        }
    }
}
