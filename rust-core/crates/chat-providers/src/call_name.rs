//! The name of a tool call that arrives in the chunks of a chat answer.

/// Adds a chunk's piece of a call's name.
///
/// OpenAI's own clients concatenate the pieces (`accumulate_delta` of openai-python, LangChain),
/// and most providers send the whole name once. Some providers repeat the name in each chunk, so
/// other clients use only the first piece (hermes-agent#8259, open-webui#22235,
/// weicj/vLLM-2080Ti-Definitive#127), and some providers send the name so far in each chunk. A
/// piece that begins with the name so far is such a repetition; any other piece is appended. Both
/// strings are JSON-escaped and without quotes.
pub(crate) fn append_name(name: &mut String, piece: &str) {
    if piece.starts_with(name.as_str()) {
        name.clear();
    }
    name.push_str(piece);
}

#[cfg(test)]
mod tests {
    use super::append_name;

    #[test]
    fn pieces_are_joined_and_repetitions_are_not() {
        for pieces in [
            &["read_file"][..],
            &["read", "_file"],
            &["", "read_", "", "file", ""],
            &["read_file", "read_file", "read_file"],
            &["read", "read_f", "read_file"],
        ] {
            let mut name = String::new();
            pieces.iter().for_each(|piece| append_name(&mut name, piece));
            let expected = "read_file";
            assert_eq!(name, expected, "{pieces:?}");
        }
    }
}
