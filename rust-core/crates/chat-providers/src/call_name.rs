//! The name of a call of a tool that comes in the chunks of a chat answer.

/// Takes what the next chunk says of a call's name.
///
/// OpenAI's own clients join what chunks say (`accumulate_delta` of openai-python, LangChain), and most providers say the
/// whole name once. Some repeat it with each chunk, for which other clients take the first one alone (hermes-agent#8259,
/// open-webui#22235, weicj/vLLM-2080Ti-Definitive#127), and some say in each what they have by then. What begins with all that
/// came before is such a repetition; anything else goes on with it. Both are as they stand between quotes.
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
